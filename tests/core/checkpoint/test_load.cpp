// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>

#include "core/base/io/sha256.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/fingerprint.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/torch_types.h"
#include "tests/core/base/environment.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

const fs::path golden = test::golden_file("checkpoint");

std::string bytes_of(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::string bytes_in_file(const Checkpoint& checkpoint, const TensorInfo& info) {
    return read_file(checkpoint.files().at(info.file)).substr(info.begin, info.bytes);
}

}  // namespace

TEST_CASE("Every type is read as the official library wrote it", "[checkpoint][load]") {
    const auto checkpoint = Checkpoint::open(golden / "types.safetensors");
    REQUIRE(checkpoint->tensors().size() == 22);
    for (const auto& [name, info] : checkpoint->tensors()) {
        INFO(name);
        if (data_type(name)) REQUIRE(info.type == data_type(name));
        const at::Tensor tensor = checkpoint->load(name);
        REQUIRE(tensor.scalar_type() == torch_type(info.type));
        REQUIRE(tensor.sizes().vec() == info.shape);
        REQUIRE(tensor.is_contiguous());
        REQUIRE(bytes_of(tensor) == bytes_in_file(*checkpoint, info));
    }
    REQUIRE(checkpoint->load("scalar").item<float>() == 2.5F);
    REQUIRE(checkpoint->load("empty").sizes() == at::IntArrayRef({0, 3}));
    REQUIRE(checkpoint->load("I64").select(0, 4).item<std::int64_t>() == INT64_MAX);
    REQUIRE(checkpoint->load("name with \"quotes\", ümläut and \n").item<float>() == 1.0F);
}

TEST_CASE("Conversion gives the bits that torch gives", "[checkpoint][load]") {
    const auto checkpoint = Checkpoint::open(golden / "types.safetensors");
    const auto [as, file] = GENERATE(table<LoadAs, const char*>({{LoadAs::float32, "as_float32.safetensors"},
                                                                 {LoadAs::bfloat16, "as_bfloat16.safetensors"},
                                                                 {LoadAs::float16, "as_float16.safetensors"},
                                                                 {LoadAs::float64, "as_float64.safetensors"}}));
    const auto expected = Checkpoint::open(golden / file);
    REQUIRE(expected->tensors().size() == 9);
    for (const auto& [name, info] : expected->tensors()) {
        INFO(name);
        const at::Tensor tensor = checkpoint->load(name, as);
        REQUIRE(tensor.scalar_type() == torch_type(info.type));
        REQUIRE(bytes_of(tensor) == bytes_in_file(*expected, info));
    }
}

TEST_CASE("Integers, booleans and complex numbers are never converted", "[checkpoint][load]") {
    const auto checkpoint = Checkpoint::open(golden / "types.safetensors");
    for (const char* name : {"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64", "C64"}) {
        INFO(name);
        const TensorInfo& info = checkpoint->tensor(name);
        const at::Tensor tensor = checkpoint->load(name, LoadAs::float32);
        REQUIRE(tensor.scalar_type() == torch_type(info.type));
        REQUIRE(bytes_of(tensor) == bytes_in_file(*checkpoint, info));
    }
}

TEST_CASE("A tensor of many pieces is converted whole", "[checkpoint][load]") {
    // 9 MiB and one element of bfloat16: three pieces, the last one short.
    constexpr std::int64_t count = (9 << 20) / 2 + 1;
    std::string data(static_cast<std::size_t>(count) * 2, '\0');
    for (std::int64_t i = 0; i < count; ++i) {
        const auto high = static_cast<std::uint16_t>(0x3F80 + i % 128);  // 1 + (i mod 128) / 128
        std::memcpy(data.data() + 2 * i, &high, 2);
    }
    const TemporaryFolder folder;
    const std::string size = std::to_string(data.size());
    write_file(
        folder / "x.safetensors",
        safetensors_bytes("{" + entry("a", "BF16", "[" + std::to_string(count) + "]", "[0," + size + "]") + "}", data));
    const auto checkpoint = Checkpoint::open(folder / "x.safetensors");
    const at::Tensor tensor = checkpoint->load("a", LoadAs::float32);
    const auto* values = tensor.const_data_ptr<float>();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i) wrong += values[i] != 1.0F + static_cast<float>(i % 128) / 128.0F;
    REQUIRE(wrong == 0);
    REQUIRE(bytes_of(checkpoint->load("a")) == data);

    Cancellation cancellation;
    cancellation.request();
    REQUIRE_THROWS_AS(checkpoint->load("a", LoadAs::float32, cancellation), Stopped);
    REQUIRE_THROWS_AS(checkpoint->load("a", LoadAs::stored, cancellation), Stopped);
}

TEST_CASE("Tensors can be read from several threads", "[checkpoint][load]") {
    const auto checkpoint = Checkpoint::open(golden / "types.safetensors");
    const std::string expected = bytes_of(checkpoint->load("F32"));
    std::vector<int> good(4, 0);
    std::vector<std::thread> threads;
    for (int& count : good) {
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) count += bytes_of(checkpoint->load("F32")) == expected;
        });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(good == std::vector<int>(4, 50));
}

TEST_CASE("Odd values and types are read or refused, never passed on as they are", "[checkpoint][load]") {
    const TemporaryFolder folder;
    const auto open = [&](const std::string& type, const std::string& shape, const std::string& offsets,
                          const std::string& data) {
        write_file(folder / "x.safetensors", safetensors_bytes("{" + entry("a", type, shape, offsets) + "}", data));
        return Checkpoint::open(folder / "x.safetensors");
    };
    SECTION("a bool that is neither 0 nor 1 becomes 1") {
        REQUIRE(bytes_of(open("BOOL", "[3]", "[0,3]", std::string("\2\0\xFF", 3))->load("a")) ==
                std::string("\1\0\1", 3));
    }
    SECTION("types below a byte open but do not load") {
        for (const auto as : {LoadAs::stored, LoadAs::float32}) {
            REQUIRE_THROWS_MATCHES(
                open("F4", "[2]", "[0,1]", "x")->load("a", as), Error,
                IsError(ErrorCode::unsupported, "tensor \"a\"] expected an element type that LibTorch has; found F4"));
            REQUIRE_THROWS_MATCHES(open("F6_E3M2", "[4]", "[0,3]", "xyz")->load("a", as), Error,
                                   IsError(ErrorCode::unsupported, "F6_E3M2"));
        }
    }
    SECTION("no elements, but sizes whose strides overflow") {
        REQUIRE_THROWS_MATCHES(open("F32", "[0,4611686018427387904,4]", "[0,0]", "")->load("a"), Error,
                               IsError(ErrorCode::unsupported, "63 bits"));
    }
    SECTION("no elements beside a large size") {
        REQUIRE(open("F32", "[0,1000000]", "[0,0]", "")->load("a", LoadAs::bfloat16).sizes() ==
                at::IntArrayRef({0, 1000000}));
    }
    SECTION("more than the machine's memory, in a file that is as long and empty") {
        const std::uint64_t elements = std::uint64_t{1} << 42U;  // 4 TiB, 16 TiB as float32
        const std::string bytes = std::to_string(elements);
        const std::string file =
            safetensors_bytes("{" + entry("a", "F8_E5M2", "[" + bytes + "]", "[0," + bytes + "]") + "}");
        write_file(folder / "x.safetensors", file);
        std::error_code error;
        fs::resize_file(folder / "x.safetensors", file.size() + elements, error);
        if (!error) {  // not every file system takes such a hole
            REQUIRE_THROWS_MATCHES(Checkpoint::open(folder / "x.safetensors")->load("a", LoadAs::float32), Error,
                                   IsError(ErrorCode::memory, "[memory] expected 17.6 TB for "));
        }
    }
}

TEST_CASE("A weight file that is cut or rewritten after opening is refused on reading", "[checkpoint][load]") {
    const TemporaryFolder folder;
    const fs::path path = folder / "x.safetensors";
    write_file(path, safetensors_bytes("{" + entry("a", "F32", "[1000]", "[0,4000]") + "}", std::string(4000, '\0')));
    const auto checkpoint = Checkpoint::open(path);
    REQUIRE_NOTHROW(checkpoint->load("a"));
    SECTION("cut") {
        fs::resize_file(path, 1000);
        REQUIRE_THROWS_MATCHES(checkpoint->load("a"), Error, IsError(ErrorCode::mismatch, "cut meanwhile"));
    }
    SECTION("rewritten") {
        const std::string bytes = read_file(path);
        write_file(path, bytes);
        fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(2));
        REQUIRE_THROWS_MATCHES(checkpoint->load("a", LoadAs::float64), Error,
                               IsError(ErrorCode::mismatch, "written to meanwhile"));
    }
    SECTION("replaced: what was opened is still whole") {
        write_file(folder / "y", "nonsense");
        fs::rename(folder / "y", path);
        REQUIRE(bytes_of(checkpoint->load("a")) == std::string(4000, '\0'));
    }
}

TEST_CASE("The fingerprint hashes the files' hashes and is remembered", "[checkpoint][fingerprint]") {
    const TemporaryFolder folder;
    const Environment cache("XDG_CACHE_HOME", (folder / "cache").string());
    constexpr std::int64_t bytes = 2 << 20;
    const auto shard = [&](const std::string& name) {
        const std::string size = std::to_string(bytes);
        return safetensors_bytes("{" + entry(name, "U8", "[" + size + "]", "[0," + size + "]") + "}",
                                 std::string(bytes, 'x'));
    };
    write_file(folder / "2.safetensors", shard("b"));
    write_file(folder / "10.safetensors", shard("a"));
    write_file(folder / "model.safetensors.index.json", R"({"weight_map":{"a":"10.safetensors","b":"2.safetensors"}})");
    const std::string expected = sha256_hex(sha256_hex(read_file(folder / "10.safetensors")) + "\n" +
                                            sha256_hex(read_file(folder / "2.safetensors")) + "\n");
    for (const char* name : {"2.safetensors", "10.safetensors"}) {
        fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
    REQUIRE(Checkpoint::open(folder.path())->fingerprint() == expected);
    std::vector<fs::path> entries;
    for (const auto& one : fs::directory_iterator(folder / "cache/headscope")) entries.push_back(one.path());
    REQUIRE(entries.size() == 2);
    REQUIRE(Checkpoint::open(folder.path())->fingerprint() == expected);

    SECTION("the cache is used") {
        std::string text = read_file(entries[0]);
        text.replace(text.size() - 65, 64, std::string(64, '0'));
        write_file(entries[0], text);
        REQUIRE(Checkpoint::open(folder.path())->fingerprint() != expected);
    }
    SECTION("a damaged cache is not") {
        write_file(entries[0], "nonsense");
        fs::resize_file(entries[1], 100);
        REQUIRE(Checkpoint::open(folder.path())->fingerprint() == expected);
    }
    SECTION("a changed file is hashed again") {
        write_file(folder / "2.safetensors", shard("b").substr(0, shard("b").size() - 1) + "y");
        REQUIRE(Checkpoint::open(folder.path())->fingerprint() != expected);
    }
    SECTION("a cache that cannot be made is done without") {
        write_file(folder / "file", "x");
        const Environment broken("XDG_CACHE_HOME", (folder / "file").string());
        REQUIRE(Checkpoint::open(folder.path())->fingerprint() == expected);
    }
    SECTION("a stop is heeded") {
        const Environment empty("XDG_CACHE_HOME", (folder / "another").string());
        Cancellation cancellation;
        cancellation.request();
        REQUIRE_THROWS_AS(Checkpoint::open(folder.path())->fingerprint(cancellation), Stopped);
    }
    SECTION("a thread may compute it ahead") {
        const Environment empty("XDG_CACHE_HOME", (folder / "another").string());
        FingerprintAhead ahead(Checkpoint::open(folder.path()));
        REQUIRE(ahead.get(Cancellation()) == expected);
        const FingerprintAhead dropped(Checkpoint::open(folder.path()));
    }
    SECTION("errors ahead are reported when it is asked for") {
        const Environment empty("XDG_CACHE_HOME", (folder / "another").string());
        const auto file = Checkpoint::open(folder.path());
        fs::resize_file(folder / "2.safetensors", 100);
        FingerprintAhead ahead(file);
        REQUIRE_THROWS_AS(ahead.get(Cancellation()), Error);
    }
}

TEST_CASE("Files are hashed in several threads, in order of their names", "[checkpoint][fingerprint]") {
    const TemporaryFolder folder;
    const Environment cache("XDG_CACHE_HOME", (folder / "cache").string());
    std::vector<InputFile> files;
    std::string lines;
    const std::vector<std::pair<std::string, std::size_t>> sizes{
        {"a", 9'000'001}, {"b", 5}, {"c", 1'100'000}, {"d", 0}, {"e", 2'000'003}};
    for (const auto& [name, size] : sizes)
        lines += sha256_hex(read_file(write_file(folder / name, std::string(size, name.front())))) + "\n";
    for (const char* name : {"e", "c", "a", "d", "b"}) files.emplace_back(folder / name);
    const InputFile adapter(write_file(folder / "0", "x"));
    const std::string expected = sha256_hex(lines), longer = sha256_hex(lines + sha256_hex("x") + "\n");
    for (const int threads : {0, 1, 2, 9}) {
        CAPTURE(threads);
        CHECK(fingerprint(files, {}, Cancellation(), threads) == expected);
        CHECK(fingerprint(files, {&adapter}, Cancellation(), threads) == longer);
    }
    Cancellation stopped;
    stopped.request();
    for (const int threads : {1, 3}) CHECK_THROWS_AS(fingerprint(files, {}, stopped, threads), Stopped);
    fs::resize_file(folder / "c", 10);
    for (const int threads : {1, 3})
        CHECK_THROWS_MATCHES(fingerprint(files, {}, Cancellation(), threads), Error, IsError(ErrorCode::mismatch));
}

TEST_CASE("Numbers that are NaN or infinite are counted on loading, in the type that they get", "[checkpoint][load]") {
    // Three pieces of float32: what is not finite lies in the first, at the end of the second and in the last.
    constexpr std::int64_t count = (9 << 20) / 4 + 3;
    std::vector<float> numbers(static_cast<std::size_t>(count), 1.5F);
    numbers.front() = std::numeric_limits<float>::quiet_NaN();
    numbers[(8 << 20) / 4 - 1] = std::numeric_limits<float>::infinity();
    numbers.back() = -std::numeric_limits<float>::infinity();
    numbers[7] = std::numeric_limits<float>::max();  // beyond float16, and rounded up beyond bfloat16
    numbers[8] = std::numeric_limits<float>::denorm_min();
    const std::string data(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
    const TemporaryFolder folder;
    const std::string size = std::to_string(data.size());
    write_file(
        folder / "x.safetensors",
        safetensors_bytes("{" + entry("x", "F32", "[" + std::to_string(count) + "]", "[0," + size + "]") + "}", data));
    const auto checkpoint = Checkpoint::open(folder / "x.safetensors");
    const auto [as, expected] = GENERATE(table<LoadAs, std::int64_t>(
        {{LoadAs::stored, 3}, {LoadAs::float64, 3}, {LoadAs::bfloat16, 4}, {LoadAs::float16, 4}}));
    std::int64_t found = -1;
    const at::Tensor tensor = checkpoint->load("x", as, Cancellation(), &found);
    REQUIRE(found == expected);
    REQUIRE(count_not_finite(tensor) == expected);
    REQUIRE(first_not_finite(tensor) == 0);
    REQUIRE(first_not_finite(tensor.narrow(0, 9, count - 9)) == (8 << 20) / 4 - 10);
    REQUIRE(first_not_finite(tensor.narrow(0, 9, 5000)) == -1);
    REQUIRE(count_not_finite(tensor.narrow(0, 0, count - count % 2).view({-1, 2}).t()) == expected - count % 2);
    REQUIRE(count_not_finite(tensor.to(at::kLong)) == 0);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/io/sha256.h"
#include "core/checkpoint/save.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

const fs::path source_folder = HEADSCOPE_SOURCE_DIR;
const fs::path sample = source_folder / "resources/samples/llama-kjv-shakespeare";
const fs::path golden = test::golden_file("checkpoint");

std::string bytes_of(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

void convert_quietly(const Checkpoint& source, const fs::path& destination, LoadAs as,
                     std::uint64_t shard_bytes = SaveRequest{}.shard_bytes) {
    NoProgress progress;
    convert(source, destination, as, progress, Cancellation(), shard_bytes);
}

/// A folder "source" whose model.safetensors holds one float32 tensor of one value, and a configuration.
fs::path write_source(const TemporaryFolder& folder, float value, const std::string& config) {
    fs::create_directories(folder / "source");
    write_file(folder / "source/model.safetensors",
               safetensors_bytes("{" + entry("a", "F32", "[1]", "[0,4]") + "}",
                                 std::string(reinterpret_cast<const char*>(&value), sizeof value)));
    write_file(folder / "source/config.json", config);
    return folder / "source";
}

void check_manifest(const fs::path& folder) {
    const auto files = nlohmann::json::parse(read_file(folder / "manifest.json")).at("files");
    std::size_t count = 0;
    for (const auto& item : fs::directory_iterator(folder)) {
        const std::string name = item.path().filename();
        if (name == "manifest.json") continue;
        INFO(name);
        const std::string content = read_file(item.path());
        REQUIRE(files.at(name).at("bytes") == content.size());
        REQUIRE(files.at(name).at("sha256") == sha256_hex(content));
        ++count;
    }
    REQUIRE(files.size() == count);
}

}  // namespace

TEST_CASE("Tensors that are saved read back the same", "[checkpoint][save]") {
    const TemporaryFolder folder;
    const auto types = Checkpoint::open(golden / "types.safetensors");
    const at::Tensor transposed = at::arange(6, at::kFloat).view({2, 3}).t();
    const nlohmann::json config = {{"model_type", "headscope"}, {"rms_norm_eps", 1e-6}};
    SaveRequest request;
    request.destination = folder / "out";
    request.config = &config;
    for (const auto& [name, info] : types->tensors()) request.tensors.push_back(output_tensor(name, types->load(name)));
    request.tensors.push_back(output_tensor("transposed", transposed));
    NoProgress progress;
    save_checkpoint(request, progress, Cancellation());

    REQUIRE(folder.names() == std::vector<std::string>{"out"});
    const auto saved = Checkpoint::open(folder / "out");
    REQUIRE(saved->config() == config);
    REQUIRE(saved->tensors().size() == types->tensors().size() + 1);
    for (const auto& [name, info] : types->tensors()) {
        INFO(name);
        REQUIRE(saved->tensor(name).type == info.type);
        REQUIRE(saved->tensor(name).shape == info.shape);
        REQUIRE(bytes_of(saved->load(name)) == bytes_of(types->load(name)));
    }
    REQUIRE(bytes_of(saved->load("transposed")) == bytes_of(transposed.contiguous()));
    check_manifest(folder / "out");
}

TEST_CASE("Tensors of a written file are aligned to their elements", "[checkpoint][save]") {
    const TemporaryFolder folder;
    convert_quietly(*Checkpoint::open(golden / "types.safetensors"), folder / "out", LoadAs::stored);
    const auto saved = Checkpoint::open(folder / "out");
    for (const auto& [name, info] : saved->tensors()) {
        INFO(name);
        REQUIRE(info.begin % (static_cast<std::uint64_t>(bits(info.type)) / 8) == 0);
    }
}

TEST_CASE("The sample is converted, single and in shards, with all that belongs to it", "[checkpoint][save]") {
    const TemporaryFolder folder;
    const auto source = Checkpoint::open(sample);
    const std::uint64_t shard_bytes =
        GENERATE(std::uint64_t{5'000'000'000}, std::uint64_t{3'000'000}, std::uint64_t{1});
    convert_quietly(*source, folder / "out", LoadAs::float32, shard_bytes);
    const auto saved = Checkpoint::open(folder / "out");
    REQUIRE(saved->files().size() == (shard_bytes == 1 ? 38 : shard_bytes == 3'000'000 ? 5 : 1));
    REQUIRE(saved->tensors().size() == source->tensors().size());
    for (const auto& [name, info] : source->tensors()) {
        INFO(name);
        REQUIRE(saved->tensor(name).type == DataType::f32);
        REQUIRE(bytes_of(saved->load(name)) == bytes_of(source->load(name, LoadAs::float32)));
    }
    nlohmann::json config = source->config();
    config["dtype"] = "float32";
    REQUIRE(saved->config() == config);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
        REQUIRE(read_file(folder / "out" / name) == read_file(sample / name));
    }
    check_manifest(folder / "out");
}

TEST_CASE("Only floating-point tensors are converted, and back without loss", "[checkpoint][save]") {
    const TemporaryFolder folder;
    const auto source = Checkpoint::open(golden / "types.safetensors");
    convert_quietly(*source, folder / "wide", LoadAs::float64);
    const auto wide = Checkpoint::open(folder / "wide");
    REQUIRE_FALSE(wide->has_config());
    REQUIRE(wide->tensor("F8_E5M2").type == DataType::f64);
    REQUIRE(wide->tensor("I8").type == DataType::i8);
    REQUIRE(wide->tensor("C64").type == DataType::c64);
    REQUIRE(wide->tensor("BOOL").type == DataType::boolean);
    REQUIRE(bytes_of(wide->load("F16", LoadAs::float16)) == bytes_of(source->load("F16")));
    REQUIRE(bytes_of(wide->load("BF16", LoadAs::bfloat16)) == bytes_of(source->load("BF16")));
}

TEST_CASE("The configuration's type is adapted wherever it is named", "[checkpoint][save]") {
    const TemporaryFolder folder;
    const auto converted = [&](const std::string& config) {
        const auto source = Checkpoint::open(write_source(folder, 1.0F, config));
        fs::remove_all(folder / "out");
        convert_quietly(*source, folder / "out", LoadAs::float16);
        return Checkpoint::open(folder / "out")->config();
    };
    REQUIRE(converted(R"({"torch_dtype":"float32"})") == nlohmann::json({{"torch_dtype", "float16"}}));
    REQUIRE(converted(R"({})") == nlohmann::json({{"torch_dtype", "float16"}}));
    REQUIRE(converted(R"({"dtype":null,"text_config":{"dtype":"bfloat16","x":{"dtype":1}}})") ==
            nlohmann::json::parse(R"({"dtype":"float16","text_config":{"dtype":"float16","x":{"dtype":1}}})"));
}

TEST_CASE("Conversions that would lose the meaning are refused and leave nothing", "[checkpoint][save]") {
    const TemporaryFolder folder;
    SECTION("a value beyond float16") {
        const auto source = Checkpoint::open(write_source(folder, 1e5F, "{}"));
        REQUIRE_THROWS_MATCHES(
            convert_quietly(*source, folder / "out", LoadAs::float16), Error,
            IsError(ErrorCode::limit, "tensor \"a\"] expected values that F16 can hold; found 1 too large"));
        REQUIRE_NOTHROW(convert_quietly(*source, folder / "bf16", LoadAs::bfloat16));
        REQUIRE(folder.names() == std::vector<std::string>{"bf16", "source"});
    }
    SECTION("a value that is infinite already") {
        const auto source = Checkpoint::open(write_source(folder, INFINITY, "{}"));
        REQUIRE_NOTHROW(convert_quietly(*source, folder / "out", LoadAs::float16));
    }
    SECTION("a model that is quantized in a way that is not read") {
        const auto source = Checkpoint::open(
            write_source(folder, 1, R"({"text_config":{"quantization_config":{"quant_method":"aqlm"}}})"));
        REQUIRE_THROWS_MATCHES(convert_quietly(*source, folder / "out", LoadAs::float16), Error,
                               IsError(ErrorCode::unsupported, "quantization_config"));
        REQUIRE(folder.names() == std::vector<std::string>{"source"});
    }
}

TEST_CASE("A conversion goes only to a new or empty folder that is not its source", "[checkpoint][save]") {
    const TemporaryFolder folder;
    const auto source = Checkpoint::open(write_source(folder, 1.0F, "{}"));
    fs::create_symlink("source", folder / "link");
    for (const char* name : {"source", "link", "source/", "source/."}) {
        REQUIRE_THROWS_MATCHES(convert_quietly(*source, folder / name, LoadAs::float16), Error,
                               IsError(ErrorCode::usage, "not an input"));
    }
    REQUIRE_THROWS_MATCHES(convert_quietly(*source, folder.path(), LoadAs::float16), Error,
                           IsError(ErrorCode::usage, "not empty"));
    REQUIRE_THROWS_MATCHES(convert_quietly(*source, "/dev/null", LoadAs::float16), Error,
                           IsError(ErrorCode::usage, "device"));
    REQUIRE_THROWS_MATCHES(convert_quietly(*source, folder / "source/config.json", LoadAs::float16), Error,
                           IsError(ErrorCode::usage, "regular file"));
    fs::create_directory(folder / "empty");
    REQUIRE_NOTHROW(convert_quietly(*source, folder / "empty/", LoadAs::float16));
    REQUIRE(Checkpoint::open(folder / "empty")->tensors().size() == 1);
}

TEST_CASE("A stopped or failed save leaves nothing", "[checkpoint][save]") {
    const TemporaryFolder folder;
    const auto source = Checkpoint::open(sample);
    SECTION("stopped in the middle") {
        struct StopLater : Progress {
            Cancellation cancellation;
            double most = 0;
            void advance(double done, double total, const std::string& what) override {
                REQUIRE(done <= total);
                REQUIRE(done >= most);
                REQUIRE(what == "writing model.safetensors");
                most = done;
                if (done > total / 2) cancellation.request();
            }
        } progress;
        REQUIRE_THROWS_AS(convert(*source, folder / "out", LoadAs::float32, progress, progress.cancellation), Stopped);
        REQUIRE(progress.most > 0);
    }
    SECTION("the disk is full") {
        rlimit before{};
        ::getrlimit(RLIMIT_FSIZE, &before);
        auto* handler = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{1'000'000, before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto save = [&] { convert_quietly(*source, folder / "out", LoadAs::float32); };
        CHECK_THROWS_MATCHES(save(), Error, IsError(ErrorCode::io, "size limit"));
        ::setrlimit(RLIMIT_FSIZE, &before);
        std::signal(SIGXFSZ, handler);
    }
    SECTION("the disk has not enough space from the start") {
        SaveRequest request;
        request.destination = folder / "out";
        bool asked = false;
        request.tensors.push_back({{"a", DataType::u8, {std::int64_t{1} << 60}}, [&](const auto&) { asked = true; }});
        NoProgress progress;
        REQUIRE_THROWS_MATCHES(save_checkpoint(request, progress, Cancellation()), Error,
                               IsError(ErrorCode::io, "expected 1.15 EB of free space for the weights"));
        REQUIRE_FALSE(asked);
    }
    SECTION("a tensor that gives too few or too many bytes") {
        SaveRequest request;
        request.destination = folder / "out";
        const std::string bytes = GENERATE("abc", "abcde");
        request.tensors.push_back(
            {{"a", DataType::u8, {4}}, [&](const auto& sink) { sink(bytes.data(), bytes.size()); }});
        NoProgress progress;
        REQUIRE_THROWS_MATCHES(save_checkpoint(request, progress, Cancellation()), Error, IsError(ErrorCode::internal));
    }
    SECTION("a name twice, or a name that cannot be") {
        SaveRequest request;
        request.destination = folder / "out";
        request.tensors = {output_tensor("a", at::ones({1})),
                           output_tensor(GENERATE("a", "__metadata__", "\xFF"), at::ones({1}))};
        NoProgress progress;
        REQUIRE_THROWS_MATCHES(save_checkpoint(request, progress, Cancellation()), Error,
                               IsError(ErrorCode::usage, "tensor names"));
    }
    SECTION("the source is cut meanwhile") {
        write_source(folder, 1.0F, "{}");
        const auto cut = Checkpoint::open(folder / "source");
        fs::resize_file(folder / "source/model.safetensors", 40);
        REQUIRE_THROWS_MATCHES(convert_quietly(*cut, folder / "out", LoadAs::float16), Error,
                               IsError(ErrorCode::mismatch, "cut"));
        fs::remove_all(folder / "source");
    }
    REQUIRE(folder.names().empty());
}

TEST_CASE("What is written opens in the official library and in transformers", "[.slow][checkpoint]") {
    const char* python = std::getenv("HEADSCOPE_PYTHON");
    if (python == nullptr) {
        WARN("HEADSCOPE_PYTHON names no Python with torch, safetensors and transformers: not checked");
        return;
    }
    const TemporaryFolder folder;
    const auto check = [&](const fs::path& written, const fs::path& source, const std::string& dtype) {
        const std::string command = std::string(python) + " '" +
                                    (source_folder / "tests/oracle/generate/checkpoint_files.py").string() +
                                    "' --check '" + written.string() + "' '" + source.string() + "' " + dtype;
        INFO(command);
        REQUIRE(std::system(command.c_str()) == 0);
    };
    const auto source = Checkpoint::open(sample);
    convert_quietly(*source, folder / "f32", LoadAs::float32);
    check(folder / "f32", sample, "float32");
    convert_quietly(*source, folder / "f16", LoadAs::float16, 1'000'000);
    check(folder / "f16", sample, "float16");
    fs::create_directory(folder / "types");
    fs::copy_file(golden / "types.safetensors", folder / "types/model.safetensors");
    convert_quietly(*Checkpoint::open(folder / "types"), folder / "f64", LoadAs::float64);
    check(folder / "f64", folder / "types", "float64");
}

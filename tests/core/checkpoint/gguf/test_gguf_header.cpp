// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/checkpoint/gguf/header.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/gguf/gguf_builder.h"

using namespace headscope;
using namespace headscope::checkpoint::gguf;
using namespace headscope::test;

namespace {

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4K = 12;

Header read(const std::string& bytes) {
    const TemporaryFolder folder;
    return read_header(InputFile(write_file(folder / "x.gguf", bytes)));
}

void refused(const std::string& bytes, const std::string& part, ErrorCode code = ErrorCode::format) {
    INFO(bytes.substr(0, 200));
    REQUIRE_THROWS_MATCHES(read(bytes), Error, IsError(code, part));
}

GgufBuilder small_file() {
    GgufBuilder file;
    file.key("general.architecture", "llama").key("a.count", 7).key("a.share", 0.5F).key("a.flag", true);
    file.key("a.names", std::vector<std::string>{"x", "", "yz"}).key("a.numbers", std::vector<std::int32_t>{-1, 2});
    file.tensor("one", {3, 2}, kF32, std::string(24, '\1')).tensor("two", {256, 2, 3}, kQ4K, std::string(864, '\2'));
    return file;
}

/// A value of this type's bytes.
GgufValueBytes value(std::uint32_t type, const std::string& bytes) {
    return GgufValueBytes(little(type) + bytes);
}

}  // namespace

TEST_CASE("A GGUF header gives keys their values and tensors their places", "[checkpoint][gguf]") {
    for (const std::uint32_t version : {2U, 3U}) {
        GgufBuilder file = small_file();
        file.version = version;
        const Header header = read(file.bytes());
        CHECK(header.version == version);
        KeyReader keys(header.metadata);
        CHECK(keys.text("general.architecture") == "llama");
        CHECK(keys.integer("a.count", 0, 10) == 7);
        CHECK(keys.number("a.share") == 0.5);
        CHECK(keys.boolean_or("a.flag", false));
        CHECK(*keys.texts("a.names") == std::vector<std::string>{"x", "", "yz"});
        CHECK(keys.array("a.numbers")->integer(0) == -1);
        CHECK(keys.unread("").empty());
        const Tensor& two = header.tensors.at("two");
        CHECK(two.shape == std::vector<std::int64_t>{3, 2, 256});
        CHECK(two.bytes == 864);
        CHECK(two.begin % 32 == 0);
        CHECK(two.begin == header.tensors.at("one").begin + 32);
    }
}

TEST_CASE("Values of every GGUF type are read", "[checkpoint][gguf]") {
    GgufBuilder file;
    file.key("u8", value(0, "\xFF")).key("i8", value(1, "\xFF")).key("u16", value(2, little<std::uint16_t>(65535)));
    file.key("i16", value(3, little<std::int16_t>(-2))).key("u32", value(4, little<std::uint32_t>(4294967295U)));
    file.key("i32", value(5, little<std::int32_t>(-3))).key("f32", value(6, little(1.5F)));
    file.key("u64", value(10, little<std::uint64_t>(18446744073709551615U)));
    file.key("i64", value(11, little<std::int64_t>(-4))).key("f64", value(12, little(2.5)));
    const std::string inner = little<std::uint32_t>(0) + little<std::uint64_t>(2) + "\x01\x02";
    file.key("nested", value(9, little<std::uint32_t>(9) + little<std::uint64_t>(2) + inner + inner));
    const Header header = read(file.bytes());
    KeyReader metadata(header.metadata);
    CHECK(metadata.integer("u8", 0, 255) == 255);
    CHECK(metadata.integer("i8", -1, 255) == -1);
    CHECK(metadata.integer("u16", 0, 65535) == 65535);
    CHECK(metadata.integer("i16", -9, 0) == -2);
    CHECK(metadata.integer("u32", 0, 4294967295) == 4294967295);
    CHECK(metadata.integer("i32", -9, 0) == -3);
    CHECK(metadata.number("f32") == 1.5);
    CHECK(metadata.integer("i64", -9, 0) == -4);
    CHECK(metadata.number("f64") == 2.5);
    CHECK(metadata.array("nested")->arrays.at(1).integer(1) == 2);
    CHECK_THROWS_MATCHES(metadata.integer("u64", 0, INT64_MAX), Error,
                         IsError(ErrorCode::limit, "1844674407370955161"));
    CHECK_THROWS_MATCHES(metadata.text("u8"), Error, IsError(ErrorCode::format, "\"u8\""));
    CHECK_THROWS_MATCHES(metadata.integer("f32", 0, 9), Error, IsError(ErrorCode::format, "1.5"));
    CHECK_THROWS_MATCHES(metadata.integer("i8", 0, 9), Error, IsError(ErrorCode::limit, "found -1"));
    CHECK_THROWS_MATCHES(metadata.texts("nested"), Error, IsError(ErrorCode::format, "strings"));
    CHECK_THROWS_MATCHES(metadata.integer("none", 0, 9), Error, IsError(ErrorCode::format, "found none"));
}

TEST_CASE("A GGUF file that is cut anywhere is refused", "[checkpoint][gguf]") {
    const std::string bytes = small_file().bytes();
    const TemporaryFolder folder;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        INFO(size);
        REQUIRE_THROWS_AS(read_header(InputFile(write_file(folder / "x.gguf", bytes.substr(0, size)))), Error);
    }
}

TEST_CASE("A GGUF file with any changed byte is read or refused", "[checkpoint][gguf]") {
    const std::string bytes = small_file().bytes();
    const std::size_t header = small_file().header().size();
    const TemporaryFolder folder;
    std::size_t refusals = 0;
    for (std::size_t i = 0; i < header; ++i) {
        for (const char byte : {'\0', '\x7F', '\xFF'}) {
            std::string changed = bytes;
            changed[i] = byte;
            try {
                read_header(InputFile(write_file(folder / "x.gguf", changed)));
            } catch (const Error& error) {
                CHECK(error.code() != ErrorCode::internal);
                CHECK(error.code() != ErrorCode::memory);
                ++refusals;
            }
        }
    }
    CHECK(refusals > header);
}

TEST_CASE("Wrong GGUF headers are refused with what is wrong", "[checkpoint][gguf]") {
    refused("GGML" + small_file().bytes().substr(4), "which begins with GGUF");
    const auto with_version = [](std::uint32_t version) {
        GgufBuilder file = small_file();
        file.version = version;
        return file.bytes();
    };
    refused(with_version(1), "found version 1", ErrorCode::unsupported);
    refused(with_version(4), "found version 4", ErrorCode::unsupported);
    refused(with_version(0x03000000), "big-endian", ErrorCode::unsupported);

    GgufBuilder file = small_file();
    refused(file.key("a.count", 8).bytes(), "expected each key once");
    file = small_file();
    refused(file.tensor("one", {3, 2}, kF32, std::string(24, '\1')).bytes(), "expected each tensor once");
    file = GgufBuilder();
    refused(file.key("x", value(7, "\2")).bytes(), "expected 0 or 1");
    file = GgufBuilder();
    refused(file.key("x", value(13, "x")).bytes(), "found type 13", ErrorCode::unsupported);
    file = GgufBuilder();
    refused(file.key("", 1).bytes(), "expected a name");
    file = GgufBuilder();
    refused(file.key("x", value(8, little<std::uint64_t>(UINT64_MAX))).bytes(), "key \"x\"", ErrorCode::limit);
    file = GgufBuilder();
    refused(file.key("x", value(9, little<std::uint32_t>(10) + little<std::uint64_t>(UINT64_MAX / 4))).bytes(),
            "expected at most 0 elements");
    file = GgufBuilder();
    std::string deep;
    for (int i = 0; i < 9; ++i) deep += little<std::uint32_t>(9) + little<std::uint64_t>(1);
    refused(file.key("x", value(9, deep)).bytes(), "deep", ErrorCode::limit);
    file = small_file();
    file.tensor_count = 500'001;
    refused(file.bytes(), "500 000 tensors", ErrorCode::limit);
    file = small_file();
    file.key_count = 99'999;
    refused(file.bytes(), "keys in the bytes that follow");
}

TEST_CASE("Wrong tensors of a GGUF header are refused by name", "[checkpoint][gguf]") {
    const auto with = [](const std::vector<std::uint64_t>& shape, std::uint32_t type, std::uint64_t offset) {
        return small_file().tensor_at("bad", shape, type, offset).bytes();
    };
    refused(with({255}, kQ4K, 0), "rows of whole blocks, 256 numbers of Q4_K");
    refused(with({1, 1, 1, 1, 1}, kF32, 0), "found 5");
    refused(with({1ULL << 63U}, kF32, 0), "below 2^63");
    refused(with({0, 1ULL << 40U}, kF32, 0), "sizes from 1");
    refused(with({1ULL << 32U, 1ULL << 32U}, kF32, 0), "below 2^63");
    refused(with({1ULL << 61U}, kF32, 0), "below 2^63");
    refused(with({1ULL << 40U}, kF32, 0), "cut short");
    refused(with({1}, kF32, 1ULL << 63U), "cut short");
    refused(with({1}, kF32, 4), "multiple of 32");
    refused(with({1}, kF32, 0), "expected bytes of its own");
    for (const auto& [number, text] :
         std::vector<std::pair<std::uint32_t, std::string>>{{4, "Q4_2 (number 4), removed"},
                                                            {5, "Q4_3"},
                                                            {9, "Q8_1 (number 9)"},
                                                            {15, "Q8_K"},
                                                            {31, "Q4_0_4_4"},
                                                            {33, "Q4_0_8_8"},
                                                            {36, "IQ4_NL_4_4"},
                                                            {38, "IQ4_NL_8_8"},
                                                            {41, "Q1_0"},
                                                            {77, "number 77"}})
        refused(with({256}, number, 0), text, ErrorCode::unsupported);
    refused(with({256}, 4, 0), "tensor \"bad\"", ErrorCode::unsupported);
}

TEST_CASE("Tensors lie at multiples of general.alignment", "[checkpoint][gguf]") {
    const auto with = [](const GgufValueBytes& alignment, std::uint64_t step) {
        GgufBuilder file;
        file.alignment = step;
        file.key("general.alignment", alignment);
        file.tensor("one", {1}, kF32, std::string(4, '\1')).tensor("two", {1}, kF32, std::string(4, '\2'));
        return file.bytes();
    };
    const Header header = read(with(std::uint32_t{4096}, 4096));
    CHECK(header.tensors.at("one").begin == 4096);
    CHECK(header.tensors.at("two").begin == 8192);
    CHECK(read(with(std::uint32_t{1}, 1)).tensors.at("two").begin % 4096 != 0);
    refused(with(std::uint32_t{48}, 48), "power of two");
    refused(with(std::uint32_t{0}, 32), "general.alignment", ErrorCode::limit);
    refused(with("32", 32), "general.alignment");
}

TEST_CASE("Any split of a GGUF model opens all of them", "[checkpoint][gguf]") {
    const auto split = [](int number, int count, const std::string& tensor) {
        GgufBuilder file;
        file.key("split.no", number).key("split.count", count).key("split.tensors.count", 3);
        if (number == 0) file.key("general.architecture", "llama");
        return file.tensor(tensor, {1}, kF32, std::string(4, '\1')).bytes();
    };
    const TemporaryFolder folder;
    for (int i = 0; i < 3; ++i)
        write_file(folder / ("m-0000" + std::to_string(i + 1) + "-of-00003.gguf"),
                   split(i, 3, "t" + std::to_string(i)));
    for (const char* name : {"m-00001-of-00003.gguf", "m-00003-of-00003.gguf"}) {
        const Files files = open_files(folder / name);
        CHECK(files.files.size() == 3);
        CHECK(files.tensors.size() == 3);
        CHECK(files.tensors.at("t2").file == 2);
        CHECK(KeyReader(files.metadata).text("general.architecture") == "llama");
    }
    const auto fails = [&](const std::string& name, ErrorCode code, const std::string& part) {
        REQUIRE_THROWS_MATCHES(open_files(folder / name), Error, IsError(code, part));
    };
    write_file(folder / "alone.gguf", split(0, 3, "t0"));
    fails("alone.gguf", ErrorCode::mismatch, "NAME-00001-of-00003.gguf");
    write_file(folder / "n-00001-of-00002.gguf", split(0, 2, "t0"));
    fails("n-00001-of-00002.gguf", ErrorCode::io, "n-00002-of-00002.gguf");
    write_file(folder / "n-00002-of-00002.gguf", split(1, 2, "t1"));
    fails("n-00001-of-00002.gguf", ErrorCode::mismatch, "split.tensors.count");
    write_file(folder / "n-00002-of-00002.gguf", split(1, 2, "t0"));
    fails("n-00001-of-00002.gguf", ErrorCode::mismatch, "which another has too");
    write_file(folder / "n-00002-of-00002.gguf", split(0, 2, "t1"));
    fails("n-00001-of-00002.gguf", ErrorCode::mismatch, "split 1 of 2");
}

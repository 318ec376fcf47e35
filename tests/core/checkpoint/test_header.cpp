// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/base/text/text.h"
#include "core/checkpoint/data_type.h"
#include "core/checkpoint/safetensors_header.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;

namespace {

SafetensorsHeader read(const std::string& bytes) {
    const TemporaryFolder folder;
    return read_safetensors_header(InputFile(write_file(folder / "x.safetensors", bytes)));
}

void refused(const std::string& bytes, const std::string& part, ErrorCode code = ErrorCode::format) {
    INFO(bytes.substr(0, 200));
    REQUIRE_THROWS_MATCHES(read(bytes), Error, IsError(code, part));
}

/// A header of one tensor "a" with these fields.
std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
    return "{" + entry("a", type, shape, offsets) + "}";
}

const std::string four(4, '\0');
const std::string eight(8, '\0');

}  // namespace

TEST_CASE("A header gives each tensor its place in the file", "[checkpoint][safetensors]") {
    const std::string header = R"({"__metadata__":{"format":"pt"},)" + entry("b", "I64", "[]", "[4,12]") + "," +
                               entry("a", "BF16", "[2,1]", "[0,4]") + "," + entry("e", "F32", "[0,7]", "[12,12]") + "}";
    const auto read_header = read(safetensors_bytes(header, std::string(12, '\0')));
    REQUIRE(read_header.metadata.at("format") == "pt");
    REQUIRE(read_header.tensors.size() == 3);
    const TensorInfo& a = read_header.tensors.at("a");
    REQUIRE(a.name == "a");
    REQUIRE(a.type == DataType::bf16);
    REQUIRE(a.shape == std::vector<std::int64_t>{2, 1});
    REQUIRE(a.elements == 2);
    REQUIRE(a.begin == 8 + header.size());
    REQUIRE(a.bytes == 4);
    const TensorInfo& b = read_header.tensors.at("b");
    REQUIRE(b.shape.empty());
    REQUIRE(b.elements == 1);
    REQUIRE(b.begin == 8 + header.size() + 4);
    REQUIRE(read_header.tensors.at("e").elements == 0);
}

TEST_CASE("Legal oddities of headers are accepted", "[checkpoint][safetensors]") {
    REQUIRE(read(safetensors_bytes("{}")).tensors.empty());
    // White space before and behind, which the official library takes too (0.8), whatever its description says.
    REQUIRE(read(safetensors_bytes(" \n" + one("F32", "[1]", "[0,4]") + "\t ", four)).tensors.size() == 1);
    REQUIRE(read(safetensors_bytes("{}      ")).tensors.empty());
    REQUIRE(read(safetensors_bytes(" \n{}")).tensors.empty());
    REQUIRE(read(safetensors_bytes(R"({"__metadata__":{}})")).tensors.empty());
    REQUIRE(read(safetensors_bytes(one("F4", "[2,3]", "[0,3]"), "abc")).tensors.at("a").elements == 6);
    REQUIRE(read(safetensors_bytes(one("F6_E2M3", "[4]", "[0,3]"), "abc")).tensors.at("a").elements == 4);
    REQUIRE(read(safetensors_bytes("{" + entry("", "U8", "[4]", "[0,4]") + "}", four)).tensors.count("") == 1);
    REQUIRE(read(safetensors_bytes("{" + entry("\\u0061/../\\n", "U8", "[4]", "[0,4]") + "}", four))
                .tensors.count("a/../\n") == 1);
    // Fields in another order, and dtype spelt with an escape.
    REQUIRE(
        read(safetensors_bytes(R"({"a":{"data_offsets":[0,4],"\u0064type":"F32","shape":[]}})", four)).tensors.size() ==
        1);
}

TEST_CASE("Header lengths that lie are refused before memory is taken", "[checkpoint][safetensors]") {
    refused("", "at least 10 bytes; found 0");
    refused("1234567", "found 7 bytes");
    refused(safetensors_bytes("", ""), "header length 0");
    refused(safetensors_bytes("{}", "", 1), "header length 1");
    refused(safetensors_bytes("{}", "", 3), "within the 2 bytes");
    refused(safetensors_bytes("{}", "", 100'000'000), "within the 2 bytes");
    refused(safetensors_bytes("{}", "", 100'000'001), "header length 100000001");
    for (const std::uint64_t length : {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 8, std::uint64_t{1} << 63U}) {
        refused(safetensors_bytes("{}", "", length), "header length " + std::to_string(length));
    }
}

TEST_CASE("Header texts that are not what they must be are refused", "[checkpoint][safetensors]") {
    refused(safetensors_bytes("[]"), "an object as header");
    refused(safetensors_bytes("12"), "an object as header");
    refused(safetensors_bytes("{}{}"), "byte 10");
    refused(safetensors_bytes(std::string("{}\0\0", 4)), "NUL");
    refused(safetensors_bytes("\xEF\xBB\xBF{}"), "byte order mark");
    refused(safetensors_bytes("{\"\xFF\":1}"), "byte 10] expected valid UTF-8");
    refused(safetensors_bytes("{\"a\":"), "expected JSON");
    refused(safetensors_bytes(R"({"a":1})"), "an object for each tensor; found");
    refused(safetensors_bytes(R"({"a":[1]})"), "an object for each tensor");
    refused(safetensors_bytes(R"({"a":null})"), "found null");
    refused(safetensors_bytes(R"({"a":{}})"), "found no dtype");
    refused(safetensors_bytes(R"({"a":{"dtype":"F32","shape":[]}})"), "found no data_offsets");
    refused(safetensors_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", four), "found \"x\"");
    refused(safetensors_bytes(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four),
            "again");
    refused(safetensors_bytes(
                "{" + entry("a", "U8", "[4]", "[0,4]") + "," + entry("\\u0061", "U8", "[4]", "[4,8]") + "}", eight),
            "found \"a\" again");
    refused(safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})"), "again");
    refused(safetensors_bytes(R"({"__metadata__":{"a":"x","a":"y"}})"), "again");
    refused(safetensors_bytes(R"({"__metadata__":{"a":1}})"), "__metadata__] expected a string");
    refused(safetensors_bytes(R"({"__metadata__":{"a":{"b":"c"}}})"), "expected a string");
    refused(safetensors_bytes(R"({"__metadata__":"x"})"), "expected an object");
    refused(safetensors_bytes("{\"a\":" + std::string(1000, '[')), "an object for each tensor");
}

TEST_CASE("Types, shapes and offsets that lie are refused with the tensor's name", "[checkpoint][safetensors]") {
    refused(safetensors_bytes(one("F33", "[1]", "[0,4]"), four), "tensor \"a\"] expected an element type",
            ErrorCode::unsupported);
    refused(safetensors_bytes(one("f32", "[1]", "[0,4]"), four), "found \"f32\"", ErrorCode::unsupported);
    refused(safetensors_bytes(R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", four), "a string as dtype");
    refused(safetensors_bytes(one("F32", "1", "[0,4]"), four), "an array of whole numbers as shape");
    refused(safetensors_bytes(one("F32", "[1.0]", "[0,4]"), four), "found 1.0");
    refused(safetensors_bytes(one("F32", "[-1]", "[0,4]"), four), "found -1");
    refused(safetensors_bytes(one("F32", "[-1,-1]", "[0,4]"), four), "found -1");
    refused(safetensors_bytes(one("F32", "[\"1\"]", "[0,4]"), four), "whole numbers in shape");
    refused(safetensors_bytes(one("F32", "[[1]]", "[0,4]"), four), "whole numbers in shape");
    refused(safetensors_bytes(one("F32", "[true]", "[0,4]"), four), "found true");
    refused(safetensors_bytes(one("F32", "[1e3]", "[0,4]"), four), "found 1e3");
    refused(safetensors_bytes(one("F32", "[18446744073709551616]", "[0,4]"), four), "18446744073709551616");
    refused(safetensors_bytes(one("F32", "[9223372036854775808]", "[0,4]"), four), "below 2^63");
    refused(safetensors_bytes(one("F32", "[9223372036854775807,3]", "[0,4]"), four), "more");
    refused(safetensors_bytes(one("F32", "[4294967296,4294967296]", "[0,0]")), "more");  // the product wraps to 0
    refused(safetensors_bytes(one("F64", "[288230376151711744]", "[0,0]")), "more");     // times 64 bits wraps to 0
    refused(safetensors_bytes(one("F32", "[2]", "[0,4]"), four), "expected 8 bytes by its shape and type; found 4");
    refused(safetensors_bytes(one("F4", "[3]", "[0,1]"), "x"), "12 bits of F4");
    refused(safetensors_bytes(one("F32", "[1]", "[4,0]"), four), "in order; found 4 and 0");
    refused(safetensors_bytes(one("F32", "[1]", "[0]"), four), "two data_offsets; found 1");
    refused(safetensors_bytes(one("F32", "[1]", "[0,2,4]"), four), "two data_offsets; found more");
    refused(safetensors_bytes(one("F32", "[1]", "[0,-0]"), four), "data_offsets");
    refused(safetensors_bytes(one("F32", "[1]", "[0,5]"), four), "within the 4 bytes");
    refused(safetensors_bytes(one("F32", "[1]", "[18446744073709551612,18446744073709551615]"), four),
            "within the 4 bytes");
    refused(safetensors_bytes(one("F32", "[1]", "{}"), four), "data_offsets");
    std::string ones = "[1";
    for (int i = 0; i < 64; ++i) ones += ",1";
    refused(safetensors_bytes(one("F32", ones + "]", "[0,4]"), four), "64 dimensions", ErrorCode::limit);
}

TEST_CASE("Tensors must cover the file's data exactly once", "[checkpoint][safetensors]") {
    const auto two = [](const std::string& a, const std::string& b) {
        return "{" + entry("a", "U8", "[4]", a) + "," + entry("b", "U8", "[4]", b) + "}";
    };
    REQUIRE(read(safetensors_bytes(two("[4,8]", "[0,4]"), eight)).tensors.size() == 2);
    refused(safetensors_bytes(two("[0,4]", "[0,4]"), four), "overlap");
    refused(safetensors_bytes(two("[0,4]", "[3,7]"), eight), "tensors overlap");
    refused(safetensors_bytes(two("[0,4]", "[5,9]"), std::string(9, 'x')), "hole");
    refused(safetensors_bytes(two("[1,5]", "[5,9]"), std::string(9, 'x')), "hole");
    refused(safetensors_bytes(two("[0,4]", "[4,8]"), std::string(9, 'x')), "1 bytes more");
    refused(safetensors_bytes(two("[0,4]", "[4,8]"), std::string(7, 'x')), "cut short");
    refused(safetensors_bytes("{}", "x"), "1 bytes more");
    refused(safetensors_bytes("{" + entry("a", "U8", "[0]", "[2,2]") + "}", "xx"), "hole");
}

TEST_CASE("Every cut of a file is refused", "[checkpoint][safetensors]") {
    const std::string whole = safetensors_bytes(one("F32", "[1,1]", "[0,4]"), four);
    REQUIRE_NOTHROW(read(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) refused(whole.substr(0, size), "");
}

TEST_CASE("Every changed byte of a header is accepted or refused, never worse", "[checkpoint][safetensors]") {
    const std::string whole = safetensors_bytes(R"({"__metadata__":{"k":"v"},)" + entry("a", "F32", "[1,1]", "[0,4]") +
                                                    "," + entry("b", "U8", "[4]", "[4,8]") + "}",
                                                eight);
    const TemporaryFolder folder;
    int accepted = 0;
    int refusals = 0;
    for (std::size_t i = 0; i < whole.size() - 8; ++i) {
        for (const char byte : std::string("\0\1\"09:[]{},-e \x7F\xFF", 16)) {
            std::string changed = whole;
            changed[i] = byte;
            try {
                const auto header = read_safetensors_header(InputFile(write_file(folder / "x", changed)));
                for (const auto& [name, tensor] : header.tensors) {
                    REQUIRE(tensor.begin + tensor.bytes <= changed.size());
                    REQUIRE(tensor.bytes * 8 == static_cast<std::uint64_t>(tensor.elements * bits(tensor.type)));
                }
                ++accepted;
            } catch (const Error& error) {
                REQUIRE(error.code() != ErrorCode::internal);
                ++refusals;
            }
        }
    }
    REQUIRE(accepted > 100);  // names and metadata may be anything
    REQUIRE(refusals > 1000);
}

TEST_CASE("What the official library refuses is refused, and the rest is accepted but for what is listed",
          "[checkpoint][safetensors]") {
    // Ours alone: each name once, the three fields as an object and nothing else, metadata that is there, numbers of 63
    // bits, and JSON without characters that a strict parser knows nothing of.
    const std::vector<std::string> ours = {" again", "dtype, shape and data_offsets only", "an object for each tensor",
                                           "sizes below 2^63", "__metadata__] expected"};
    const auto path = test::golden_file("checkpoint/headers.json");
    const nlohmann::json cases = read_json_file(path, 1U << 20U, "golden data");
    REQUIRE(cases.size() > 500);
    const TemporaryFolder folder;
    std::size_t both = 0, stricter = 0;
    for (const auto& one_case : cases) {
        std::string bytes;  // written as code points
        for (std::string_view text = one_case.at(0).get_ref<const std::string&>(); !text.empty();) {
            char32_t point = 0;
            text.remove_prefix(decode_utf8(text, point));
            bytes += static_cast<char>(point);
        }
        INFO(escaped(bytes, 1000));
        try {
            read_safetensors_header(InputFile(write_file(folder / "x", bytes)));
            CHECK(one_case.at(1) == true);
            ++both;
        } catch (const Error& error) {
            INFO(error.what());
            CHECK(error.code() != ErrorCode::internal);
            if (one_case.at(1) == false) continue;
            ++stricter;
            CHECK(std::any_of(ours.begin(), ours.end(), [&](const std::string& reason) {
                return std::string_view(error.what()).find(reason) != std::string_view::npos;
            }));
        }
    }
    CHECK(both > 150);
    CHECK(stricter < both);
}

TEST_CASE("Types have the names and sizes that the format gives them", "[checkpoint][safetensors]") {
    for (int i = 0; i <= static_cast<int>(DataType::f64); ++i) {
        const auto type = static_cast<DataType>(i);
        REQUIRE(data_type(name(type)) == type);
    }
    REQUIRE(bits(DataType::f4) == 4);
    REQUIRE(bits(DataType::f6_e3m2) == 6);
    REQUIRE(bits(DataType::c64) == 64);
    REQUIRE_FALSE(data_type("").has_value());
}

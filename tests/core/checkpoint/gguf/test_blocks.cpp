// SPDX-License-Identifier: GPL-3.0-or-later
// GGUF's block types against the package gguf 0.19.0 (tests/oracle/generate/gguf_blocks.py), bit for bit.
#include <bit>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/sha256.h"
#include "core/base/splitmix64.h"
#include "core/checkpoint/gguf/block_tensor.h"
#include "core/checkpoint/gguf/blocks/stored_numbers.h"
#include "tests/oracle/golden.h"

namespace headscope::checkpoint::gguf {
namespace {

constexpr std::int64_t kRows = 3;
constexpr std::int64_t kBlocks = 86;

nlohmann::json golden() {
    std::ifstream file(headscope::test::golden_file("gguf_blocks.json"));
    return nlohmann::json::parse(file);
}

/// The script's finite_scales.
std::vector<std::size_t> high_bytes(const std::string& type) {
    const std::map<std::string, std::vector<std::size_t>> places = {
        {"F32", {3}},     {"Q4_1", {1, 3}}, {"Q5_1", {1, 3}}, {"Q2_K", {81, 83}}, {"Q3_K", {109}},
        {"Q4_K", {1, 3}}, {"Q5_K", {1, 3}}, {"Q6_K", {209}},  {"IQ1_M", {55}},    {"TQ1_0", {53}},
        {"TQ2_0", {65}},  {"MXFP4", {}},    {"NVFP4", {}}};
    const auto found = places.find(type);
    return found == places.end() ? std::vector<std::size_t>{1} : found->second;
}

std::vector<std::uint8_t> test_bytes(BlockType type) {
    const auto size = static_cast<std::size_t>(block_bytes(type));
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kRows * kBlocks) * size);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::uint64_t word = splitmix64((static_cast<std::uint64_t>(type) << 32U) + i / 8 + 1);
        bytes[i] = static_cast<std::uint8_t>(word >> (8 * (i % 8)));
    }
    const std::string type_name(name(type));
    const std::vector<std::size_t> places = high_bytes(type_name);
    for (std::size_t block = 0; block * size < bytes.size(); ++block) {
        for (const std::size_t byte : places) bytes[block * size + byte] &= 0xBFU;
        if (type_name == "MXFP4") bytes[block * size] = static_cast<std::uint8_t>(block % 255);
        if (type_name == "NVFP4") bytes[block * size] = static_cast<std::uint8_t>(block % 256);
    }
    return bytes;
}

std::vector<std::span<const std::byte>> parts_of(const std::vector<std::uint8_t>& bytes) {
    return {std::as_bytes(std::span(bytes))};
}

Tensor test_tensor(BlockType type, std::size_t bytes) {
    return {"blk.0.x", type, {kRows, kBlocks * block_values(type)}, 0, 0, bytes};
}

std::string hash_of(const std::vector<float>& numbers) {
    return sha256_hex(std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)));
}

std::vector<BlockType> all_types() {
    std::vector<BlockType> types;
    for (std::uint32_t number = 0; number < 100; ++number)
        if (const auto type = block_type(number); type && is_dequantized(*type)) types.push_back(*type);
    return types;
}

}  // namespace

TEST_CASE("Every block type expands to gguf's bits", "[checkpoint][gguf]") {
    const nlohmann::json expected = golden();
    REQUIRE(all_types().size() == 26);
    for (const BlockType type : all_types()) {
        const std::string type_name(name(type));
        INFO(type_name);
        const std::vector<std::uint8_t> bytes = test_bytes(type);
        const auto tensor = block_tensor(test_tensor(type, bytes.size()), "file");
        REQUIRE(tensor->rows() == kRows);
        const std::int64_t columns = tensor->columns();
        std::vector<float> numbers(static_cast<std::size_t>(kRows * columns));
        tensor->check(parts_of(bytes));
        tensor->unpack(parts_of(bytes), 0, kRows, numbers.data());
        for (std::int64_t row = 0; row < kRows; ++row) {
            for (std::int64_t i = 0; i < 4; ++i) {
                char text[9];
                std::snprintf(text, sizeof text, "%08x",
                              std::bit_cast<std::uint32_t>(numbers[static_cast<std::size_t>(row * columns + i)]));
                CHECK(text == expected.at(type_name)
                                  .at("first")
                                  .at(static_cast<std::size_t>(row))
                                  .at(static_cast<std::size_t>(i)));
            }
        }
        CHECK(hash_of(numbers) == expected.at(type_name).at("sha256"));
    }
}

TEST_CASE("Rows of a GGUF tensor expand one at a time, at odd addresses too", "[checkpoint][gguf]") {
    for (const BlockType type : all_types()) {
        INFO(std::string(name(type)));
        const std::vector<std::uint8_t> bytes = test_bytes(type);
        std::vector<std::uint8_t> moved(bytes.size() + 1);
        std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
        const auto tensor = block_tensor(test_tensor(type, bytes.size()), "file");
        const auto columns = static_cast<std::size_t>(tensor->columns());
        std::vector<float> all(kRows * columns), one(columns);
        tensor->unpack(parts_of(bytes), 0, kRows, all.data());
        for (std::int64_t row = 0; row < kRows; ++row) {
            tensor->unpack({std::as_bytes(std::span(moved)).subspan(1)}, row, 1, one.data());
            CHECK(std::memcmp(one.data(), all.data() + static_cast<std::size_t>(row) * columns,
                              columns * sizeof(float)) == 0);
        }
        tensor->unpack(parts_of(bytes), kRows, 0, nullptr);
    }
}

TEST_CASE("Every finite float16 becomes numpy's float32", "[checkpoint][gguf]") {
    std::vector<float> numbers;
    for (std::uint32_t half = 0; half < 1U << 16U; ++half)
        if ((half & 0x7C00U) != 0x7C00U) numbers.push_back(half_value(static_cast<std::uint16_t>(half)));
    CHECK(hash_of(numbers) == golden().at("finite_halves"));
    CHECK(half_value(0x7C00) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(half_value(0xFE00)));
}

TEST_CASE("A scale that is NaN or infinite is refused with its tensor and block", "[checkpoint][gguf]") {
    for (const BlockType type : all_types()) {
        const std::string type_name(name(type));
        INFO(type_name);
        const std::vector<std::uint8_t> bytes = test_bytes(type);
        const auto tensor = block_tensor(test_tensor(type, bytes.size()), "file");
        std::vector<std::size_t> places = high_bytes(type_name);
        if (type_name == "F32" || type_name == "F16" || type_name == "BF16") places.clear();
        const auto size = static_cast<std::size_t>(block_bytes(type));
        for (const std::size_t place : places) {
            std::vector<std::uint8_t> bad = bytes;
            bad[size * 100 + place] |= 0x7CU;
            if (type_name == "IQ1_M") bad[size * 100 + 53] |= 0xF0U;
            CHECK_THROWS_WITH(tensor->check(parts_of(bad)),
                              Catch::Contains("\"blk.0.x\"") && Catch::Contains("block 100 "));
        }
    }
    std::vector<std::uint8_t> bytes = test_bytes(BlockType::mxfp4);
    bytes[17 * 257] = 255;
    CHECK_THROWS_AS(block_tensor(test_tensor(BlockType::mxfp4, bytes.size()), "file")->check(parts_of(bytes)), Error);
}

}  // namespace headscope::checkpoint::gguf

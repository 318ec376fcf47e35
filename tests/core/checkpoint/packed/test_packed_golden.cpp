// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/io/sha256.h"
#include "core/checkpoint/packed/flat_blocks.h"
#include "core/checkpoint/packed/numbers.h"
#include "tests/core/checkpoint/packed/packed_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;

namespace {

std::string hash_of(const std::vector<float>& values) {
    return sha256_hex(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

}  // namespace

TEST_CASE("Every golden folder unpacks to the bits of the specification's formulas", "[checkpoint][packed]") {
    const nlohmann::json all = packed_expectations();
    REQUIRE(all.size() > 35);
    for (const auto& [name, expected] : all.items()) {
        INFO(name);
        const PackedModel model = read_packed_model(name);
        const auto found = model.find();
        REQUIRE(found);
        CHECK(found->format == expected["format"].get<std::string>());
        CHECK(found->tensors.size() == expected["tensors"].size());
        for (const auto& [tensor, wanted] : expected["tensors"].items()) {
            INFO(tensor);
            REQUIRE(found->tensors.count(tensor) == 1);
            const PackedTensor& packed = *found->tensors.at(tensor);
            CHECK(packed.shape() == wanted["shape"].get<std::vector<std::int64_t>>());
            model.check(packed);
            const std::vector<float> values = model.unpack(packed);
            CHECK(hash_of(values) == wanted["sha256"].get<std::string>());
            for (const PackedPart& part : packed.parts()) CHECK(found->consumed.count(part.tensor) == 1);
        }
        for (const auto& [tensor, info] : model.stored) {
            const bool plain = tensor.ends_with("norm.weight") || tensor.ends_with(".bias");
            CHECK((found->consumed.count(tensor) == 1) == !plain);
        }
    }
}

TEST_CASE("Any rows of a packed tensor equal those of the whole", "[checkpoint][packed]") {
    const nlohmann::json all = packed_expectations();
    for (const auto& [name, expected] : all.items()) {
        const PackedModel model = read_packed_model(name);
        const auto found = model.find();
        for (const auto& [tensor, packed] : found->tensors) {
            INFO(name << ' ' << tensor);
            const std::vector<float> whole = model.unpack(*packed);
            const std::int64_t rows = packed->rows(), columns = packed->columns();
            for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1}, rows / 3, rows - 1}) {
                for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, rows - first}) {
                    if (first + count > rows) continue;
                    const std::vector<float> some = model.unpack(*packed, first, count);
                    CHECK((some.empty() ||
                           std::memcmp(some.data(), whole.data() + first * columns, some.size() * sizeof(float)) == 0));
                }
            }
        }
    }
}

TEST_CASE("Small floating-point types become float32 exactly", "[checkpoint][packed]") {
    CHECK(e4m3_values[0x01] == 0x1p-9F);
    CHECK(e4m3_values[0x07] == 7 * 0x1p-9F);
    CHECK(e4m3_values[0x08] == 0x1p-6F);
    CHECK(e4m3_values[0x7E] == 448.0F);
    CHECK(e4m3_values[0xFE] == -448.0F);
    CHECK(std::isnan(e4m3_values[0x7F]));
    CHECK(std::isnan(e4m3_values[0xFF]));
    CHECK(std::signbit(e4m3_values[0x80]));
    CHECK(e8m0_values[0] == 0x1p-127F);
    CHECK(e8m0_values[127] == 1.0F);
    CHECK(e8m0_values[254] == 0x1p127F);
    CHECK(std::isnan(e8m0_values[255]));
    CHECK(float16_value(0x0001) == 0x1p-24F);
    CHECK(float16_value(0x83FF) == -1023 * 0x1p-24F);
    CHECK(float16_value(0x0400) == 0x1p-14F);
    CHECK(float16_value(0x3C00) == 1.0F);
    CHECK(float16_value(0xFBFF) == -65504.0F);
    CHECK(float16_value(0x7C00) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(float16_value(0x7E00)));
    CHECK(std::signbit(float16_value(0x8000)));
    CHECK(bitsandbytes_table(false)[3] == 1.0F);
    CHECK(bitsandbytes_table(false)[9] == -0.0625F / 12.0F);
}

TEST_CASE("Streams of codes are read whole and one at a time alike", "[checkpoint][packed]") {
    std::vector<std::byte> bytes(4 * 8);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
    for (unsigned bits = 1; bits <= 8; ++bits) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{32}}) {
            std::vector<std::uint8_t> codes(count);
            unpack_codes(bytes.data(), bits, count, codes.data());
            for (std::size_t i = 0; i < count; ++i) {
                INFO(bits << " bits, code " << i);
                std::uint32_t code = 0;
                for (unsigned b = 0; b < bits; ++b) {
                    const std::size_t bit = i * bits + b;
                    code |= (std::to_integer<std::uint32_t>(bytes[bit / 8]) >> bit % 8 & 1U) << b;
                }
                CHECK(codes[i] == code);
                CHECK(code_at(bytes.data(), 1, bits, i) == code);
            }
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Products with packed weights against float64 products with the weights that core/checkpoint expands, for every type,
// SIMD target and number of tokens.
#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/checkpoint/gguf/block_type.h"
#include "core/checkpoint/gguf/blocks/unpack.h"
#include "kernels/backend.h"
#include "kernels/packed/packed_product.h"
#include "kernels/packed/reference/product.h"
#include "kernels/parallel.h"
#include "tests/kernels/forced.h"

using namespace headscope::kernels;
using headscope::kernels::testing::Forced;
namespace gguf = headscope::checkpoint::gguf;

namespace {

constexpr double kEpsilon = 0x1p-24;
/// Roundings of an expanded weight: its scale, the product with the integer, the difference.
constexpr double kUnpackRoundings = 3;
constexpr float kCanary = 4321.0F;

constexpr PackedType kTypes[] = {
    PackedType::f16,   PackedType::q4_0,    PackedType::q4_1,  PackedType::q5_0,    PackedType::q5_1,
    PackedType::q8_0,  PackedType::q2_k,    PackedType::q3_k,  PackedType::q4_k,    PackedType::q5_k,
    PackedType::q6_k,  PackedType::iq1_s,   PackedType::iq1_m, PackedType::iq2_xxs, PackedType::iq2_xs,
    PackedType::iq2_s, PackedType::iq3_xxs, PackedType::iq3_s, PackedType::iq4_nl,  PackedType::iq4_xs,
    PackedType::bf16,  PackedType::tq1_0,   PackedType::tq2_0, PackedType::mxfp4,   PackedType::nvfp4};

gguf::BlockType stored_type(PackedType type) {
    return *gguf::block_type(static_cast<std::uint32_t>(type));
}

/// Random blocks whose scales are finite, x and bias, with unused numbers between.
struct Case {
    Case(PackedType of, std::int64_t row_count, std::int64_t column_count, std::int64_t token_count, unsigned seed = 1)
        : type(of), rows(row_count), columns(column_count), tokens(token_count), random(seed) {
        const PackedLayout& layout = *packed_layout(type);
        const std::int64_t count = rows * columns / layout.values;
        bytes.resize(static_cast<std::size_t>(count * layout.bytes) + 1);
        for (std::int64_t i = 0; i < count; ++i) draw(blocks() + i * layout.bytes, layout.bytes);
        std::normal_distribution<float> normal;
        for (std::int64_t i = 0; i < tokens * x_stride(); ++i)
            x.push_back(i % x_stride() < columns ? normal(random) : std::nanf(""));
        for (std::int64_t i = 0; i < rows; ++i) bias.push_back(normal(random));
    }

    void draw(std::uint8_t* block, std::int64_t size) {
        std::uniform_int_distribution<int> byte(0, 255);
        do {
            for (std::int64_t i = 0; i < size; ++i) block[i] = static_cast<std::uint8_t>(byte(random));
            if (type == PackedType::f16 && (block[1] & 0x7CU) == 0x7CU) block[1] = 0;
            if (type == PackedType::bf16) block[1] = (block[1] & 0x81U) | 0x3CU;  // from 2^-7 to 2^2
            if (type == PackedType::mxfp4) block[0] = static_cast<std::uint8_t>(100 + block[0] % 50);
        } while (gguf::first_bad_scale(stored_type(type), block, 1) >= 0);
    }

    std::int64_t x_stride() const { return columns + 3; }
    std::int64_t y_stride() const { return rows + 2; }
    std::uint8_t* blocks() { return bytes.data() + 1; }  // an odd address, mostly

    PackedProduct product(std::vector<float>& y, bool biased) {
        y.assign(static_cast<std::size_t>(tokens * y_stride()), kCanary);
        return {type,     blocks(),  rows, columns, x.data(), tokens, x_stride(), biased ? bias.data() : nullptr,
                y.data(), y_stride()};
    }
    std::vector<float> run(bool biased = false) {
        std::vector<float> y;
        packed_product(product(y, biased));
        return y;
    }

    PackedType type;
    std::int64_t rows, columns, tokens;
    std::mt19937 random;
    std::vector<std::uint8_t> bytes;
    std::vector<float> x, bias;
};

/// Largest share of the allowed error that `y` takes.
double share_of_bound(Case& work, const std::vector<float>& y, bool biased) {
    const PackedLayout& layout = *packed_layout(work.type);
    const std::int64_t blocks = work.columns / layout.values;
    const auto unpack = gguf::unpack_blocks(stored_type(work.type));
    std::vector<float> expanded(static_cast<std::size_t>(work.columns));
    std::vector<double> sizes(expanded.size());
    const double roundings = static_cast<double>(packed_product_roundings(work.columns)) + kUnpackRoundings;
    double largest = 0.0;
    for (std::int64_t row = 0; row < work.rows; ++row) {
        const std::uint8_t* from = work.blocks() + row * blocks * layout.bytes;
        unpack(from, blocks, expanded.data());
        for (std::int64_t i = 0; i < work.columns; ++i) {
            const auto weight =
                reference::packed_weight(work.type, from + i / layout.values * layout.bytes, i % layout.values);
            const double size = std::abs(weight.scaled) + std::abs(weight.offset);
            sizes[static_cast<std::size_t>(i)] = size;
            const double off = std::abs(weight.scaled - weight.offset - double{expanded[static_cast<std::size_t>(i)]});
            if (!(off <= kUnpackRoundings * kEpsilon * size)) return INFINITY;  // the reference is wrong
        }
        for (std::int64_t token = 0; token < work.tokens; ++token) {
            double sum = biased ? double{work.bias[static_cast<std::size_t>(row)]} : 0.0, size = std::abs(sum);
            for (std::int64_t i = 0; i < work.columns; ++i) {
                const double x = work.x[static_cast<std::size_t>(token * work.x_stride() + i)];
                sum += double{expanded[static_cast<std::size_t>(i)]} * x;
                size += sizes[static_cast<std::size_t>(i)] * std::abs(x);
            }
            const double error = std::abs(double{y[static_cast<std::size_t>(token * work.y_stride() + row)]} - sum);
            if (!(error <= roundings * kEpsilon * size)) return INFINITY;
            if (size > 0.0) largest = std::max(largest, error / (roundings * kEpsilon * size));
        }
    }
    for (std::int64_t token = 0; token < work.tokens; ++token)
        for (std::int64_t i = work.rows; i < work.y_stride(); ++i)
            if (y[static_cast<std::size_t>(token * work.y_stride() + i)] != kCanary) return INFINITY;
    return largest;
}

void check(PackedType type, std::int64_t rows, std::int64_t columns, std::int64_t tokens, bool biased) {
    Case work(type, rows, columns, tokens, static_cast<unsigned>(rows * columns + tokens));
    INFO(packed_layout(type)->name << " [" << rows << ", " << columns << "], " << tokens << " tokens, bias " << biased);
    CHECK(share_of_bound(work, work.run(biased), biased) <= 1.0);
}

/// Number of weights by which products with unit vectors, `tokens` at once, differ from the expansion.
std::int64_t wrong_weights(PackedType type, std::int64_t rows, std::int64_t columns, std::int64_t tokens) {
    Case work(type, rows, columns, tokens, static_cast<unsigned>(100 + tokens));
    std::vector<float> expanded(static_cast<std::size_t>(rows * columns));
    gguf::unpack_blocks(stored_type(type))(work.blocks(), rows * columns / packed_layout(type)->values,
                                           expanded.data());
    std::int64_t wrong = 0;
    for (std::int64_t first = 0; first < columns; first += tokens) {
        const std::int64_t count = std::min(tokens, columns - first);
        std::fill(work.x.begin(), work.x.end(), 0.0F);
        for (std::int64_t token = 0; token < count; ++token)
            work.x[static_cast<std::size_t>(token * work.x_stride() + first + token)] = 1.0F;
        const std::vector<float> y = work.run();
        for (std::int64_t token = 0; token < count; ++token) {
            for (std::int64_t row = 0; row < rows; ++row) {
                const float expected = expanded[static_cast<std::size_t>(row * columns + first + token)];
                if (y[static_cast<std::size_t>(token * work.y_stride() + row)] != expected) ++wrong;
            }
        }
    }
    return wrong;
}

}  // namespace

TEST_CASE("packed products agree with products of expanded weights", "[packed]") {
    for (const PackedType type : kTypes) {
        const std::int64_t values = packed_layout(type)->values;
        for (std::int64_t tokens = 1; tokens <= 9; ++tokens) check(type, 5, 3 * std::max(values, 64L), tokens, true);
        for (const std::int64_t blocks : {1, 2, 7, 8, 9, 17}) check(type, 3, blocks * values, 2, false);
        check(type, 131, 1024, 1, true);
        check(type, 19, 4352, 7, false);   // several chunks of columns
        check(type, 18, 17'152, 1, true);  // also for one token
    }
    for (const PackedType type : {PackedType::f16, PackedType::bf16})
        for (const std::int64_t columns : {1, 15, 16, 31, 33, 500}) check(type, 4, columns, 3, true);
}

TEST_CASE("every backend multiplies packed weights alike", "[packed][targets]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        for (const PackedType type : kTypes) {
            check(type, 7, 5 * std::max<std::int64_t>(packed_layout(type)->values, 3), 7, true);
            CHECK(last_backend() == name);
        }
    }
}

TEST_CASE("products with unit vectors are the expanded weights", "[packed][targets]") {
    for (const PackedType type : kTypes) {
        INFO(packed_layout(type)->name);
        const std::int64_t values = std::max<std::int64_t>(packed_layout(type)->values, 32);
        for (std::int64_t tokens = 1; tokens <= 8; ++tokens) CHECK(wrong_weights(type, 12, 3 * values, tokens) == 0);
        for (const std::string& name : available_backends()) {
            const Forced forced(name);
            INFO("backend " << name);
            CHECK(wrong_weights(type, 5, values, 7) == 0);
        }
    }
}

TEST_CASE("every float16 is read exactly by every backend", "[packed][targets]") {
    constexpr std::int64_t kRows = 1 << 16;
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        for (const std::int64_t columns : {1, 32}) {
            std::vector<std::uint16_t> halves(static_cast<std::size_t>(kRows * columns));
            for (std::int64_t i = 0; i < kRows; ++i)
                halves[static_cast<std::size_t>(i * columns + i % columns)] = static_cast<std::uint16_t>(i);
            const std::vector<float> x(static_cast<std::size_t>(columns), 1.0F);
            std::vector<float> y(kRows);
            packed_product(
                {PackedType::f16, halves.data(), kRows, columns, x.data(), 1, columns, nullptr, y.data(), kRows});
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < kRows; ++i) {
                const std::uint8_t bytes[2] = {static_cast<std::uint8_t>(i & 255), static_cast<std::uint8_t>(i >> 8)};
                const double expected = reference::packed_weight(PackedType::f16, bytes, 0).scaled;
                const double found = y[static_cast<std::size_t>(i)];
                if (std::isnan(expected) ? !std::isnan(found) : found != expected) ++wrong;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("packed products have the same bits for every thread count, row range and number of tokens", "[packed]") {
    for (const PackedType type : kTypes) {
        INFO(packed_layout(type)->name);
        Case work(type, 333, 2304, 7);
        set_threads(1);
        const std::vector<float> one = work.run(true);
        for (const int number : {2, 5}) {
            set_threads(number);
            CHECK(work.run(true) == one);
        }
        set_threads(0);

        std::vector<float> unused, part(40);
        PackedProduct product = work.product(unused, true);
        const PackedLayout& layout = *packed_layout(type);
        product.blocks = work.blocks() + 100 * work.columns / layout.values * layout.bytes;
        product.rows = product.y_stride = 40;
        product.bias += 100;
        product.y = part.data();
        product.tokens = 1;
        for (std::int64_t token = 0; token < work.tokens; ++token) {
            packed_product(product);
            product.x += product.x_stride;
            CHECK(std::memcmp(part.data(), one.data() + token * work.y_stride() + 100, 40 * sizeof(float)) == 0);
        }
    }
}

TEST_CASE("scales of zero, subnormal scales and values that are not finite keep their meaning", "[packed]") {
    Case work(PackedType::q4_k, 3, 256, 1);
    const std::uint8_t smallest[4] = {1, 0, 1, 0};  // 2^-24
    std::memset(work.blocks(), 0, 144);
    std::memcpy(work.blocks() + 144, smallest, 4);
    work.blocks()[2 * 144 + 1] = 0x7E;  // NaN
    std::vector<float> y = work.run();
    CHECK(y[0] == 0.0F);
    CHECK(std::abs(y[1]) > 0.0F);
    CHECK(std::isnan(y[2]));

    Case broken(PackedType::q6_k, 2, 512, 2);
    broken.x[5] = std::nanf("");
    y = broken.run();
    CHECK(std::isnan(y[0]));
    CHECK(std::isfinite(y[static_cast<std::size_t>(broken.y_stride())]));
}

TEST_CASE("packed products refuse types and shapes that do not fit", "[packed]") {
    CHECK(packed_product_supported(PackedType::q4_k));
    CHECK_FALSE(packed_product_supported(static_cast<PackedType>(9)));  // Q8_1
    for (const PackedType type : kTypes) {
        const gguf::BlockType stored = stored_type(type);
        CHECK(packed_layout(type)->name == gguf::name(stored));
        CHECK(packed_layout(type)->values == gguf::block_values(stored));
        CHECK(packed_layout(type)->bytes == gguf::block_bytes(stored));
    }
    Case work(PackedType::q4_k, 2, 512, 2);
    std::vector<float> y;
    const PackedProduct fitting = work.product(y, false);
    const auto refused = [&](const auto& change) {
        PackedProduct product = fitting;
        change(product);
        CHECK_THROWS_AS(packed_product(product), Error);
    };
    refused([](PackedProduct& p) { p.type = static_cast<PackedType>(9); });
    refused([](PackedProduct& p) { p.columns = p.x_stride = 288; });
    refused([](PackedProduct& p) { p.columns = 0; });
    refused([](PackedProduct& p) { p.rows = 0; });
    refused([](PackedProduct& p) { p.tokens = 0; });
    refused([](PackedProduct& p) { p.x_stride = 511; });
    refused([](PackedProduct& p) { p.y_stride = 1; });
    refused([](PackedProduct& p) { p.blocks = nullptr; });
    refused([](PackedProduct& p) { p.x = nullptr; });
    refused([](PackedProduct& p) { p.y = nullptr; });
    CHECK(std::count(y.begin(), y.end(), kCanary) == static_cast<std::ptrdiff_t>(y.size()));
    CHECK_NOTHROW(packed_product(fitting));
}

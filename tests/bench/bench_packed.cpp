// SPDX-License-Identifier: GPL-3.0-or-later
// Decoding with weights that stay in GGUF blocks: bench_packed [rows] [columns] [threads] [rounds].
//
// For each type, one token times a matrix (by default [16384, 4096]): gigabytes of blocks and billions of weights a
// second. Ratios: how many times as fast as expanding each row with core/checkpoint and multiplying it; the speed of a
// plain copy of the same bytes that is reached; tokens a second of 4 and 8 tokens at once to those of one. Contenders
// in turns; medians of the rounds' ratios. Wall time; with HEADSCOPE_BENCH_CPU_TIME set, the process's processor time,
// which a busy machine disturbs less (use one thread then).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/process/machine.h"
#include "core/checkpoint/gguf/block_type.h"
#include "core/checkpoint/gguf/blocks/unpack.h"
#include "kernels/backend.h"
#include "kernels/packed/packed_product.h"
#include "kernels/parallel.h"

namespace {

using namespace headscope::kernels;
namespace gguf = headscope::checkpoint::gguf;

constexpr std::int64_t kMostTokens = 8;
constexpr std::size_t kAlignment = 64;

double now() {
    static const bool processor = std::getenv("HEADSCOPE_BENCH_CPU_TIME") != nullptr;
    timespec t{};
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Work>
double seconds(const Work& work) {
    const double begin = now();
    work();
    return now() - begin;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

struct Matrix {
    PackedType type = PackedType::f16;
    std::int64_t rows = 0, columns = 0, row_bytes = 0;
    std::vector<std::uint8_t> blocks, copied;
    std::vector<float> x, y;

    /// [kMostTokens, columns] at a multiple of 64 bytes.
    const float* tokens_begin() {
        void* begin = x.data();
        std::size_t space = x.size() * sizeof(float);
        return static_cast<const float*>(std::align(kAlignment, sizeof(float), begin, space));
    }
    PackedProduct product(std::int64_t tokens) {
        return {type, blocks.data(), rows, columns, tokens_begin(), tokens, columns, nullptr, y.data(), rows};
    }
};

/// A random block with finite scales.
void draw(PackedType type, std::uint8_t* block, std::int64_t size, std::mt19937_64& random) {
    const bool is_plain = packed_layout(type)->values == 1;
    do {
        for (std::int64_t i = 0; i < size; ++i) block[i] = random() & (is_plain ? 0x3FU : 0xFFU);
        if (type == PackedType::mxfp4) block[0] = 100 + block[0] % 50;
    } while (gguf::first_bad_scale(*gguf::block_type(static_cast<std::uint32_t>(type)), block, 1) >= 0);
}

Matrix random_matrix(PackedType type, std::int64_t rows, std::int64_t columns) {
    const PackedLayout& layout = *packed_layout(type);
    Matrix matrix;
    matrix.type = type;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.row_bytes = columns / layout.values * layout.bytes;
    matrix.blocks.resize(static_cast<std::size_t>(rows * matrix.row_bytes));
    matrix.copied.resize(matrix.blocks.size());
    std::mt19937_64 random(1);
    // All rows have the same bytes.
    for (std::int64_t at = 0; at < matrix.row_bytes; at += layout.bytes)
        draw(type, matrix.blocks.data() + at, layout.bytes, random);
    for (std::int64_t row = 1; row < rows; ++row)
        std::memcpy(matrix.blocks.data() + row * matrix.row_bytes, matrix.blocks.data(),
                    static_cast<std::size_t>(matrix.row_bytes));
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < kMostTokens * columns + 16; ++i) matrix.x.push_back(normal(random));
    matrix.y.resize(static_cast<std::size_t>(kMostTokens * rows));
    return matrix;
}

float dot(const float* a, const float* b, std::int64_t size) {
    constexpr std::int64_t kSums = 32;
    std::array<float, kSums> sums{};
    for (std::int64_t i = 0; i + kSums <= size; i += kSums)
        for (std::int64_t k = 0; k < kSums; ++k) sums[static_cast<std::size_t>(k)] += a[i + k] * b[i + k];
    float total = 0.0F;
    for (const float sum : sums) total += sum;
    return total;
}

void expand_and_multiply(Matrix& matrix) {
    const auto unpack = gguf::unpack_blocks(*gguf::block_type(static_cast<std::uint32_t>(matrix.type)));
    const std::int64_t blocks = matrix.columns / packed_layout(matrix.type)->values;
    std::vector<std::vector<float>> buffers(static_cast<std::size_t>(threads()));
    parallel_for(matrix.rows, [&](std::int64_t row, int worker) {
        std::vector<float>& buffer = buffers[static_cast<std::size_t>(worker)];
        buffer.resize(static_cast<std::size_t>(matrix.columns));
        unpack(matrix.blocks.data() + row * matrix.row_bytes, blocks, buffer.data());
        matrix.y[static_cast<std::size_t>(row)] = dot(buffer.data(), matrix.tokens_begin(), matrix.columns);
    });
}

void copy(Matrix& matrix) {
    constexpr std::int64_t kPieces = 64;
    const auto size = static_cast<std::int64_t>(matrix.blocks.size());
    parallel_for(kPieces, [&](std::int64_t piece, int) {
        const std::int64_t begin = size * piece / kPieces, end = size * (piece + 1) / kPieces;
        std::memcpy(matrix.copied.data() + begin, matrix.blocks.data() + begin, static_cast<std::size_t>(end - begin));
    });
}

void measure(PackedType type, std::int64_t rows, std::int64_t columns, int rounds) {
    Matrix matrix = random_matrix(type, rows, columns);
    std::vector<double> one, to_expanded, to_copy, four, eight;
    for (int round = 0; round < rounds + 1; ++round) {
        const auto fused = [&](std::int64_t tokens) {
            return seconds([&] { packed_product(matrix.product(tokens)); });
        };
        const double first = fused(1), copied = seconds([&] { copy(matrix); });
        const double expanded = seconds([&] { expand_and_multiply(matrix); });
        const double of_four = fused(4), of_eight = fused(8);
        if (round == 0) continue;  // page faults
        one.push_back(first);
        to_expanded.push_back(expanded / first);
        to_copy.push_back(copied / first);
        four.push_back(4 * first / of_four);
        eight.push_back(8 * first / of_eight);
    }
    const double time = median(one), bytes = static_cast<double>(matrix.blocks.size());
    std::printf("%-7s %8.2f GB/s %8.2f Gweights/s %8.2f x expanding %8.2f of a copy; 4 tokens %5.2f, 8 tokens %5.2f\n",
                std::string(packed_layout(type)->name).c_str(), 1e-9 * bytes / time,
                1e-9 * static_cast<double>(rows * columns) / time, median(to_expanded), median(to_copy), median(four),
                median(eight));
    std::fflush(stdout);
}

int run(const std::vector<std::string>& words) {
    const auto number = [&words](std::size_t at, std::int64_t fallback) {
        return words.size() > at ? std::stoll(words[at]) : fallback;
    };
    const std::int64_t rows = number(0, 16'384), columns = number(1, 4096);
    set_threads(static_cast<int>(number(2, 0)));
    std::printf("%s, %d threads, %s, [%lld, %lld]\n", headscope::processor_name().c_str(), threads(),
                available_backends().front().c_str(), static_cast<long long>(rows), static_cast<long long>(columns));
    for (const PackedType type :
         {PackedType::q4_k,    PackedType::q5_k,  PackedType::q6_k,    PackedType::q8_0,   PackedType::q4_0,
          PackedType::q4_1,    PackedType::q5_0,  PackedType::q5_1,    PackedType::q2_k,   PackedType::q3_k,
          PackedType::iq1_s,   PackedType::iq1_m, PackedType::iq2_xxs, PackedType::iq2_xs, PackedType::iq2_s,
          PackedType::iq3_xxs, PackedType::iq3_s, PackedType::iq4_nl,  PackedType::iq4_xs, PackedType::mxfp4,
          PackedType::nvfp4,   PackedType::tq1_0, PackedType::tq2_0,   PackedType::bf16,   PackedType::f16})
        measure(type, rows, columns, static_cast<int>(number(3, 9)));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
// What the softmax branch of NAtS-L costs by the share of linear chunks: bench_natsl [length] [linear heads] [softmax
// heads] [key size] [value size] [chunk] [threads]; sizes are a softmax head's.
//
// For 0, 50, 90 and 100 % of linear chunks, drawn for each linear head: milliseconds of reading and of the way back,
// with and without the gradient of chunks, operations of the matrix products, and all of it beside the pairs that are
// visible, relative to no linear chunk. The gradient of hidden chunks, too, computes every pair. Best of five rounds,
// the shares in turns. Wall time; with HEADSCOPE_BENCH_CPU_TIME set, the process's processor time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/flop_counter.h"
#include "kernels/key_ranges.h"
#include "kernels/parallel.h"

using namespace headscope::kernels;

namespace {

double now() {
    static const bool processor = std::getenv("HEADSCOPE_BENCH_CPU_TIME") != nullptr;
    timespec t{};
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// In [0, 1).
double drawn(std::uint32_t& seed) {
    seed = seed * 1664525U + 1013904223U;
    return static_cast<double>(seed >> 8U) * 0x1p-24;
}

/// [1, heads, length, size] in memory [length, heads, size], numbers in [-1, 1).
struct Heads {
    std::vector<float> values;
    std::int64_t heads, length, size;

    Heads(std::int64_t head_count, std::int64_t tokens, std::int64_t numbers, std::uint32_t seed)
        : values(static_cast<std::size_t>(head_count * tokens * numbers)),
          heads(head_count),
          length(tokens),
          size(numbers) {
        for (float& x : values) x = static_cast<float>(2.0 * drawn(seed) - 1.0);
    }
    TensorView view() const {
        return {values.data(), ElementType::float32, 1, heads, length, size, length * heads * size, size, heads * size};
    }
    MutableView target() { return {values.data(), ElementType::float32, length * heads * size, size, heads * size}; }
};

enum Part { kRead, kBack, kBackWithChunks, kBackWithAll, kParts };

struct Share {
    double linear;
    ScoreRule rule;
    double pairs = 0;
    double seconds[kParts] = {1e300, 1e300, 1e300, 1e300};
    std::int64_t flops[kParts] = {};
};

/// Pairs that some head sees, over all heads.
double visible_pairs(const ScoreRule& rule, std::int64_t heads, std::int64_t length) {
    double pairs = 0;
    for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < length; ++i) {
            for_key_ranges(rule, {length, 0, length}, 0, h, heads, i, [&](std::int64_t begin, std::int64_t end) {
                pairs += static_cast<double>(std::max<std::int64_t>(end - begin, 0));
            });
        }
    }
    return pairs;
}

}  // namespace

int main(int count, char** arguments) {
    const auto argument = [&](int n, std::int64_t usual) { return count > n ? std::atoll(arguments[n]) : usual; };
    const std::int64_t length = argument(1, 8192), linear_heads = argument(2, 6), heads = argument(3, 12);
    const std::int64_t key_size = argument(4, 64), value_size = argument(5, 128), chunk = argument(6, 64);
    set_threads(static_cast<int>(argument(7, 2)));
    if (length < 1 || chunk < 1 || linear_heads < 1 || heads % linear_heads != 0) {
        std::fprintf(stderr, "expected a length, a chunk, and softmax heads that are a multiple of the linear ones\n");
        return 1;
    }
    const Heads q(heads, length, key_size, 1), k(heads, length, key_size, 2), v(heads, length, value_size, 3);
    const Heads gradient(heads, length, value_size, 4);
    Heads output(heads, length, value_size, 5), dq = q, dk = k, dv = v;
    const auto rows = static_cast<std::size_t>(heads * length);
    std::vector<float> shift(rows), factor(rows);
    const SoftmaxRows constants{shift.data(), factor.data()};
    const std::int64_t chunks = (length + chunk - 1) / chunk;
    std::vector<float> by_chunk(static_cast<std::size_t>(heads * chunks));

    std::vector<Share> shares;
    for (const double linear : {0.0, 0.5, 0.9, 1.0}) {
        Share share{linear, {}};
        share.rule.scale = 1.0 / std::sqrt(static_cast<double>(key_size));
        share.rule.blocks.block_size = chunk;
        share.rule.blocks.blocks = chunks;
        for (std::int64_t h = 0; h < heads; ++h) {
            auto seed = static_cast<std::uint32_t>(h / (heads / linear_heads) + 7);  // heads of a group share types
            for (std::int64_t c = 0; c < chunks; ++c) share.rule.blocks.visible.push_back(drawn(seed) < linear ? 0 : 1);
        }
        share.pairs = visible_pairs(share.rule, heads, length);
        shares.push_back(std::move(share));
    }
    const auto run = [&](Share& share, Part part) {
        const AttentionInput input{q.view(), k.view(), v.view(), &share.rule, nullptr};
        const FlopCounter counter;
        const double start = now();
        if (part == kRead) {
            attention_forward(input, output.target(), constants);
        } else {
            attention_backward(input, output.view(), gradient.view(), constants,
                               {dq.target(), dk.target(), dv.target(), nullptr, nullptr,
                                part == kBack ? nullptr : by_chunk.data(), part == kBackWithAll});
        }
        share.seconds[part] = std::min(share.seconds[part], now() - start);
        share.flops[part] = counter.value();
    };
    for (int round = 0; round < 5; ++round) {
        for (Share& share : shares)
            for (int part = kRead; part < kParts; ++part) run(share, static_cast<Part>(part));
    }

    std::printf("%lld tokens, %lld softmax heads of %lld / %lld, chunks of %lld, %d threads, %s\n",
                static_cast<long long>(length), static_cast<long long>(heads), static_cast<long long>(key_size),
                static_cast<long long>(value_size), static_cast<long long>(chunk), threads(), last_backend().c_str());
    std::printf("%8s %8s", "linear", "pairs");
    for (const char* name : {"read", "back", "back, chunks", "back, all chunks"})
        std::printf(" | %9s %16s", "GFLOP", name);
    std::printf("\n");
    const Share& none = shares.front();
    for (const Share& share : shares) {
        std::printf("%6.0f %% %8.3f", 100 * share.linear, share.pairs / none.pairs);
        for (int part = kRead; part < kParts; ++part) {
            std::printf(" | %9.2f %7.1f ms %5.2f", 1e-9 * static_cast<double>(share.flops[part]),
                        1e3 * share.seconds[part], share.seconds[part] / none.seconds[part]);
        }
        std::printf("\n");
    }
    return 0;
}

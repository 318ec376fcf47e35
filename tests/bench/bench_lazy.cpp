// SPDX-License-Identifier: GPL-3.0-or-later
// What Lazy Attention costs beside softmax: bench_lazy [length] [heads] [head size] [window] [threads] [rounds].
//
// For softmax, softmax with the learned bias, Elastic-Softmax, both together (Lazy Attention), sparsemax and entmax:
// milliseconds of reading with every statistic, of reading without any, and of training (reading, and the way back with
// the gradients of bias and offset), each also relative to softmax. Rows in turns; medians. Wall time; with
// HEADSCOPE_BENCH_CPU_TIME set, the process's processor time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"

using namespace headscope::kernels;

namespace {

double now() {
    static const bool processor = std::getenv("HEADSCOPE_BENCH_CPU_TIME") != nullptr;
    timespec t{};
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
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
        for (float& x : values) {
            seed = seed * 1664525U + 1013904223U;
            x = static_cast<float>(seed >> 8U) * 0x1p-23F - 1.0F;
        }
    }
    TensorView view() const {
        return {values.data(), ElementType::float32, 1, heads, length, size, length * heads * size, size, heads * size};
    }
    MutableView target() { return {values.data(), ElementType::float32, length * heads * size, size, heads * size}; }
};

enum Part { kMeasured, kRead, kTrained, kParts };

struct Row {
    std::string name;
    ScoreRule rule;
    std::vector<double> seconds[kParts];

    double median(int part) {
        std::sort(seconds[part].begin(), seconds[part].end());
        return seconds[part][seconds[part].size() / 2];
    }
};

std::vector<Row> rows_of(std::int64_t heads, std::int64_t size, std::int64_t window) {
    ScoreRule plain, biased;
    plain.scale = 3.0 / std::sqrt(static_cast<double>(size));  // spread enough for more than half of the zeros
    biased = plain;
    biased.beyond_table = BeyondTable::zero;
    biased.bias_length = window;
    biased.bias_origin = window - 1;
    for (std::int64_t n = 0; n < heads * window; ++n)
        biased.distance_bias.push_back(0.5F * std::sin(0.1F * static_cast<float>(n)));
    const auto with = [heads](ScoreRule rule, Normaliser normaliser) {
        rule.normaliser = normaliser;
        if (normaliser == Normaliser::elastic) rule.offsets.assign(static_cast<std::size_t>(heads), -1.0F);
        return rule;
    };
    return {{"softmax", plain, {}},
            {"softmax, bias", biased, {}},
            {"elastic", with(plain, Normaliser::elastic), {}},
            {"lazy (elastic, bias)", with(biased, Normaliser::elastic), {}},
            {"sparsemax", with(plain, Normaliser::sparsemax), {}},
            {"entmax", with(plain, Normaliser::entmax), {}}};
}

}  // namespace

int main(int count, char** arguments) {
    const auto argument = [&](int n, std::int64_t usual) { return count > n ? std::atoll(arguments[n]) : usual; };
    const std::int64_t length = argument(1, 2048), heads = argument(2, 16), size = argument(3, 64);
    const std::int64_t window = argument(4, 512), rounds = argument(6, 5);
    set_threads(static_cast<int>(argument(5, 2)));
    if (std::min({length, heads, size, window, rounds}) < 1) {
        std::fprintf(stderr, "expected a length, heads, a size, a window, threads and rounds, each at least 1\n");
        return 1;
    }
    const Heads q(heads, length, size, 1), k(heads, length, size, 2), v(heads, length, size, 3);
    const Heads gradient(heads, length, size, 4);
    Heads output(heads, length, size, 5), dq = q, dk = k, dv = v;
    std::vector<float> shift(static_cast<std::size_t>(heads * length)), factor = shift;
    std::vector<float> of_bias(static_cast<std::size_t>(heads * window)), of_offset(static_cast<std::size_t>(heads));
    const SoftmaxRows constants{shift.data(), factor.data()};
    std::vector<Row> rows = rows_of(heads, size, window);
    double zeros = 0.0;
    const auto run = [&](Row& row, int part) {
        const AttentionInput input{q.view(), k.view(), v.view(), &row.rule, nullptr};
        const OutputView target{output.values.data(), length * heads * size, size, heads * size};
        const double start = now();
        if (part == kMeasured) {
            Statistics statistics;
            const StatisticsRequest request;
            attention(input, target, &request, &statistics);
            if (row.name.rfind("lazy", 0) == 0) zeros = statistics.zero_fraction.front();
        } else if (part == kRead) {
            attention(input, target);
        } else {
            attention_forward(input, output.target(), constants);
            AttentionGradients gradients{dq.target(), dk.target(), dv.target()};
            if (row.rule.bias_length > 0) gradients.distance_bias = of_bias.data();
            if (!row.rule.offsets.empty()) gradients.offsets = of_offset.data();
            attention_backward(input, output.view(), gradient.view(), constants, gradients);
        }
        row.seconds[part].push_back(now() - start);
    };
    for (std::int64_t round = 0; round < rounds; ++round) {
        for (int part = kMeasured; part < kParts; ++part)
            for (Row& row : rows) run(row, part);
    }
    std::printf("%lld tokens, %lld heads of %lld, window %lld, %d threads, %s; zeros of the first lazy head %.0f %%\n",
                static_cast<long long>(length), static_cast<long long>(heads), static_cast<long long>(size),
                static_cast<long long>(window), threads(), last_backend().c_str(), 100.0 * zeros);
    std::printf("%-22s %20s %20s %20s\n", "", "all statistics", "read", "trained");
    for (Row& row : rows) {
        std::printf("%-22s", row.name.c_str());
        for (int part = kMeasured; part < kParts; ++part)
            std::printf(" %10.1f ms %6.2f", 1e3 * row.median(part), row.median(part) / rows.front().median(part));
        std::printf("\n");
    }
    return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
// The fused operator against LibTorch, in one run: bench_attention [length] [heads] [size] [threads] [repetitions].
//
// Repetitions are paired: each round times every contender once, and ratios are medians of the rounds' ratios, so that
// a spell of noise hits both sides. The three GEMMs are scaled from the pairs that they multiply (whole diagonal
// blocks) to the L (L + 1) / 2 pairs of the causal triangle. Wall time; with HEADSCOPE_BENCH_CPU_TIME set, the
// process's processor time, which a busy machine disturbs less (use one thread then).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "tests/bench/torch_baselines.h"

using namespace headscope;

namespace {

double now() {
    static const bool processor = std::getenv("HEADSCOPE_BENCH_CPU_TIME") != nullptr;
    timespec t{};
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct Contender {
    const char* name;
    std::function<void()> run;
    double scale = 1.0;
    std::vector<double> seconds{};
};

kernels::TensorView view_of(const at::Tensor& t) {
    return {t.data_ptr(), kernels::ElementType::float32, 1, t.size(0), t.size(1), t.size(2), t.numel(), t.stride(0),
            t.stride(1)};
}

}  // namespace

int main(int argc, char** argv) {
    const auto argument = [&](int n, std::int64_t otherwise) { return argc > n ? std::atoll(argv[n]) : otherwise; };
    const std::int64_t length = argument(1, 4096), heads = argument(2, 8), size = argument(3, 64);
    const int threads = static_cast<int>(argument(4, 2)), repetitions = static_cast<int>(argument(5, 5));
    const bool baselines = argument(6, 1) != 0;
    at::set_num_threads(threads);
    kernels::set_threads(threads);
    at::manual_seed(1);
    const at::Tensor q = at::randn({heads, length, size}), k = at::randn({heads, length, size});
    const at::Tensor v = at::randn({heads, length, size});
    at::Tensor output = at::zeros_like(v);  // touched: its pages are no extra memory

    kernels::ScoreRule rule;
    rule.scale = 1.0 / std::sqrt(static_cast<double>(size));
    const kernels::AttentionInput input{view_of(q), view_of(k), view_of(v), &rule, nullptr};
    const kernels::OutputView place{output.data_ptr<float>(), output.numel(), output.stride(0), output.stride(1)};
    kernels::StatisticsRequest everything, alone, rows;
    for (std::int64_t i = 0; i < length; ++i) everything.tokens.push_back(static_cast<std::int32_t>(i * i / 7 % 997));
    alone = everything;
    alone.head_diversity = false;
    rows = alone;
    rows.histogram = rows.thumbnails = rows.column_mass = false;
    rows.tokens.clear();
    const auto fused = [&](const kernels::StatisticsRequest* request) {
        kernels::Statistics statistics;
        kernels::attention(input, place, request, request != nullptr ? &statistics : nullptr);
    };

    const double before = peak_megabytes();
    fused(&everything);
    const double memory = peak_megabytes() - before;
    bench::CausalGemms gemms(q, k, v, std::min<std::int64_t>(256, length));
    const double triangle = static_cast<double>(length) * static_cast<double>(length + 1) / 2.0;
    std::vector<Contender> contenders{
        {"three causal GEMMs", [&] { gemms.run(); }, triangle / gemms.pairs()},
        {"fused, every statistic", [&] { fused(&everything); }},
        {"fused, no head diversity", [&] { fused(&alone); }},
        {"fused, rows' statistics only", [&] { fused(&rows); }},
        {"fused, output only", [&] { fused(nullptr); }},
    };
    if (baselines) {
        contenders.push_back({"careful tiled loop", [&] { bench::tiled_analysis(q, k, v); }});
        if (heads * length * length <= std::int64_t{8} * 4096 * 4096) {
            contenders.push_back({"eager, whole matrices", [&] { bench::eager_analysis(q, k, v); }});
        }
    }
    for (int round = -1; round < repetitions; ++round) {
        for (Contender& c : contenders) {
            const double start = now();
            c.run();
            if (round >= 0) c.seconds.push_back((now() - start) * c.scale);  // the first round warms up
        }
    }
    std::printf("L %lld, heads %lld, size %lld, %d threads, backend %s, %d rounds; extra memory %.0f MB\n",
                static_cast<long long>(length), static_cast<long long>(heads), static_cast<long long>(size), threads,
                kernels::last_backend().c_str(), repetitions, memory);
    for (const Contender& c : contenders) {
        std::vector<double> to_gemms, to_fused;
        for (std::size_t n = 0; n < c.seconds.size(); ++n) {
            to_gemms.push_back(c.seconds[n] / contenders[0].seconds[n]);
            to_fused.push_back(c.seconds[n] / contenders[1].seconds[n]);
        }
        const double best = *std::min_element(c.seconds.begin(), c.seconds.end());
        std::printf("%-30s median %8.1f ms  best %8.1f ms  %6.3f of the GEMMs  %6.2f of fused\n", c.name,
                    1e3 * median(c.seconds), 1e3 * best, median(to_gemms), median(to_fused));
    }
    return 0;
}

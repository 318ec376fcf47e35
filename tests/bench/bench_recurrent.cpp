// SPDX-License-Identifier: GPL-3.0-or-later
// Attention from a state beside the same in chunks of LibTorch's operators: bench_recurrent [longest] [threads].
//
// Gated DeltaNet, 6 heads of 128 x 256 (NAtS-L's 380M model), float32, no gradients, inputs [length, heads, size] in
// memory as models have them. First both at 4096 tokens in turns, medians of nine rounds and of their ratios, and how
// far the outputs are apart; then the kernel alone at lengths 1024, 2048, .. (65 536 by default): nanoseconds a token
// (a linear operator's column stays) and the exponent of the growth. Then the statistics of the implicit matrix, which
// are quadratic. Wall time; with HEADSCOPE_BENCH_CPU_TIME set, the process's processor time, which a busy machine
// disturbs less (use one thread then).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/recurrent.h"

using namespace headscope::kernels;

namespace {

constexpr std::int64_t kHeads = 6, kKeySize = 128, kValueSize = 256, kChunk = 64;

double now() {
    static const bool processor = std::getenv("HEADSCOPE_BENCH_CPU_TIME") != nullptr;
    timespec t{};
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Run>
double seconds(const Run& run) {
    const double start = now();
    run();
    return now() - start;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// [length, heads, size], unit rows or uniform numbers.
struct Inputs {
    at::Tensor query, key, value, write, log_decay;
    explicit Inputs(std::int64_t length) {
        const auto unit = [](const at::Tensor& x) { return (x / x.norm(2, -1, true)).contiguous(); };
        query = unit(at::randn({length, kHeads, kKeySize}));
        key = unit(at::randn({length, kHeads, kKeySize}));
        value = at::randn({length, kHeads, kValueSize});
        write = at::rand({length, kHeads, 1});
        log_decay = at::rand({length, kHeads, 1}) * -0.2;
    }
};

TensorView view_of(const at::Tensor& x, std::int64_t length) {
    return {x.data_ptr(), ElementType::float32, 1, x.size(1), length, x.size(2), 0, x.size(2), x.size(1) * x.size(2)};
}

RecurrentInput input_of(const Inputs& x, std::int64_t length, const RecurrentRule& rule) {
    return {view_of(x.query, length),
            view_of(x.key, length),
            view_of(x.value, length),
            view_of(x.write, length),
            view_of(x.log_decay, length),
            &rule,
            nullptr};
}

void walk(const Inputs& x, std::int64_t length, at::Tensor& output) {
    RecurrentRule rule;
    rule.scale = 1.0 / std::sqrt(static_cast<double>(kKeySize));
    recurrent_forward(input_of(x, length, rule),
                      {output.data_ptr(), ElementType::float32, 0, kValueSize, kHeads * kValueSize}, {}, nullptr);
}

/// The chunk form with everything that chunks do not pass on done for all of them at once: (I + strict lower part of
/// beta decay k k^T)^-1 by a triangular solve, then a loop over chunks with four products each.
at::Tensor chunks(const Inputs& x) {
    const std::int64_t length = x.query.size(0), count = length / kChunk;
    const auto split = [&](const at::Tensor& t) {
        return t.permute({1, 0, 2}).reshape({kHeads, count, kChunk, t.size(2)});
    };
    const at::Tensor query = split(x.query) * (1.0 / std::sqrt(static_cast<double>(kKeySize))), key = split(x.key);
    const at::Tensor value = split(x.value), write = split(x.write);
    const at::Tensor sum = split(x.log_decay).cumsum(2), grown = sum.exp();
    const at::Tensor decay = (sum - sum.transpose(-1, -2)).tril().exp().tril();
    const at::Tensor written = key * write, transposed = key.transpose(-1, -2);
    const at::Tensor lower = (at::matmul(written, transposed) * decay).tril(-1);
    const at::Tensor solved = at::linalg_solve_triangular(
        lower + at::eye(kChunk), at::cat({value * write, written * grown}, -1), false, true, true);
    const at::Tensor u = solved.narrow(-1, 0, kValueSize), w = solved.narrow(-1, kValueSize, kKeySize);
    const at::Tensor inside = at::matmul(query, transposed) * decay, queries = query * grown;
    const at::Tensor last = sum.narrow(2, kChunk - 1, 1);
    const at::Tensor keys = (key * (last - sum).exp()).transpose(-1, -2), left = last.exp();
    at::Tensor state = at::zeros({kHeads, kKeySize, kValueSize});
    at::Tensor output = at::empty({kHeads, count, kChunk, kValueSize});
    for (std::int64_t n = 0; n < count; ++n) {
        const at::Tensor own = u.select(1, n) - at::bmm(w.select(1, n), state);
        output.select(1, n).copy_(at::baddbmm(at::bmm(queries.select(1, n), state), inside.select(1, n), own));
        state = at::baddbmm(state * left.select(1, n), keys.select(1, n), own);
    }
    return output.reshape({kHeads, length, kValueSize}).permute({1, 0, 2}).contiguous();
}

void compare() {
    const Inputs x(4096);
    at::Tensor output = at::empty_like(x.value), expected = chunks(x);
    walk(x, 4096, output);
    std::vector<double> ours, theirs, ratios;
    for (int round = 0; round < 9; ++round) {
        ours.push_back(seconds([&] { walk(x, 4096, output); }));
        theirs.push_back(seconds([&] { expected = chunks(x); }));
        ratios.push_back(theirs.back() / ours.back());
    }
    std::printf(
        "4096 tokens: kernel %.1f ms, chunks of operators %.1f ms, ratio %.2f; largest difference %.2g of %.2g\n",
        1e3 * median(ours), 1e3 * median(theirs), median(ratios), (output - expected).abs().max().item<double>(),
        expected.abs().max().item<double>());
}

}  // namespace

int main(int count, char** arguments) {
    const std::int64_t longest = count > 1 ? std::atoll(arguments[1]) : 65536;
    const int wanted = count > 2 ? std::atoi(arguments[2]) : 2;
    set_threads(wanted);
    at::set_num_threads(wanted);
    at::manual_seed(1);
    std::printf("%lld heads of %lld x %lld, %d threads\n", static_cast<long long>(kHeads),
                static_cast<long long>(kKeySize), static_cast<long long>(kValueSize), threads());
    compare();
    const Inputs x(longest);
    at::Tensor output = at::empty_like(x.value);
    double n = 0, a = 0, b = 0, aa = 0, ab = 0;
    std::printf("%8s %10s %14s\n", "length", "ns a token", "state, bytes");
    for (std::int64_t length = 1024; length <= longest; length *= 2) {
        double best = 1e300;
        for (int round = 0; round < 5; ++round) best = std::min(best, seconds([&] { walk(x, length, output); }));
        std::printf("%8lld %10.0f %14lld\n", static_cast<long long>(length), 1e9 * best / static_cast<double>(length),
                    static_cast<long long>(kHeads * kKeySize * kValueSize * 4));
        const double log_length = std::log(static_cast<double>(length)), log_time = std::log(best);
        n += 1;
        a += log_length;
        b += log_time;
        aa += log_length * log_length;
        ab += log_length * log_time;
    }
    if (n > 1) std::printf("%8s %10.3f\n", "growth", (n * ab - a * b) / (n * aa - a * a));
    RecurrentRule rule;
    for (std::int64_t length = 1024; length <= std::min<std::int64_t>(longest, 4096); length *= 2) {
        ImplicitStatistics statistics;
        const double time = seconds([&] { implicit_statistics(input_of(x, length, rule), statistics, nullptr); });
        std::printf("statistics of the implicit matrix, %lld tokens: %.0f ms\n", static_cast<long long>(length),
                    1e3 * time);
    }
    return 0;
}

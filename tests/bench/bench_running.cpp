// SPDX-License-Identifier: GPL-3.0-or-later
// How reading, decoding and training grow with the length: bench_running [longest] [heads] [size] [threads].
//
// For one score per key (Non-approximate) and for Taylor weights from a state (Approximate): nanoseconds a token and
// bytes held at lengths 1024, 2048, .. (65 536 by default), beside softmax and Taylor weights pair by pair, which are
// timed up to 16 384. A linear operator's column stays; the last lines give the exponent of the growth from 4096 on, by
// least squares of log time over log length: 1 is linear, 2 quadratic. Best of five rounds. Wall time; with
// HEADSCOPE_BENCH_CPU_TIME set, the process's processor time, which a busy machine disturbs less (use one thread then).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "kernels/running.h"
#include "kernels/taylor_state.h"

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
    TensorView view(std::int64_t first, std::int64_t count) const {
        return {values.data() + first * heads * size,
                ElementType::float32,
                1,
                heads,
                count,
                size,
                length * heads * size,
                size,
                heads * size};
    }
    MutableView target(std::int64_t first) {
        return {values.data() + first * heads * size, ElementType::float32, length * heads * size, size, heads * size};
    }
};

struct Measured {
    std::map<std::int64_t, double> seconds;

    /// The exponent of the growth.
    double growth() const {
        double n = 0, x = 0, y = 0, xx = 0, xy = 0;
        for (const auto& [length, time] : seconds) {
            if (length < 4096) continue;
            const double a = std::log(static_cast<double>(length)), b = std::log(time);
            n += 1;
            x += a;
            y += b;
            xx += a * a;
            xy += a * b;
        }
        return n > 1 ? (n * xy - x * y) / (n * xx - x * x) : 0.0;
    }
};

double best_of_five(const std::function<void()>& run) {
    double best = 1e300;
    for (int round = 0; round < 5; ++round) {
        const double start = now();
        run();
        best = std::min(best, now() - start);
    }
    return best;
}

}  // namespace

int main(int count, char** arguments) {
    const auto argument = [&](int n, std::int64_t usual) { return count > n ? std::atoll(arguments[n]) : usual; };
    const std::int64_t longest = argument(1, 65536), heads = argument(2, 8), size = argument(3, 64);
    set_threads(static_cast<int>(argument(4, 2)));
    const Heads q(heads, longest, size, 1), k(heads, longest, size, 2), v(heads, longest, size, 3);
    Heads output(heads, longest, size, 4), dq(heads, longest, size, 5), dk = dq, dv = dq;
    const double scale = 1.0 / std::sqrt(static_cast<double>(size));
    std::map<std::string, Measured> all;
    std::printf("%lld heads of %lld, %d threads; ns a token\n%8s", static_cast<long long>(heads),
                static_cast<long long>(size), threads(), "length");
    const std::vector<std::string> names{"one score: read",    "one score: decode",    "one score: train",
                                         "Taylor state: read", "Taylor state: decode", "Taylor pairs",
                                         "softmax pairs"};
    for (const std::string& name : names) std::printf(" %21s", name.c_str());
    std::printf("\n");
    for (std::int64_t length = 1024; length <= longest; length *= 2) {
        const RunningInput running{q.view(0, length), k.view(0, length), v.view(0, length), scale, {}, nullptr};
        const TaylorInput taylor{
            q.view(0, length), k.view(0, length), v.view(0, length), scale, Normaliser::taylor, nullptr};
        const auto rows = static_cast<std::size_t>(heads * length), site = static_cast<std::size_t>(heads);
        std::vector<float> score(rows), maximum(rows), denominator(rows);
        const RunningRows kept{score.data(), maximum.data(), denominator.data()};
        std::vector<float> numerator(site * static_cast<std::size_t>(size)), sums(site), most(site);
        const RunningState state{numerator.data(), sums.data(), most.data()};
        const std::int64_t features = taylor_features(Normaliser::taylor, size);
        std::vector<float> products(site * static_cast<std::size_t>(features * (size + 1)));
        const std::int64_t steps = 256;  // decoded behind the text
        std::map<std::string, double> seconds;
        seconds[names[0]] = best_of_five([&] { running_forward(running, output.target(0), {}); });
        clear_running_state(state, heads, size);
        running_forward(running, output.target(0), {}, state);
        seconds[names[1]] = best_of_five([&] {
            for (std::int64_t i = 0; i < steps; ++i) {
                const RunningInput one{q.view(i, 1), k.view(i, 1), v.view(i, 1), scale, {}, nullptr};
                running_forward(one, output.target(i), {}, state);
            }
        });
        seconds[names[2]] = best_of_five([&] {
            running_forward(running, output.target(0), kept);
            running_backward(running, kept, output.view(0, length), v.view(0, length),
                             {dq.target(0), dk.target(0), dv.target(0)});
        });
        seconds[names[3]] = best_of_five([&] { taylor_forward(taylor, output.target(0), nullptr); });
        taylor_forward(taylor, output.target(0), products.data());
        seconds[names[4]] = best_of_five([&] {
            for (std::int64_t i = 0; i < steps; ++i) {
                const TaylorInput one{q.view(i, 1), k.view(i, 1), v.view(i, 1), scale, Normaliser::taylor, nullptr};
                taylor_forward(one, output.target(i), products.data());
            }
        });
        for (const auto& [name, normaliser] :
             {std::pair{names[5], Normaliser::taylor}, {names[6], Normaliser::softmax}}) {
            if (length > 16384) continue;
            ScoreRule rule;
            rule.scale = scale;
            rule.normaliser = normaliser;
            const OutputView view{output.values.data(), 0, size, heads * size};
            seconds[name] = best_of_five([&] {
                attention({q.view(0, length), k.view(0, length), v.view(0, length), &rule, nullptr}, view);
            });
        }
        std::printf("%8lld", static_cast<long long>(length));
        for (const std::string& name : names) {
            const auto found = seconds.find(name);
            if (found == seconds.end()) {
                std::printf(" %21s", "");
                continue;
            }
            const bool decoding = name.find("decode") != std::string::npos;
            // A text that is decoded costs its number of tokens times one step.
            const double a_token = found->second / static_cast<double>(decoding ? steps : length);
            all[name].seconds[length] = a_token * static_cast<double>(length);
            std::printf(" %21.0f", 1e9 * a_token);
        }
        std::printf("\n");
        std::fflush(stdout);
    }
    std::printf("%8s", "growth");
    for (const std::string& name : names) std::printf(" %21.3f", all[name].growth());
    std::printf(
        "\nbytes a text holds while it is decoded: one score %lld, Taylor %lld, keys and values at %lld: %lld\n",
        static_cast<long long>(heads * (size + 2) * 4),
        static_cast<long long>(heads * taylor_features(Normaliser::taylor, size) * (size + 1) * 4),
        static_cast<long long>(longest), static_cast<long long>(longest * heads * size * 8));
    return 0;
}

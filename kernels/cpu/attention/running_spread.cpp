// SPDX-License-Identifier: GPL-3.0-or-later
// How much heads differ where each head's weights are a product of a number of the key and one of the query: the keys'
// exponentials of a tile are computed once for all its rows, and mean and squared deviations across heads never leave
// the registers.
#include "kernels/cpu/attention/running.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/running_spread.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr float kLog2 = static_cast<float>(kLog2E);

HWY_INLINE float ExponentialOf(float x) {
    const F32 d;
    return hn::GetLane(PowerOfTwo(d, hn::Set(d, x * kLog2)));
}

class Spread {
public:
    explicit Spread(const SpreadTask& task) : task_(task) {
        keys_ = task.scratch;
        most_ = keys_ + task.heads * kTileKeys;
        factor_ = most_ + pad_to_line(task.heads);
        step_ = factor_ + pad_to_line(task.heads);
    }

    double Run() {
        for (std::int64_t h = 0; h < task_.heads; ++h) step_[h] = 1.0f / static_cast<float>(h + 1);
        const std::int64_t end = task_.query + task_.rows;
        double total = 0.0;
        for (std::int64_t key = 0; key < end; key += kTileKeys) {
            if (task_.cancel != nullptr && task_.cancel->load(std::memory_order_relaxed)) return 0.0;
            const std::int64_t count = HWY_MIN(kTileKeys, end - key);
            // Rows that see the whole tile share the keys' exponentials; the others take each pair's own.
            const std::int64_t whole = HWY_MAX(task_.query, key + count - 1);
            for (std::int64_t i = task_.query; i < HWY_MIN(whole, end); ++i) {
                if (i >= key) total += PartialRow(i, key, i - key + 1);
            }
            if (whole < end) {
                PrepareTile(key, count);
                for (std::int64_t i = whole; i < end; ++i) total += WholeRow(i, count);
            }
        }
        return total;
    }

private:
    const float* At(const float* all, std::int64_t h) const { return all + h * task_.stride; }

    void PrepareTile(std::int64_t key, std::int64_t count) {
        const F32 d;
        for (std::int64_t h = 0; h < task_.heads; ++h) {
            const float* score = At(task_.score, h) + key;
            float most = score[0];
            for (std::int64_t c = 1; c < count; ++c) most = score[c] <= most ? most : score[c];
            most_[h] = most;
            float* to = keys_ + h * kTileKeys;
            const V shift = hn::Set(d, most);
            ForVectors(d, count, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                store(PowerOfTwo(d, hn::Mul(hn::Sub(load(score + c), shift), hn::Set(d, kLog2))), to + c);
            });
        }
    }

    double WholeRow(std::int64_t i, std::int64_t count) {
        const F32 d;
        for (std::int64_t h = 0; h < task_.heads; ++h)
            factor_[h] = ExponentialOf(most_[h] - At(task_.maximum, h)[i]) * At(task_.factor, h)[i];
        return Row(count, [&](std::int64_t h, std::int64_t c, const auto& load)
                              HWY_ATTR { return hn::Mul(load(keys_ + h * kTileKeys + c), hn::Set(d, factor_[h])); });
    }

    double PartialRow(std::int64_t i, std::int64_t key, std::int64_t count) {
        const F32 d;
        return Row(count, [&](std::int64_t h, std::int64_t c, const auto& load) HWY_ATTR {
            const V x = hn::Sub(load(At(task_.score, h) + key + c), hn::Set(d, At(task_.maximum, h)[i]));
            return hn::Mul(PowerOfTwo(d, hn::Mul(x, hn::Set(d, kLog2))), hn::Set(d, At(task_.factor, h)[i]));
        });
    }

    /// weight(h, c, load) gives the weights of head h from key c on. Welford's update.
    template <class Weight>
    double Row(std::int64_t count, const Weight& weight) {
        const F32 d;
        const V divisor = hn::Set(d, 1.0f / static_cast<float>(task_.heads - 1));
        HWY_ALIGN float deviations[kTileKeys];
        ForVectors(d, count, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            V mean = weight(0, c, load), squares = hn::Zero(d);
            for (std::int64_t h = 1; h < task_.heads; ++h) {
                const V p = weight(h, c, load), delta = hn::Sub(p, mean);
                mean = hn::MulAdd(delta, hn::Set(d, step_[h]), mean);
                squares = hn::MulAdd(delta, hn::Sub(p, mean), squares);
            }
            store(hn::Sqrt(hn::Mul(squares, divisor)), deviations + c);
        });
        V sum = hn::Zero(d);
        ForVectors(d, count, [&](std::int64_t c, const auto& load, const auto&) HWY_ATTR {
            sum = hn::Add(sum, load(deviations + c));
        });
        return double{Sum(d, sum)};
    }

    const SpreadTask& task_;
    float *keys_, *most_, *factor_, *step_;
};

double RunningSpread(const SpreadTask& task) {
    return Spread(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(RunningSpread);

double running_spread(const SpreadTask& task) {
    return HWY_DYNAMIC_DISPATCH(RunningSpread)(task);
}

std::int64_t spread_scratch(std::int64_t heads) {
    return heads * kTileKeys + 3 * pad_to_line(heads);
}

}  // namespace headscope::kernels::cpu
#endif

// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/histogram.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "kernels/cpu/attention/sequence.h"

namespace headscope::kernels::cpu {
namespace {

constexpr int kLinearStart = kOuterBins;
constexpr double kLinearEnd = 8.0;

/// For |s| >= 8: the last outer edge at or below the smallest value with the same exponent and leading three bits of
/// mantissa. Edges are 15 % apart and such cells at most 12.5 % wide, so one comparison finds the bin.
class OuterBins {
public:
    OuterBins() {
        const auto& all = histogram_edges();
        for (int k = 0; k < kOuterBins; ++k) {
            edges_[static_cast<std::size_t>(k)] = all[static_cast<std::size_t>(kLinearStart + kLinearBins + k)];
        }
        for (std::size_t cell = 0; cell < first_.size(); ++cell) {
            const double low = std::bit_cast<float>(static_cast<std::uint32_t>(cell + kFirstCell) << kShift);
            const auto above = std::upper_bound(edges_.begin(), edges_.end(), low);
            first_[cell] = static_cast<std::uint8_t>(std::max<std::int64_t>(above - edges_.begin() - 1, 0));
        }
    }

    /// Edges at or below `magnitude` beyond the first (upper side: edge <= s), or below it (lower side: s < -edge).
    template <bool kUpper>
    int steps(double magnitude) const {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::min(magnitude, 1e30)));
        const std::size_t cell = std::min<std::size_t>((bits >> kShift) - kFirstCell, first_.size() - 1);
        int k = first_[cell];
        while (k + 1 < kOuterBins && passes<kUpper>(magnitude, edges_[static_cast<std::size_t>(k) + 1])) ++k;
        while (k > 0 && !passes<kUpper>(magnitude, edges_[static_cast<std::size_t>(k)])) --k;
        return k;
    }

private:
    template <bool kUpper>
    static bool passes(double magnitude, double edge) {
        return kUpper ? magnitude >= edge : magnitude > edge;
    }
    static constexpr int kShift = 20;
    static constexpr std::size_t kFirstCell = std::bit_cast<std::uint32_t>(8.0F) >> kShift;
    std::array<double, kOuterBins> edges_{};
    std::array<std::uint8_t, 128> first_{};  // up to 8 * 2^16
};

int bin_of(const OuterBins& outer, double s) {
    if (s >= -kLinearEnd && s < kLinearEnd)
        return kLinearStart + kLinearBins / 2 + static_cast<int>(std::floor(s * 4.0));
    if (s >= kLinearEnd) return kLinearStart + kLinearBins + outer.steps<true>(s);
    return kLinearStart - 1 - outer.steps<false>(-s);
}

}  // namespace

void count_scores(const float* t, std::int64_t n, std::uint32_t* counts) {
    static const OuterBins outer;
    for (std::int64_t j = 0; j < n; ++j) {
        if (t[j] == kMasked || std::isnan(t[j])) continue;
        ++counts[bin_of(outer, double{t[j]} * kLn2)];
    }
}

void add_counts(const std::uint32_t* from, HistogramCounts& to) {
    for (std::size_t bin = 0; bin < to.size(); ++bin) {
        if (from[bin] != 0) std::atomic_ref(to[bin]).fetch_add(from[bin], std::memory_order_relaxed);
    }
}

}  // namespace headscope::kernels::cpu

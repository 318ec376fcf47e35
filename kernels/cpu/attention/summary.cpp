// SPDX-License-Identifier: GPL-3.0-or-later
// From sums to the numbers of indicators.md, with the divisors that its definitions ask for.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention/workspace.h"
#include "kernels/statistics.h"

namespace headscope::kernels::cpu {
namespace {

/// Which rows of one head see a key: how many of them there are, and how many at or after a position.
class SeenRows {
public:
    SeenRows(const Sequence& s, const float* minimum) : s_(s), before_(static_cast<std::size_t>(s.queries) + 1, 0) {
        for (std::int64_t i = 0; i < s.queries; ++i) {
            before_[static_cast<std::size_t>(i) + 1] = before_[static_cast<std::size_t>(i)] + (minimum[i] != kInfinity);
        }
    }
    double count() const { return static_cast<double>(before_.back()); }
    /// Seen rows whose position i' lies in [begin, end).
    double count(std::int64_t begin, std::int64_t end) const {
        const auto row = [this](std::int64_t position) {
            return static_cast<std::size_t>(std::clamp<std::int64_t>(position - s_.query_offset, 0, s_.queries));
        };
        return begin < end ? static_cast<double>(before_[row(end)] - before_[row(begin)]) : 0.0;
    }
    double count_from(std::int64_t position) const { return count(position, s_.query_offset + s_.queries); }

private:
    const Sequence& s_;
    std::vector<std::int64_t> before_;
};

/// A block's counts, mean and squared deviations joined to those before it (Chan, Golub, LeVeque 1979).
struct Moments {
    double count = 0.0, mean = 0.0, squared_deviations = 0.0;
    void add(const BlockScores& block) {
        if (block.pairs == 0) return;
        const double n = static_cast<double>(block.pairs), total = count + n;
        const double delta = block.sum / n - mean;
        squared_deviations += block.squared_deviations + delta * delta * (count * n / total);
        mean += delta * n / total;
        count = total;
    }
};

void summarise_scores(const BlockScores* blocks, std::int64_t count, std::size_t site, Statistics& out) {
    Moments moments;
    float minimum = kInfinity, maximum = -kInfinity;
    for (std::int64_t x = 0; x < count; ++x) {
        const BlockScores& block = blocks[x];
        moments.add(block);
        if (block.pairs == 0) continue;
        // Written so that NaN, once there, stays.
        minimum = std::isnan(block.minimum) || block.minimum < minimum ? block.minimum : minimum;
        maximum = std::isnan(block.maximum) || block.maximum > maximum ? block.maximum : maximum;
        for (std::size_t k = 0; k < 3; ++k) out.score_above[site * 3 + k] += block.above[k];
    }
    if (moments.count == 0.0) return;
    out.score_minimum[site] = double{minimum} * kLn2;
    out.score_maximum[site] = double{maximum} * kLn2;
    out.score_mean[site] = moments.mean * kLn2;
    out.score_variance[site] = std::max(moments.squared_deviations, 0.0) / moments.count * kLn2 * kLn2;
}

/// Pairs that the standard deviation across heads is averaged over: rows that some head sees, keys that exist and,
/// with a causal mask, do not lie after the query.
double diversity_pairs(const Sequence& s, const float* minimum) {
    double pairs = 0.0;
    for (std::int64_t i = 0; i < s.queries; ++i) {
        bool seen = false;
        for (std::int64_t h = 0; h < s.heads && !seen; ++h) seen = minimum[h * s.queries + i] != kInfinity;
        if (!seen) continue;
        const std::int64_t end = s.causal ? std::min(s.key_end, i + s.query_offset + 1) : s.key_end;
        pairs += static_cast<double>(std::max<std::int64_t>(end - s.key_begin, 0));
    }
    return pairs;
}

void summarise_columns(const Sequence& s, const SeenRows& rows, const ColumnTotals& totals, std::int64_t h,
                       std::size_t site, Statistics& out) {
    if (!out.column_mass.empty()) {
        for (std::int64_t j = 0; j < s.keys; ++j) {
            const bool exists = j >= s.key_begin && j < s.key_end;
            const double counted = !exists ? 0.0 : s.causal ? rows.count_from(j) : rows.count();
            out.column_mass[site * static_cast<std::size_t>(s.keys) + static_cast<std::size_t>(j)] =
                static_cast<float>(totals.column_sum(h, j) / counted);
        }
    }
    const std::int64_t cells = out.thumbnail_rows * out.thumbnail_columns;
    for (std::int64_t x = 0; x < cells && s.query_end > 0 && s.key_end > s.key_begin; ++x) {
        const std::int64_t row = x / out.thumbnail_columns, column = x % out.thumbnail_columns;
        const auto at = site * static_cast<std::size_t>(cells) + static_cast<std::size_t>(x);
        out.thumbnail_mean[at] = static_cast<float>(totals.cell_mean(h, row, column));
        out.thumbnail_maximum[at] = totals.cell_maximum(h, row, column);
    }
}

}  // namespace

void summarise(const Sequence& s, const StatisticsRequest& request, const SequenceResults& results,
               const ColumnTotals& totals, const float* minimum, std::int64_t b, Statistics& out) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
        const auto site = static_cast<std::size_t>(b * s.heads + h);
        const SeenRows rows(s, minimum + h * s.queries);
        const BlockScores* scores = results.scores.data() + h * results.blocks;
        summarise_scores(scores, results.blocks, site, out);
        double entropy = 0.0, squares = 0.0, mass = 0.0, virtual_sink = 0.0, pairs = 0.0;
        BlockWeights weights;
        for (std::int64_t x = 0; x < results.blocks; ++x) {
            const BlockWeights& block = results.weights[static_cast<std::size_t>(x * s.heads + h)];
            entropy += scores[x].entropy + block.entropy;
            squares += scores[x].squares + block.squares;
            mass += scores[x].mass + block.mass;
            virtual_sink += scores[x].virtual_sink;
            pairs += static_cast<double>(scores[x].pairs);
            weights.sink += block.sink;
            weights.distance += block.distance;
            weights.duplicate += block.duplicate;
            weights.induction += block.induction;
            weights.zeros += block.zeros;
        }
        const double count = rows.count();
        out.entropy[site] = entropy;
        out.entropy_row_mean[site] = entropy / count;
        out.concentration[site] = std::sqrt(squares);
        out.sink[site] = weights.sink / count;
        out.density[site] = (mass - weights.sink) / count;
        out.sparsity[site] = 1.0 - mass / count;
        out.zero_fraction[site] = static_cast<double>(weights.zeros) / pairs;
        out.mean_distance[site] = weights.distance / count;
        if (s.sink_logits != nullptr) out.virtual_sink[site] = virtual_sink / count;
        if (!request.tokens.empty()) {
            out.duplicate[site] = weights.duplicate / count;
            out.induction[site] = weights.induction / count;
        }
        for (std::int64_t n = 0; n < results.distances && !request.cross; ++n) {
            double sum = 0.0;
            for (std::int64_t x = 0; x < results.blocks; ++x) {
                sum += results.local[static_cast<std::size_t>((x * s.heads + h) * results.distances + n)];
            }
            const std::int64_t distance = request.local_distances[static_cast<std::size_t>(n)];
            const double counted = rows.count(s.key_begin + distance, s.key_end + distance);
            out.local_focus[site * static_cast<std::size_t>(results.distances) + static_cast<std::size_t>(n)] =
                sum / counted;
        }
        summarise_columns(s, rows, totals, h, site, out);
    }
    if (!results.diversity.empty()) {
        double sum = 0.0;
        for (const double block : results.diversity) sum += block;
        out.head_diversity[static_cast<std::size_t>(b)] = s.heads < 2 ? 0.0 : sum / diversity_pairs(s, minimum);
    }
}

}  // namespace headscope::kernels::cpu

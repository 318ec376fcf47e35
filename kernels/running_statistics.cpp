// SPDX-License-Identifier: GPL-3.0-or-later
// What kernels/attention.h measures, for weights A_ij = e^{s_j - c_i}: sums over the keys of a row run forwards, sums
// over the rows of a key backwards. c, the rows' log normalisers, never falls, which bounds every exponential by one
// and finds vanishing weights by bisection. float64 but for the spread across heads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention/running.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/parallel.h"
#include "kernels/running.h"
#include "kernels/score_pairs.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The larger; NaN, once there, stays.
double larger(double most, double x) {
    return x <= most ? most : x;
}

/// A sum of exponentials relative to their largest exponent.
struct Exponentials {
    double most = -kInfinity, sum = 0.0;

    void add(double exponent) {
        if (exponent <= most) {
            sum += std::exp(exponent - most);
            return;
        }
        sum = sum * std::exp(most - exponent) + 1.0;
        most = exponent;
    }
    /// The sum times e^-exponent.
    double over(double exponent) const { return sum == 0.0 ? 0.0 : sum * std::exp(most - exponent); }
};

/// First of `size` things that are shared out over `parts` to have number p.
std::int64_t first_of(std::int64_t p, std::int64_t parts, std::int64_t size) {
    return (p * size + parts - 1) / parts;
}

/// One head of one sequence.
class Head {
public:
    Head(std::span<const float> score, std::int64_t real, const StatisticsRequest& request, std::int64_t b,
         std::size_t site, Statistics& out)
        : score_(score), real_(real), request_(request), b_(b), site_(site), out_(out) {}

    /// `maximum`, `factor` [length]: what the spread across heads reads of each row.
    void measure(float* maximum, float* factor) {
        rows(maximum, factor);
        scores();
        if (!request_.tokens.empty()) tokens();
        if (request_.column_mass) columns();
        if (request_.histogram) histogram();
        if (request_.thumbnails && real_ > 0) thumbnails();
    }

private:
    std::size_t length() const { return score_.size(); }
    double score(std::int64_t j) const { return double{score_[static_cast<std::size_t>(j)]}; }
    double constant(std::int64_t i) const { return constant_[static_cast<std::size_t>(i)]; }
    double weight(std::int64_t i, std::int64_t j) const { return std::exp(score(j) - constant(i)); }

    void rows(float* maximum, float* factor) {
        constant_.assign(static_cast<std::size_t>(real_), 0.0);
        // Relative to the maximum m so far: sums of e^(s-m), (s-m) e^(s-m), e^2(s-m) and (i-j) e^(s-m).
        double m = -kInfinity, z = 0.0, t = 0.0, f = 0.0, moment = 0.0;
        double entropy = 0.0, squares = 0.0, sink = 0.0, distance = 0.0, zeros = 0.0;
        for (std::int64_t i = 0; i < real_; ++i) {
            const double old = m;
            m = larger(m, score(i));
            const double gap = old - m, shrunk = z == 0.0 ? 0.0 : std::exp(gap);
            moment = shrunk * (moment + z);
            if (z != 0.0) t = shrunk * (t + gap * z);
            const double own = std::exp(score(i) - m);
            z = shrunk * z + own;
            t += (score(i) - m) * own;
            f = shrunk * shrunk * f + own * own;
            const auto n = static_cast<std::size_t>(i);
            constant_[n] = m + std::log(z);
            maximum[n] = static_cast<float>(m);
            factor[n] = static_cast<float>(1.0 / z);
            const double row_entropy = std::log(z) - t / z, row_squares = f / (z * z), row_distance = moment / z;
            const double row_sink = weight(i, 0);
            entropy += row_entropy;
            squares += row_squares;
            sink += row_sink;
            distance += row_distance;
            const std::size_t at = site_ * length() + n;
            out_.row_constant[at] = static_cast<float>(constant_[n]);
            if (!request_.per_query) continue;
            out_.query_entropy[at] = static_cast<float>(row_entropy);
            out_.query_square_sum[at] = static_cast<float>(row_squares);
            out_.query_sink[at] = static_cast<float>(row_sink);
            out_.query_mean_distance[at] = static_cast<float>(row_distance);
        }
        std::fill_n(out_.row_constant.begin() + static_cast<std::ptrdiff_t>(site_ * length()) + real_,
                    static_cast<std::int64_t>(length()) - real_, std::numeric_limits<float>::infinity());
        const double number = static_cast<double>(real_), pairs = 0.5 * number * (number + 1.0);
        // A key vanishes from the row on whose sum has outgrown it.
        const double smallest = 126.0 * std::log(2.0);
        for (std::int64_t j = 0; j < real_; ++j) {
            const auto from = std::upper_bound(constant_.begin() + j, constant_.end(), score(j) + smallest);
            zeros += static_cast<double>(constant_.end() - from);
        }
        out_.entropy[site_] = entropy;
        out_.entropy_row_mean[site_] = entropy / number;
        out_.concentration[site_] = std::sqrt(squares);
        out_.sink[site_] = sink / number;
        out_.density[site_] = 1.0 - sink / number;
        out_.sparsity[site_] = real_ > 0 ? 0.0 : kNaN;
        out_.zero_fraction[site_] = zeros / pairs;
        out_.mean_distance[site_] = distance / number;
        const std::size_t distances = request_.local_distances.size();
        for (std::size_t n = 0; n < distances; ++n) {
            const std::int64_t away = request_.local_distances[n];
            double sum = 0.0;
            for (std::int64_t i = away; i < real_; ++i) sum += weight(i, i - away);
            out_.local_focus[site_ * distances + n] = away < real_ ? sum / static_cast<double>(real_ - away) : kNaN;
        }
    }

    /// Key j is a score of real - j pairs.
    void scores() {
        if (real_ == 0) return;
        double least = kInfinity, most = -kInfinity, sum = 0.0, squares = 0.0;
        const double number = static_cast<double>(real_), pairs = 0.5 * number * (number + 1.0);
        for (std::int64_t j = 0; j < real_; ++j) {
            const double s = score(j);
            least = s >= least ? least : s;
            most = larger(most, s);
            sum += s * static_cast<double>(real_ - j);
            for (std::size_t k = 0; k < 3; ++k) {
                if (std::abs(s) > std::pow(10.0, static_cast<double>(k + 1)))
                    out_.score_above[site_ * 3 + k] += static_cast<std::uint64_t>(real_ - j);
            }
        }
        const double mean = sum / pairs;
        for (std::int64_t j = 0; j < real_; ++j)
            squares += (score(j) - mean) * (score(j) - mean) * static_cast<double>(real_ - j);
        out_.score_minimum[site_] = std::isnan(sum) ? kNaN : least;
        out_.score_maximum[site_] = std::isnan(sum) ? kNaN : most;
        out_.score_mean[site_] = mean;
        out_.score_variance[site_] = squares / pairs;
    }

    void histogram() {
        const std::int64_t step = out_.histogram_row_step;
        for (std::int64_t j = 0; j < real_; ++j) {
            const int bin = histogram_bin(score(j));
            if (bin < 0) continue;
            out_.histogram[site_ * kHistogramBins + static_cast<std::size_t>(bin)] +=
                static_cast<std::uint64_t>(real_ / step - j / step);
        }
    }

    void tokens() {
        const auto* token = request_.tokens.data() + b_ * static_cast<std::int64_t>(length());
        std::unordered_map<std::int32_t, Exponentials> same, followed;
        double duplicate = 0.0, induction = 0.0;
        for (std::int64_t i = 0; i < real_; ++i) {
            Exponentials& equal = same[token[i]];
            duplicate += equal.over(constant(i));
            equal.add(score(i));
            if (i > 0) followed[token[i - 1]].add(score(i));
            if (const auto found = followed.find(token[i]); found != followed.end())
                induction += found->second.over(constant(i));
        }
        out_.duplicate[site_] = duplicate / static_cast<double>(real_);
        out_.induction[site_] = induction / static_cast<double>(real_);
    }

    void columns() {
        float* mass = out_.column_mass.data() + site_ * length();
        std::fill(mass + real_, mass + length(), std::numeric_limits<float>::quiet_NaN());
        double later = 0.0;  // sum over the rows i >= j of e^(c_j - c_i)
        for (std::int64_t j = real_; j-- > 0;) {
            later = 1.0 + (j + 1 < real_ ? std::exp(constant(j) - constant(j + 1)) * later : 0.0);
            mass[j] = static_cast<float>(weight(j, j) * later / static_cast<double>(real_ - j));
        }
    }

    void thumbnails() {
        const std::int64_t rows = out_.thumbnail_rows, columns = out_.thumbnail_columns;
        std::vector<Exponentials> keys(static_cast<std::size_t>(columns));
        for (std::int64_t c = 0; c < columns; ++c) {
            for (std::int64_t j = first_of(c, columns, real_); j < first_of(c + 1, columns, real_); ++j)
                keys[static_cast<std::size_t>(c)].add(score(j));
        }
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t begin = first_of(r, rows, real_), end = first_of(r + 1, rows, real_);
            if (begin == end) continue;
            double falls = 0.0;  // sum over the block's rows of e^(c_begin - c_i)
            for (std::int64_t i = begin; i < end; ++i) falls += std::exp(constant(begin) - constant(i));
            for (std::int64_t c = 0; c < columns; ++c) {
                const std::int64_t key = first_of(c, columns, real_), key_end = first_of(c + 1, columns, real_);
                if (key == key_end || key >= end) continue;
                const Exponentials& all = keys[static_cast<std::size_t>(c)];
                Cell cell{all.over(constant(begin)) * falls, std::exp(all.most - constant(begin))};
                if (key_end - 1 > begin) cell = partial(begin, end, key, key_end);
                const std::size_t at = (site_ * static_cast<std::size_t>(rows) + static_cast<std::size_t>(r)) *
                                           static_cast<std::size_t>(columns) +
                                       static_cast<std::size_t>(c);
                const auto cells = static_cast<double>((end - begin) * (key_end - key));
                out_.thumbnail_mean[at] = static_cast<float>(cell.sum / cells);
                out_.thumbnail_maximum[at] = static_cast<float>(cell.maximum);
            }
        }
    }

    struct Cell {
        double sum = 0.0, maximum = 0.0;
    };
    /// Sums over a block that the diagonal crosses.
    Cell partial(std::int64_t begin, std::int64_t end, std::int64_t key, std::int64_t key_end) const {
        Cell cell;
        Exponentials seen;
        for (std::int64_t i = begin; i < end; ++i) {
            for (; key < key_end && key <= i; ++key) seen.add(score(key));
            if (seen.sum == 0.0) continue;
            cell.sum += seen.over(constant(i));
            cell.maximum = larger(cell.maximum, std::exp(seen.most - constant(i)));
        }
        return cell;
    }

    std::span<const float> score_;
    std::int64_t real_;
    const StatisticsRequest& request_;
    std::int64_t b_;
    std::size_t site_;
    Statistics& out_;
    std::vector<double> constant_;
};

/// Head diversity of sequence b; maxima and factors as Head::measure left them, [heads, length].
double diversity(const RunningInput& input, std::int64_t b, std::int64_t real, const float* scores,
                 const std::vector<float>& maximum, const std::vector<float>& factor) {
    const std::int64_t heads = input.query.heads, blocks = (real + cpu::kSpreadRows - 1) / cpu::kSpreadRows;
    if (heads < 2) return 0.0;
    std::vector<double> sums(static_cast<std::size_t>(blocks), 0.0);
    std::vector<cpu::AlignedFloats> scratch(static_cast<std::size_t>(threads()));
    const std::int64_t first = b * heads * input.query.length;
    parallel_for(blocks, [&](std::int64_t index, int worker) {
        check_cancelled(input.cancel);
        const cpu::FlushDenormals guard;
        cpu::AlignedFloats& own = scratch[static_cast<std::size_t>(worker)];
        if (own.data() == nullptr) own = cpu::AlignedFloats(cpu::spread_scratch(heads));
        cpu::SpreadTask task;
        task.score = scores + first;
        task.maximum = maximum.data() + first;
        task.factor = factor.data() + first;
        task.heads = heads;
        task.stride = input.query.length;
        task.query = (blocks - 1 - index) * cpu::kSpreadRows;  // the last rows are the longest
        task.rows = std::min(cpu::kSpreadRows, real - task.query);
        task.cancel = input.cancel;
        task.scratch = own.data();
        sums[static_cast<std::size_t>(blocks - 1 - index)] = cpu::running_spread(task);
    });
    double sum = 0.0;
    for (const double block : sums) sum += block;
    return sum / (0.5 * static_cast<double>(real) * static_cast<double>(real + 1));
}

}  // namespace

void running_statistics(const RunningInput& input, std::span<const float> scores, const StatisticsRequest& request,
                        Statistics& statistics) {
    const std::int64_t batch = input.query.batch, heads = input.query.heads, length = input.query.length;
    if (static_cast<std::int64_t>(scores.size()) != batch * heads * length)
        throw Error("scores", "one for each key of each head", std::to_string(scores.size()));
    // As the general operator would have it: a query of ones, a key of size one.
    ScoreRule rule;
    rule.key_length.assign(input.lengths.begin(), input.lengths.end());
    const TensorView view{scores.data(), ElementType::float32, batch, heads, length, 1, heads * length, length, 1};
    const AttentionInput general{view, view, view, &rule, input.cancel};
    check_attention(general);
    check_statistics(general, request);
    prepare_statistics(general, request, statistics);
    std::vector<float> maximum(scores.size()), factor(scores.size());
    const auto real_of = [&](std::int64_t b) {
        return input.lengths.empty() ? length : input.lengths[static_cast<std::size_t>(b)];
    };
    parallel_for(batch * heads, [&](std::int64_t site, int) {
        check_cancelled(input.cancel);
        const auto first = static_cast<std::size_t>(site * length);
        Head(scores.subspan(first, static_cast<std::size_t>(length)), real_of(site / heads), request, site / heads,
             static_cast<std::size_t>(site), statistics)
            .measure(maximum.data() + first, factor.data() + first);
    });
    for (std::int64_t b = 0; b < batch && request.head_diversity; ++b) {
        statistics.head_diversity[static_cast<std::size_t>(b)] =
            diversity(input, b, real_of(b), scores.data(), maximum, factor);
    }
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/head_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/maps/forbidden.h"
#include "kernels/key_ranges.h"
#include "kernels/parallel.h"
#include "kernels/tiles.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

}  // namespace

HeadMap::HeadMap(std::vector<float> query, std::vector<float> key, std::vector<float> row_constant,
                 std::int64_t key_size, kernels::ScoreRule rule)
    : query_(std::move(query)),
      key_(std::move(key)),
      row_constant_(std::move(row_constant)),
      queries_(static_cast<std::int64_t>(row_constant_.size())),
      keys_(key_size > 0 ? static_cast<std::int64_t>(key_.size()) / key_size : 0),
      key_size_(key_size),
      rule_(std::move(rule)) {
    const auto fits = [key_size](const std::vector<float>& values, std::int64_t rows) {
        return rows > 0 && static_cast<std::int64_t>(values.size()) == rows * key_size;
    };
    if (!fits(query_, queries_) || !fits(key_, keys_)) {
        throw Error(ErrorCode::internal, "map", "expected queries and keys of " + std::to_string(key_size) + " numbers",
                    "found " + std::to_string(query_.size()) + " for " + std::to_string(queries_) + " queries, " +
                        std::to_string(key_.size()) + " for keys");
    }
    kernels::check_attention(input(), /*with_value=*/false);
}

kernels::AttentionInput HeadMap::input(const std::atomic<bool>* cancel) const {
    const auto view = [this](const std::vector<float>& values, std::int64_t length) {
        kernels::TensorView v;
        v.data = values.data();
        v.batch = v.heads = 1;
        v.length = length;
        v.size = v.row_stride = key_size_;
        v.batch_stride = v.head_stride = length * key_size_;
        return v;
    };
    kernels::AttentionInput input;
    input.query = view(query_, queries_);
    input.key = view(key_, keys_);
    input.rule = &rule_;
    input.cancel = cancel;
    return input;
}

std::int64_t HeadMap::bytes() const {
    return static_cast<std::int64_t>((query_.size() + key_.size() + row_constant_.size()) * sizeof(float));
}

void HeadMap::pool_whole(const Cells& cells, std::int64_t rows, std::int64_t columns, std::int64_t stride, float* mean,
                         float* extreme, const std::atomic<bool>& cancel) const {
    if (rows == 0 || columns == 0) return;
    const auto size = static_cast<std::size_t>(rows * columns);
    std::vector<float> means(size), maxima(size);
    kernels::attention_map(input(&cancel), row_constant_,
                           {0, 0, cells.q_begin, cells.q_end, cells.k_begin, cells.k_end}, rows, columns, means.data(),
                           maxima.data());
    for (std::int64_t r = 0; r < rows; ++r) {
        std::copy_n(means.begin() + r * columns, columns, mean + r * stride);
        std::copy_n(maxima.begin() + r * columns, columns, extreme + r * stride);
    }
}

void HeadMap::pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                   const std::atomic<bool>& cancel) const {
    kernels::set_team(kernels::Team::alone);
    // Whole pixels first; what is left at the end makes one pixel of fewer cells in each direction.
    const std::int64_t rows = cells.queries() >> level, columns = cells.keys() >> level;
    const std::int64_t q_whole = cells.q_begin + (rows << level), k_whole = cells.k_begin + (columns << level);
    const std::int64_t rest_rows = q_whole < cells.q_end ? 1 : 0, rest_columns = k_whole < cells.k_end ? 1 : 0;
    const auto quarter = [&](Cells part, std::int64_t r, std::int64_t c, std::int64_t n, std::int64_t m) {
        pool_whole(part, n, m, stride, mean + r * stride + c, extreme + r * stride + c, cancel);
    };
    quarter({cells.q_begin, q_whole, cells.k_begin, k_whole}, 0, 0, rows, columns);
    quarter({cells.q_begin, q_whole, k_whole, cells.k_end}, 0, columns, rows, rest_columns);
    quarter({q_whole, cells.q_end, cells.k_begin, k_whole}, rows, 0, rest_rows, columns);
    quarter({q_whole, cells.q_end, k_whole, cells.k_end}, rows, columns, rest_rows, rest_columns);
    hide(cells, level, stride, mean, extreme);
}

void HeadMap::hide(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme) const {
    const auto bounds = kernels::sequence_bounds(rule_, 0, queries_, keys_);
    const auto pixel = [level](std::int64_t cell) { return cell >> level; };
    for_forbidden(rule_, bounds, 0, 1, cells, pixels(cells.queries(), level), pixels(cells.keys(), level), pixel, pixel,
                  [&](std::int64_t r, std::int64_t c) { mean[r * stride + c] = extreme[r * stride + c] = kNone; });
}

void HeadMap::weights_into(const Cells& cells, float* out) const {
    kernels::attention_weights(input(), row_constant_, 0, 0, cells.q_begin, cells.q_end, cells.k_begin, cells.k_end,
                               out);
}

void HeadMap::scores_into(const Cells& cells, float* out) const {
    kernels::attention_scores(input(), 0, 0, cells.q_begin, cells.q_end, cells.k_begin, cells.k_end, out);
}

std::pair<std::int64_t, std::int64_t> HeadMap::seen(std::int64_t q_begin, std::int64_t q_end) const {
    const auto bounds = kernels::sequence_bounds(rule_, 0, queries_, keys_);
    std::pair<std::int64_t, std::int64_t> all(keys_, 0);
    for (std::int64_t i = q_begin; i < q_end; ++i) {
        const auto row = kernels::key_range(rule_, bounds, i);
        if (row.begin < row.end) all = {std::min(all.first, row.begin), std::max(all.second, row.end)};
    }
    return {std::min(all.first, all.second), all.second};
}

std::vector<std::pair<std::int64_t, std::int64_t>> HeadMap::allowed(std::int64_t query) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    kernels::for_key_ranges(rule_, kernels::sequence_bounds(rule_, 0, queries_, keys_), 0, 0, 1, query,
                            [&](std::int64_t begin, std::int64_t end) {
                                if (begin < end) ranges.emplace_back(begin, end);
                            });
    return ranges;
}

RegionMass HeadMap::mass(const Cells& cells, const std::atomic<bool>& cancel) const {
    constexpr std::int64_t kRows = 128;  // summed as one pixel, in float64
    kernels::set_team(kernels::Team::alone);
    RegionMass all;
    all.cells = cells.queries() * cells.keys();
    for (std::int64_t q = cells.q_begin; q < cells.q_end; q += kRows) {
        const std::int64_t end = std::min(q + kRows, cells.q_end);
        for (std::int64_t i = q; i < end; ++i) {
            const auto ranges = allowed(i);
            if (!ranges.empty()) ++all.queries;
            for (const auto& [first, last] : ranges)
                all.allowed += std::max<std::int64_t>(0, std::min(last, cells.k_end) - std::max(first, cells.k_begin));
        }
        float mean = 0;
        kernels::attention_map(input(&cancel), row_constant_, {0, 0, q, end, cells.k_begin, cells.k_end}, 1, 1, &mean,
                               nullptr);
        all.mass += static_cast<double>(mean) * static_cast<double>((end - q) * cells.keys());
    }
    all.share = all.queries > 0 ? all.mass / static_cast<double>(all.queries) : 0;
    return all;
}

std::vector<PairReading> HeadMap::read(const Cells& cells) const {
    const std::vector<float> weights = values(cells), logits = scores(cells);
    std::vector<PairReading> all(weights.size());
    for (std::size_t at = 0; at < all.size(); ++at) {
        if (std::isnan(weights[at])) continue;
        all[at].weight = weights[at];
        all[at].logit = logits[at];
        all[at].sequences = 1;
    }
    return all;
}

std::vector<float> HeadMap::values(const Cells& cells) const {
    std::vector<float> out(static_cast<std::size_t>(cells.queries() * cells.keys()));
    std::vector<float> same(out.size());
    weights_into(cells, out.data());
    hide(cells, 0, cells.keys(), same.data(), out.data());
    return out;
}

std::vector<float> HeadMap::scores(const Cells& cells) const {
    std::vector<float> out(static_cast<std::size_t>(cells.queries() * cells.keys()));
    scores_into(cells, out.data());
    for (float& s : out)
        if (s == -std::numeric_limits<float>::infinity()) s = kNone;
    return out;
}

}  // namespace headscope::maps

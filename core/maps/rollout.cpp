// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/rollout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "kernels/backend.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/score_pairs.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kBand = 64;    ///< queries whose weights are in memory at once
constexpr std::int64_t kBlock = 256;  ///< rows that are made together: a tile's
constexpr std::size_t kKept = 6;      ///< blocks; 32 MB each at 32 768 tokens
constexpr std::int64_t kFewKeys = 8;  ///< from this many columns on, rows are cheaper
const std::atomic<bool> kGoOn{false};

}  // namespace

/// Rows [first, first + rows) of a layer's Â without the identity: half the mean weights, divided by the row's sum.
struct Rollout::Band {
    std::int64_t rows = 0, k_begin = 0, k_end = 0;  ///< other keys have no weight
    std::vector<float> weights;                     ///< [rows, k_end - k_begin]
    std::vector<float> own;                         ///< [rows], what the identity's half is by then
    std::int64_t keys() const { return k_end - k_begin; }
};

Rollout::Rollout(std::vector<Layer> layers, std::int64_t tokens)
    : layers_(std::move(layers)),
      tokens_(tokens),
      causal_(std::all_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
          return !layer || (layer->rule.causal && layer->rule.query_offset == 0);
      })) {
    for (const Layer& layer : layers_) {
        if (!layer || (layer->queries == tokens_ && layer->keys == tokens_)) continue;
        throw Error(ErrorCode::internal, "rollout", "expected maps of " + std::to_string(tokens_) + " tokens",
                    "found " + std::to_string(layer->queries) + " x " + std::to_string(layer->keys));
    }
}

std::int64_t Rollout::bytes() const {
    std::int64_t numbers = whole() ? tokens_ * tokens_ : static_cast<std::int64_t>(kKept) * kBlock * tokens_;
    for (const Layer& layer : layers_)
        if (layer) numbers += std::ssize(layer->query) + std::ssize(layer->key) + std::ssize(layer->row_constant);
    return numbers * static_cast<std::int64_t>(sizeof(float));
}

std::pair<std::int64_t, std::int64_t> Rollout::seen(std::int64_t, std::int64_t q_end) const {
    return {0, causal_ ? q_end : tokens_};
}

std::vector<std::pair<std::int64_t, std::int64_t>> Rollout::allowed(std::int64_t query) const {
    return {seen(query, query + 1)};
}

Rollout::Band Rollout::band(const store::AnalysisFile::Map& layer, std::int64_t first, std::int64_t end) const {
    Band band;
    band.rows = end - first;
    band.own.resize(static_cast<std::size_t>(band.rows), 1.0F);
    const auto bounds = kernels::sequence_bounds(layer.rule, 0, tokens_, tokens_);
    band.k_begin = tokens_;
    for (std::int64_t i = first; i < end; ++i) {
        const auto row = kernels::key_range(layer.rule, bounds, i);
        if (row.begin >= row.end) continue;
        band.k_begin = std::min(band.k_begin, row.begin);
        band.k_end = std::max(band.k_end, row.end);
    }
    band.k_begin = std::min(band.k_begin, band.k_end);
    band.weights.resize(static_cast<std::size_t>(band.rows * band.keys()));
    if (band.weights.empty()) return band;
    std::vector<float> one(band.weights.size());
    for (std::int64_t head = 0; head < layer.heads; ++head) {
        kernels::attention_weights(layer.input(), layer.row_constant, 0, head, first, end, band.k_begin, band.k_end,
                                   one.data());
        for (std::size_t at = 0; at < one.size(); ++at) band.weights[at] += one[at];
    }
    for (std::int64_t i = 0; i < band.rows; ++i) {
        float* row = band.weights.data() + i * band.keys();
        const double heads = static_cast<double>(layer.heads);
        const double sum = std::accumulate(row, row + band.keys(), 0.0) / heads + 1;
        const auto factor = static_cast<float>(1 / (heads * sum));
        for (std::int64_t k = 0; k < band.keys(); ++k) row[k] *= factor;
        band.own[static_cast<std::size_t>(i)] = static_cast<float>(1 / sum);
    }
    return band;
}

std::vector<float> Rollout::mean_rows(std::span<const std::int64_t> bounds, const std::atomic<bool>& cancel) const {
    const auto count = std::ssize(bounds) - 1;
    std::vector<float> rows(static_cast<std::size_t>(count * tokens_)), next;
    for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t begin = bounds[static_cast<std::size_t>(r)], end = bounds[static_cast<std::size_t>(r) + 1];
        for (std::int64_t i = begin; i < end; ++i)
            rows[static_cast<std::size_t>(r * tokens_ + i)] = 1 / static_cast<float>(end - begin);
    }
    std::vector<float> left;
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
        if (!*layer) continue;
        next.assign(rows.size(), 0.0F);
        for (std::int64_t first = 0; first < tokens_; first += kBand) {
            kernels::check_cancelled(&cancel);
            const std::int64_t end = std::min(first + kBand, tokens_);
            // Rows that have something there: of a causal map the later ones.
            const auto has = [&](std::int64_t r) {
                const float* row = rows.data() + r * tokens_;
                return std::any_of(row + first, row + end, [](float value) { return value != 0; });
            };
            std::int64_t from = 0, to = count;
            while (from < to && !has(from)) ++from;
            while (to > from && !has(to - 1)) --to;
            if (from == to) continue;
            const Band part = band(**layer, first, end);
            left.resize(static_cast<std::size_t>((to - from) * part.rows));
            for (std::int64_t r = from; r < to; ++r) {
                const float* row = rows.data() + r * tokens_ + first;
                float* own = next.data() + r * tokens_ + first;
                std::copy_n(row, part.rows, left.begin() + (r - from) * part.rows);
                for (std::int64_t i = 0; i < part.rows; ++i) own[i] += row[i] * part.own[static_cast<std::size_t>(i)];
            }
            if (part.keys() == 0) continue;
            kernels::multiply({left.data(), to - from, part.rows, part.rows, 1},
                              kernels::MatrixView{part.weights.data(), part.rows, part.keys(), part.keys(), 1},
                              {next.data() + from * tokens_ + part.k_begin, tokens_, true, nullptr, nullptr, 0});
        }
        rows.swap(next);
    }
    return rows;
}

std::vector<float> Rollout::columns(std::int64_t k_begin, std::int64_t k_end, const std::atomic<bool>& cancel) const {
    const std::int64_t count = k_end - k_begin;
    std::vector<float> columns(static_cast<std::size_t>(tokens_ * count)), next;
    for (std::int64_t k = 0; k < count; ++k) columns[static_cast<std::size_t>((k_begin + k) * count + k)] = 1;
    for (const Layer& layer : layers_) {
        if (!layer) continue;
        next.assign(columns.size(), 0.0F);
        for (std::int64_t first = 0; first < tokens_; first += kBand) {
            kernels::check_cancelled(&cancel);
            const Band part = band(*layer, first, std::min(first + kBand, tokens_));
            for (std::int64_t i = 0; i < part.rows; ++i) {
                const float* weights = part.weights.data() + i * part.keys();
                for (std::int64_t c = 0; c < count; ++c) {
                    const float* column = columns.data() + c;
                    double sum = static_cast<double>(part.own[static_cast<std::size_t>(i)]) *
                                 static_cast<double>(column[(first + i) * count]);
                    for (std::int64_t k = 0; k < part.keys(); ++k)
                        sum +=
                            static_cast<double>(weights[k]) * static_cast<double>(column[(part.k_begin + k) * count]);
                    next[static_cast<std::size_t>((first + i) * count + c)] = static_cast<float>(sum);
                }
            }
        }
        columns.swap(next);
    }
    return columns;
}

std::int64_t Rollout::block_rows() const {
    return whole() ? tokens_ : kBlock;
}

Rollout::Rows Rollout::block(int level, std::int64_t index, const std::atomic<bool>& cancel) const {
    const std::lock_guard lock(mutex_);
    const std::pair key(level, index);
    const auto known = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& one) { return one.first == key; });
    if (known != blocks_.end()) return known->second;
    kernels::check_cancelled(&cancel);
    std::vector<std::int64_t> bounds;
    for (std::int64_t r = index * block_rows(); r <= (index + 1) * block_rows(); ++r) {
        bounds.push_back(std::min(r << level, tokens_));
        if (bounds.back() == tokens_) break;
    }
    auto made = std::make_shared<const std::vector<float>>(mean_rows(bounds, cancel));
    blocks_.emplace_front(key, made);
    if (blocks_.size() > kKept) blocks_.pop_back();
    return made;
}

void Rollout::weights_into(const Cells& cells, float* out) const {
    if (!whole() && cells.keys() <= kFewKeys && cells.queries() > kBlock) {
        const std::vector<float> all = columns(cells.k_begin, cells.k_end, kGoOn);
        std::copy_n(all.begin() + cells.q_begin * cells.keys(), cells.queries() * cells.keys(), out);
        return;
    }
    Rows rows;
    std::int64_t held = -1;
    for (std::int64_t q = cells.q_begin; q < cells.q_end; ++q) {
        const std::int64_t index = q / block_rows();
        if (index != std::exchange(held, index)) rows = block(0, index, kGoOn);
        std::copy_n(rows->begin() + (q - index * block_rows()) * tokens_ + cells.k_begin, cells.keys(),
                    out + (q - cells.q_begin) * cells.keys());
    }
}

void Rollout::pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                   const std::atomic<bool>& cancel) const {
    kernels::set_team(kernels::Team::alone);
    if (whole()) {
        block(0, 0, cancel);
        return PairMap::pool(cells, level, stride, mean, extreme, cancel);
    }
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    const std::int64_t side = std::int64_t{1} << level;
    for (std::int64_t r = 0; r < rows; ++r) {
        kernels::check_cancelled(&cancel);
        const std::int64_t place = (cells.q_begin >> level) + r, index = place / kBlock;
        const Rows all = block(level, index, cancel);
        const float* row = all->data() + (place - index * kBlock) * tokens_;
        const std::int64_t sees = seen(place << level, std::min((place + 1) << level, tokens_)).second;
        for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t begin = cells.k_begin + c * side, end = std::min(begin + side, cells.k_end);
            const bool none = begin >= sees;
            const double sum = std::accumulate(row + begin, row + end, 0.0);
            mean[r * stride + c] = none ? kNone : static_cast<float>(sum / static_cast<double>(end - begin));
            extreme[r * stride + c] = none ? kNone : *std::max_element(row + begin, row + end);
        }
    }
}

}  // namespace headscope::maps

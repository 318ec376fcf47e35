// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/word_map.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace headscope::maps {
namespace {

constexpr std::int64_t kRows = 64, kKeys = 2048;  ///< pieces that are computed at once

std::vector<std::int32_t> word_of(const std::vector<std::int64_t>& begins, std::int64_t pieces) {
    const bool ascending = std::adjacent_find(begins.begin(), begins.end(), std::greater_equal<>()) == begins.end();
    if (begins.size() < 2 || begins.front() != 0 || begins.back() != pieces || !ascending) {
        throw Error(ErrorCode::internal, "map of words", "expected words of " + std::to_string(pieces) + " pieces",
                    "found " + std::to_string(begins.size()) + " begins up to " +
                        std::to_string(begins.empty() ? 0 : begins.back()));
    }
    std::vector<std::int32_t> words(static_cast<std::size_t>(pieces));
    for (std::size_t w = 0; w + 1 < begins.size(); ++w)
        std::fill(words.begin() + begins[w], words.begin() + begins[w + 1], static_cast<std::int32_t>(w));
    return words;
}

}  // namespace

WordMap::WordMap(std::shared_ptr<const PairMap> pieces, std::vector<std::int64_t> queries,
                 std::vector<std::int64_t> keys)
    : pieces_(std::move(pieces)),
      queries_(std::move(queries)),
      keys_(std::move(keys)),
      word_of_query_(word_of(queries_, pieces_->queries())),
      word_of_key_(word_of(keys_, pieces_->keys())) {
    // Sums of coefficients may be greater than each.
    if (std::isnan(pieces_->most())) return;
    most_ = 0;
    std::vector<float> part;
    for (std::int64_t q = 0; q < this->queries(); q += kRows) {
        const Cells cells{q, std::min(q + kRows, this->queries()), 0, this->keys()};
        part.resize(static_cast<std::size_t>(cells.queries() * cells.keys()));
        weights_into(cells, part.data());
        for (const float value : part) most_ = std::max(most_, std::abs(value));
    }
}

void WordMap::weights_into(const Cells& cells, float* out) const {
    const auto begin_of = [](const std::vector<std::int64_t>& begins, std::int64_t word) {
        return begins[static_cast<std::size_t>(word)];
    };
    const std::int64_t q_begin = begin_of(queries_, cells.q_begin), q_end = begin_of(queries_, cells.q_end);
    const std::int64_t k_begin = begin_of(keys_, cells.k_begin), k_end = begin_of(keys_, cells.k_end);
    std::vector<double> sums(static_cast<std::size_t>(cells.queries() * cells.keys()), 0.0);
    std::vector<float> part;
    for (std::int64_t q = q_begin; q < q_end; q += kRows) {
        const std::int64_t rows_end = std::min(q + kRows, q_end);
        const auto [seen_begin, seen_end] = pieces_->seen(q, rows_end);
        const std::int64_t last = std::min(seen_end, k_end);
        for (std::int64_t k = std::max(seen_begin, k_begin); k < last; k += kKeys) {
            const std::int64_t size = std::min(kKeys, last - k);
            part.resize(static_cast<std::size_t>((rows_end - q) * size));
            pieces_->weights_into({q, rows_end, k, k + size}, part.data());
            const std::int32_t* word = word_of_key_.data() + k;
            for (std::int64_t i = q; i < rows_end; ++i) {
                const float* row = part.data() + (i - q) * size;
                double* sum = sums.data() +
                              (word_of_query_[static_cast<std::size_t>(i)] - cells.q_begin) * cells.keys() -
                              cells.k_begin;
                for (std::int64_t j = 0; j < size; ++j) sum[word[j]] += static_cast<double>(row[j]);
            }
        }
    }
    for (std::int64_t i = 0; i < cells.queries(); ++i) {
        const auto rows =
            static_cast<double>(begin_of(queries_, cells.q_begin + i + 1) - begin_of(queries_, cells.q_begin + i));
        for (std::int64_t j = i * cells.keys(); j < (i + 1) * cells.keys(); ++j)
            out[j] = static_cast<float>(sums[static_cast<std::size_t>(j)] / rows);
    }
}

std::int64_t WordMap::bytes() const {
    return pieces_->bytes() + static_cast<std::int64_t>((queries_.size() + keys_.size()) * sizeof(std::int64_t) +
                                                        (word_of_query_.size() + word_of_key_.size()) * 4);
}

std::pair<std::int64_t, std::int64_t> WordMap::seen(std::int64_t q_begin, std::int64_t q_end) const {
    const auto [begin, end] =
        pieces_->seen(queries_[static_cast<std::size_t>(q_begin)], queries_[static_cast<std::size_t>(q_end)]);
    if (begin >= end) return {0, 0};
    return {word_of_key_[static_cast<std::size_t>(begin)], word_of_key_[static_cast<std::size_t>(end - 1)] + 1};
}

std::vector<std::pair<std::int64_t, std::int64_t>> WordMap::allowed(std::int64_t query) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (std::int64_t i = queries_[static_cast<std::size_t>(query)]; i < queries_[static_cast<std::size_t>(query) + 1];
         ++i) {
        for (const auto& [begin, end] : pieces_->allowed(i))
            ranges.emplace_back(word_of_key_[static_cast<std::size_t>(begin)],
                                word_of_key_[static_cast<std::size_t>(end - 1)] + 1);
    }
    return joined_ranges(std::move(ranges));
}

}  // namespace headscope::maps

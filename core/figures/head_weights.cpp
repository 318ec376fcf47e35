// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/head_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "kernels/key_ranges.h"
#include "kernels/tiles.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

/// NaN into every cell under which the rule allows no pair: future, window, blocks, padding.
void hide_forbidden(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region, std::int64_t rows,
                    std::int64_t columns, std::vector<float>& values) {
    const kernels::ScoreRule& rule = map.rule;
    const auto bounds = kernels::sequence_bounds(rule, 0, map.queries, map.keys);
    // Per row of cells: +1 where a range of allowed keys begins, -1 behind its end.
    std::vector<std::int64_t> change(static_cast<std::size_t>(columns) + 1);
    const auto allow = [&](std::int64_t begin, std::int64_t end) {
        begin = std::max(begin, region.first_key) - region.first_key;
        end = std::min(end, region.end_key) - region.first_key;
        if (begin >= end) return;
        ++change[static_cast<std::size_t>(begin * columns / region.keys())];
        --change[static_cast<std::size_t>((end - 1) * columns / region.keys()) + 1];
    };
    std::int64_t i = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        std::fill(change.begin(), change.end(), 0);
        for (; i < region.queries() && i * rows / region.queries() == r; ++i)
            kernels::for_key_ranges(rule, bounds, 0, head, map.heads, region.first_query + i, allow);
        std::int64_t ranges = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
            ranges += change[static_cast<std::size_t>(c)];
            if (ranges == 0) values[static_cast<std::size_t>(r * columns + c)] = kNone;
        }
    }
}

void check_end(const char* from, const char* to, const std::optional<std::int64_t>& first,
               const std::optional<std::int64_t>& end, std::int64_t count, std::int64_t& begin, std::int64_t& stop) {
    begin = first.value_or(0);
    stop = end.value_or(count);
    if (begin < 0 || begin >= count) {
        throw Error(ErrorCode::usage, from,
                    "expected 0 to " + std::to_string(count - 1) + ": there are " + std::to_string(count) + " tokens",
                    "found " + std::to_string(begin));
    }
    if (stop <= begin || stop > count) {
        throw Error(ErrorCode::usage, to, "expected " + std::to_string(begin + 1) + " to " + std::to_string(count),
                    "found " + std::to_string(stop));
    }
}

}  // namespace

std::int64_t first_layer_with_matrix(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto& sites = file.header().sites;
    const auto chosen = chosen_sites(file, options);
    for (const auto site : chosen)
        if (sites[static_cast<std::size_t>(site)].has_matrix ||
            (sites[static_cast<std::size_t>(site)].has_implicit && file.header().record.implicit))
            return sites[static_cast<std::size_t>(site)].layer;
    return sites[static_cast<std::size_t>(chosen.front())].layer;
}

void check_recorded(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, const std::string& recipe) {
    const std::string where = "figure " + recipe + ", " + site_title(file, site);
    const Site& about = file.header().sites[static_cast<std::size_t>(site)];
    if (about.has_implicit) {
        if (!file.header().record.implicit) {
            throw Error(ErrorCode::usage, where + " of " + file_name(file),
                        "expected a file with implicit matrices: analyze with --record implicit",
                        "found a recurrent layer, and none recorded");
        }
    } else if (!file.header().record.maps) {
        throw Error(ErrorCode::usage, "figure " + recipe + " of " + file_name(file),
                    "expected a file with maps: analyze with --record maps", "found none recorded");
    } else if (!about.has_matrix) {
        throw Error(ErrorCode::usage, where, "expected a layer with an attention matrix",
                    "found one that mixes tokens without");
    }
    if (!file.site_done(s, site)) {
        throw Error(ErrorCode::usage, where + " of " + file_name(file), "expected a layer that is done",
                    "found a partial file that ends before it");
    }
}

store::AnalysisFile::Map recorded_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                      const std::string& recipe) {
    check_recorded(file, s, site, recipe);
    auto map = file.map(s, site);
    if (!map) {
        throw Error(ErrorCode::usage, "figure " + recipe + ", " + site_title(file, site) + " of " + file_name(file),
                    "expected a layer whose map was recorded", "found none");
    }
    return std::move(*map);
}

Region chosen_region(const FigureOptions& options, std::int64_t queries, std::int64_t keys) {
    Region region;
    check_end("--from-query", "--to-query", options.from_query, options.to_query, queries, region.first_query,
              region.end_query);
    check_end("--from-key", "--to-key", options.from_key, options.to_key, keys, region.first_key, region.end_key);
    return region;
}

bool asks_for_part(const FigureOptions& options) {
    return options.from_query || options.to_query || options.from_key || options.to_key;
}

std::vector<float> exact_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region) {
    std::vector<float> weights(static_cast<std::size_t>(region.queries() * region.keys()));
    kernels::attention_weights(map.input(), map.row_constant, 0, head, region.first_query, region.end_query,
                               region.first_key, region.end_key, weights.data());
    hide_forbidden(map, head, region, region.queries(), region.keys(), weights);
    return weights;
}

std::vector<float> pooled_weights(const store::AnalysisFile::Map& map, std::int64_t head, const Region& region,
                                  std::int64_t rows, std::int64_t columns, Pooling pooling) {
    std::vector<float> cells(static_cast<std::size_t>(rows * columns));
    const bool mean = pooling == Pooling::mean;
    kernels::attention_map(map.input(), map.row_constant,
                           {0, head, region.first_query, region.end_query, region.first_key, region.end_key}, rows,
                           columns, mean ? cells.data() : nullptr, mean ? nullptr : cells.data());
    hide_forbidden(map, head, region, rows, columns, cells);
    return cells;
}

std::vector<std::string> stream_pieces(const store::AnalysisHeader& header, std::int64_t s, const std::string& stream) {
    const auto other = header.streams.find(stream);
    const auto& sequences = other == header.streams.end() ? header.sequences : other->second;
    if (s >= std::ssize(sequences) || (other == header.streams.end() && stream != "tokens")) return {};
    return sequences[static_cast<std::size_t>(s)].pieces;
}

std::vector<float> row_ranks(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
    std::vector<float> ranks(values.size(), kNone);
    std::vector<float> sorted;
    for (std::int64_t r = 0; r < rows; ++r) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(r * columns);
        sorted.clear();
        std::copy_if(first, first + static_cast<std::ptrdiff_t>(columns), std::back_inserter(sorted),
                     [](float value) { return !std::isnan(value); });
        std::sort(sorted.begin(), sorted.end());
        for (std::int64_t c = 0; c < columns; ++c) {
            const auto at = static_cast<std::size_t>(r * columns + c);
            if (std::isnan(values[at])) continue;
            const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), values[at]);
            const double less = static_cast<double>(low - sorted.begin());
            const double equal = static_cast<double>(high - low) - 1;
            const double others = static_cast<double>(sorted.size()) - 1;
            ranks[at] = others > 0 ? static_cast<float>((less + equal / 2) / others) : 1.0F;
        }
    }
    return ranks;
}

}  // namespace headscope::figures

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/head_weights.h"

#include "core/base/error.h"

namespace headscope::figures {
namespace {

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

Error not_recorded(const store::AnalysisFile& file, std::int64_t site, const std::string& recipe) {
    return {ErrorCode::usage, "figure " + recipe + ", " + site_title(file, site) + " of " + file_name(file),
            "expected a layer whose map was recorded", "found none"};
}

store::AnalysisFile::Map recorded_map(const store::AnalysisFile& file, std::int64_t s, std::int64_t site,
                                      const std::string& recipe) {
    check_recorded(file, s, site, recipe);
    auto map = file.map(s, site);
    if (!map) throw not_recorded(file, site, recipe);
    return std::move(*map);
}

maps::Cells chosen_region(const FigureOptions& options, std::int64_t queries, std::int64_t keys) {
    maps::Cells region;
    check_end("--from-query", "--to-query", options.from_query, options.to_query, queries, region.q_begin,
              region.q_end);
    check_end("--from-key", "--to-key", options.from_key, options.to_key, keys, region.k_begin, region.k_end);
    return region;
}

bool asks_for_part(const FigureOptions& options) {
    return options.from_query || options.to_query || options.from_key || options.to_key;
}

std::vector<std::string> stream_pieces(const store::AnalysisHeader& header, std::int64_t s, const std::string& stream) {
    const auto other = header.streams.find(stream);
    const auto& sequences = other == header.streams.end() ? header.sequences : other->second;
    if (s >= std::ssize(sequences) || (other == header.streams.end() && stream != "tokens")) return {};
    return sequences[static_cast<std::size_t>(s)].pieces;
}

}  // namespace headscope::figures

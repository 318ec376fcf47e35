// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/analysis_header.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::store {
namespace {

constexpr std::int64_t longest_with_all_rows = 1024;
constexpr std::int64_t sampled_row_step = 8;

std::int64_t longest_of(const std::vector<SequenceTokens>& sequences) {
    std::size_t longest = 0;
    for (const SequenceTokens& sequence : sequences) longest = std::max(longest, sequence.ids.size());
    return static_cast<std::int64_t>(longest);
}

std::int64_t stream_length(const AnalysisHeader& header, const std::string& stream, std::int64_t s) {
    const std::vector<SequenceTokens>* sequences = &header.sequences;
    if (stream != "tokens") {
        const auto found = header.streams.find(stream);
        sequences = found == header.streams.end() ? nullptr : &found->second;
    }
    if (sequences == nullptr || s < 0 || s >= static_cast<std::int64_t>(sequences->size())) {
        throw Error(ErrorCode::internal, "analysis header",
                    "expected sequence " + std::to_string(s) + " of stream " + escaped(stream), "found none");
    }
    return static_cast<std::int64_t>((*sequences)[static_cast<std::size_t>(s)].ids.size());
}

}  // namespace

std::string map_type_name(MapType type) {
    return type == MapType::float32 ? "float32" : type == MapType::int16 ? "int16" : "float16";
}

void AnalysisHeader::take_parameters() {
    std::int64_t end = 0;
    bias_first = bias_window = head_embedding_size = 0;
    has_slopes = has_offsets = false;
    for (const Site& site : sites) {
        has_slopes |= site.has_slopes;
        has_offsets |= site.has_offsets;
        if (site.has_head_embeddings) head_embedding_size = std::max<std::int64_t>(head_embedding_size, site.key_size);
        if (site.bias_length == 0) continue;
        bias_first = std::min<std::int64_t>(bias_first, site.bias_first);
        end = std::max<std::int64_t>(end, site.bias_first + site.bias_length);
    }
    bias_window = end - bias_first;
}

std::int64_t AnalysisHeader::longest() const {
    std::int64_t longest = longest_of(sequences);
    for (const auto& [name, stream] : streams) longest = std::max(longest, longest_of(stream));
    return longest;
}

bool AnalysisHeader::pairs() const {
    return std::any_of(sequences.begin(), sequences.end(), [](const auto& one) { return !one.regions.empty(); });
}

bool AnalysisHeader::hashed() const {
    return std::any_of(sequences.begin(), sequences.end(), [](const auto& one) { return !one.hashes.empty(); });
}

std::int32_t AnalysisHeader::most_heads() const {
    std::int32_t most = 0;
    for (const Site& site : sites) most = std::max(most, site.heads);
    return most;
}

std::int64_t AnalysisHeader::row_step() const {
    if (histogram_row_step > 0) return histogram_row_step;
    return longest() <= longest_with_all_rows ? 1 : sampled_row_step;
}

bool AnalysisHeader::measured(const Site& site) const {
    return site.has_matrix && (measured_layers.empty() || measured_layers.contains(site.layer));
}

bool AnalysisHeader::measured_implicit(const Site& site) const {
    return site.has_implicit && (measured_layers.empty() || measured_layers.contains(site.layer));
}

bool AnalysisHeader::has_implicit() const {
    return std::any_of(sites.begin(), sites.end(), [](const Site& site) { return site.has_implicit; });
}

bool AnalysisHeader::weighed(const Site& site) const {
    return type_chunk > 0 && site.branch == "softmax" && measured(site);
}

const std::vector<SequenceTokens>& AnalysisHeader::output_sequences() const {
    for (const Site& site : sites) {
        if (site.stack != "decoder") continue;
        if (const auto found = streams.find(site.query_stream); found != streams.end()) return found->second;
    }
    return sequences;
}

std::int64_t AnalysisHeader::queries(std::int64_t s, const Site& site) const {
    return stream_length(*this, site.query_stream, s);
}

std::int64_t AnalysisHeader::keys(std::int64_t s, const Site& site) const {
    return stream_length(*this, site.key_stream, s);
}

std::span<const std::int32_t> AnalysisHeader::regions(std::int64_t s, const Site& site) const {
    if (site.query_stream != "tokens" || site.key_stream != "tokens") return {};
    return sequences.at(static_cast<std::size_t>(s)).regions;
}

}  // namespace headscope::store

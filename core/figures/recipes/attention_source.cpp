// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/attention_source.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/maps/pooled_map.h"

namespace headscope::figures {
namespace {

/// Takes the largest value of the whole map, if known: a part has the colors of the whole.
void take_largest(AttentionMap& map, const maps::PairMap& whole) {
    if (const float most = whole.most(); std::isfinite(most)) map.largest = static_cast<double>(most);
}

}  // namespace

AttentionSource::AttentionSource(const store::AnalysisFile& file, std::int64_t site, const FigureOptions& options)
    : file_(file), site_(site), mean_(options.all_sequences && file.header().sequences.size() > 1) {
    sequence_ = options.all_sequences ? 0 : chosen_sequence(file, options);
    const bool implicit = file.header().sites[static_cast<std::size_t>(site)].has_implicit;
    const bool recorded = !implicit && (options.values == MapValues::weights || options.values == MapValues::logits);
    if (options.units == Units::words)
        read_words();
    else if (mean_ || options.head == kMeanOfHeads)
        check_recorded(file, sequence_, site, "attention");
    else if (recorded)
        recorded_ = recorded_map(file, sequence_, site, "attention");
}

void AttentionSource::fill(AttentionMap& map, const FigureOptions& options,
                           const std::function<std::int64_t(std::int64_t)>& side) const {
    if (words_)
        fill_words(map, options, side);
    else
        fill_pieces(map, options, side);
    if (!map.computed() || map.largest > 0) return;
    for (const float value : map.values)
        if (!std::isnan(value)) map.largest = std::max(map.largest, std::abs(static_cast<double>(value)));
}

void AttentionSource::fill_pieces(AttentionMap& map, const FigureOptions& options,
                                  const std::function<std::int64_t(std::int64_t)>& side) const {
    const auto& about = file_.header().sites[static_cast<std::size_t>(site_)];
    const bool of_heads = options.head == kMeanOfHeads;
    const auto mean = of_heads ? maps::read_mean_of_heads(file_, mean_ ? std::nullopt : std::optional(sequence_), site_)
                      : mean_  ? maps::read_mean_map(file_, site_, map.head)
                               : nullptr;
    const auto computed =
        mean || recorded_ ? nullptr : computed_map(file_, sequence_, site_, map.head, map.kind, "attention");
    const std::int64_t queries = mean ? mean->queries() : computed ? computed->queries() : recorded_->queries;
    const std::int64_t keys = mean ? mean->keys() : computed ? computed->keys() : recorded_->keys;
    map.queries = queries;
    map.region = chosen_region(options, queries, keys);
    map.rows = side(map.region.queries());
    map.columns = side(map.region.keys());
    if (mean) {
        if (mean_) map.sequences = mean->sequences() / (of_heads ? about.heads : 1);
        fill_mean(map, *mean, !of_heads);
    }
    if (!mean_) {
        const auto regions = file_.header().regions(sequence_, about);
        map.query_regions.assign(regions.begin(), regions.end());
        map.key_regions = map.query_regions;
        map.query_tokens = stream_pieces(file_.header(), sequence_, about.query_stream);
        map.key_tokens = stream_pieces(file_.header(), sequence_, about.key_stream);
        if (computed) {
            fill_computed(map, *computed);
            take_largest(map, *computed);
        } else if (!mean)
            map.values = map.exact() ? exact_values(*recorded_, map.head, map.region, map.kind)
                                     : pooled_values(*recorded_, map.head, map.region, map.rows, map.columns, map.kind,
                                                     map.pooling);
    }
    if (map.logits()) {
        for (const std::int64_t s : mean_ ? chosen_sequences(file_, options) : std::vector{sequence_})
            for (std::int64_t h = of_heads ? 0 : map.head; h < (of_heads ? about.heads : map.head + 1); ++h)
                map.largest = std::max(map.largest, largest_logit(file_, s, site_, h));
    }
    const std::int64_t limit = file_.header().max_positions;
    if (limit > 0 && std::max(queries, keys) > limit) map.limit = limit;
}

void AttentionSource::fill_computed(AttentionMap& map, const maps::ValueMap& computed) {
    const maps::Cells& part = map.region;
    map.values = map.exact() ? computed.values(part)
                             : maps::pooled_map(computed, part, map.rows, map.columns, map.pooling == Pooling::mean);
}

void AttentionSource::read_words() {
    const auto refuse = [](const char* expected, const char* found) {
        throw Error(ErrorCode::usage, "--units words", expected, found);
    };
    if (mean_) refuse("expected one sequence, for each has words of its own", "found all");
    words_.emplace(file_, sequence_, site_, "attention");
}

void AttentionSource::fill_words(AttentionMap& map, const FigureOptions& options,
                                 const std::function<std::int64_t(std::int64_t)>& side) const {
    const auto words = words_of(map.head);
    map.words = true;
    map.region = chosen_region(options, words->queries(), words->keys());
    map.rows = side(map.region.queries());
    map.columns = side(map.region.keys());
    if (!file_.header().regions(sequence_, file_.header().sites[static_cast<std::size_t>(site_)]).empty()) {
        map.query_regions = words_->queries.tokens.regions;
        map.key_regions = words_->keys.tokens.regions;
    }
    map.query_tokens = words_->queries.tokens.pieces;
    map.key_tokens = words_->keys.tokens.pieces;
    map.values =
        maps::pooled_map(*words, map.region, map.rows, map.columns, map.pooling == Pooling::mean, map.logits());
    if (map.computed()) take_largest(map, *words);
}

std::shared_ptr<const maps::PairMap> AttentionSource::words_of(std::int64_t head) const {
    if (head != kMeanOfHeads) return words_->map(head);
    std::vector<std::shared_ptr<const maps::PairMap>> heads;
    for (std::int64_t h = 0; h < file_.header().sites[static_cast<std::size_t>(site_)].heads; ++h)
        heads.push_back(words_->map(h));
    return std::make_shared<const maps::MeanMap>(std::move(heads));
}

void AttentionSource::fill_mean(AttentionMap& map, const maps::MeanMap& mean, bool spread) {
    if (!map.exact()) {
        map.values =
            maps::pooled_map(mean, map.region, map.rows, map.columns, map.pooling == Pooling::mean, map.logits());
        return;
    }
    const maps::Cells& part = map.region;
    for (const maps::PairReading& pair : mean.read(part)) {
        map.values.push_back(map.logits() ? pair.logit : pair.weight);
        if (!spread) continue;
        map.deviation.push_back(static_cast<double>(map.logits() ? pair.logit_deviation : pair.weight_deviation));
    }
}

}  // namespace headscope::figures

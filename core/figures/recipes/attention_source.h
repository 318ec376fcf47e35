// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Source of the numbers of figure `attention`. For recipe_attention.cpp.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/figures/recipes/attention_map.h"
#include "core/figures/word_units.h"
#include "core/maps/map_reader.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::figures {

/// The recorded maps of one site: of one sequence, all heads at once, or of all sequences, head by head.
class AttentionSource {
public:
    AttentionSource(const store::AnalysisFile& file, std::int64_t site, const FigureOptions& options);

    /// Fills in the numbers of map.head; `side`: cells for a number of positions.
    void fill(AttentionMap& map, const FigureOptions& options,
              const std::function<std::int64_t(std::int64_t)>& side) const;

private:
    void fill_pieces(AttentionMap& map, const FigureOptions& options,
                     const std::function<std::int64_t(std::int64_t)>& side) const;
    static void fill_computed(AttentionMap& map, const maps::ValueMap& computed);
    void read_words();
    void fill_words(AttentionMap& map, const FigureOptions& options,
                    const std::function<std::int64_t(std::int64_t)>& side) const;
    std::shared_ptr<const maps::PairMap> words_of(std::int64_t head) const;
    /// `spread`: with the deviation over sequences.
    static void fill_mean(AttentionMap& map, const maps::MeanMap& mean, bool spread);

    const store::AnalysisFile& file_;
    std::int64_t site_, sequence_ = 0;
    bool mean_;
    std::optional<store::AnalysisFile::Map> recorded_;
    std::optional<SiteWords> words_;
};

}  // namespace headscope::figures

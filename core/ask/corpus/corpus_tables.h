// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tables of ask corpus: names and shapes of /corpus. Threads: plain functions.

#include <cstdint>
#include <span>
#include <string>

#include "core/ask/corpus/corpus.h"
#include "core/ask/corpus/head_measures.h"
#include "core/store/ask/ask_file.h"

namespace headscope::ask::corpus {

/// Places of /corpus/progress.
enum Counter : std::uint8_t { kDocuments, kTexts, kTokens, kRepeats, kSettingEnd, kAgain, kCounters };

inline constexpr std::int64_t kHistogramCells = 50, kTopTokens = 20;

/// A measure over all texts, [n, H] of /corpus.
struct HeadMeasure {
    const char *name, *label, *unit;
};
std::span<const HeadMeasure> head_measures();

/// A sum over all texts, [n, H], and the numbers of a text that it adds.
struct CorpusSum {
    const char* path;
    double HeadMeasures::*member;
};
inline constexpr CorpusSum kCorpusSums[] = {
    {"/corpus/sum/self", &HeadMeasures::self},       {"/corpus/sum/previous", &HeadMeasures::previous},
    {"/corpus/sum/entropy", &HeadMeasures::entropy}, {"/corpus/sum/distance", &HeadMeasures::distance},
    {"/corpus/sum/square", &HeadMeasures::square},   {"/corpus/sum/induction", &HeadMeasures::induction},
    {"/corpus/sum/maximum", &HeadMeasures::maximum}};

inline std::string corpus_path(const std::string& name) {
    return "/corpus/" + name;
}

/// Sizes of the dimensions of /corpus.
struct CorpusSizes {
    std::int64_t setting_texts = 0;  ///< texts that set the intervals
    std::int64_t intervals = 5;
    std::int64_t slots = 0;  ///< texts that a head keeps; 0: as many as `intervals` have
    std::int64_t histogram_cells = kHistogramCells, top_tokens = kTopTokens, distances = kDistanceBins;
};
void add_corpus_dimensions(store::AskRecord& record, const CorpusSizes& sizes);

/// Adds the tables without numbers, after the dimensions.
void add_corpus_tables(store::AskRecord& record);

}  // namespace headscope::ask::corpus

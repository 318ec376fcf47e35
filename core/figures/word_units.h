// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Words in place of pieces: which pieces make a word, and a head's map with words for its rows and columns.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/maps/word_map.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::figures {

/// The units of a text. A word is a longest run of pieces between which the text has no white space, whatever the
/// pieces themselves look like; a piece that reaches over white space joins what it touches at both ends. A piece that
/// stands for no text (inserted tokens) or for nothing but white space is a unit of its own, and so is every piece of a
/// list of ids without a text.
struct WordUnits {
    std::vector<std::int64_t> begins;  ///< the first piece of each, and behind them the number of pieces
    store::SequenceTokens tokens;      ///< as if each were a token: its id is its first piece's
};
WordUnits word_units(const store::SequenceTokens& pieces);

/// The tokens of a stream ("tokens", "target") of sequence s.
const store::SequenceTokens& stream_tokens(const store::AnalysisHeader& header, std::int64_t s,
                                           const std::string& stream);

/// A site's words in one sequence; its heads' maps are read one by one. Throws Error (usage) where none was recorded.
class SiteWords {
public:
    SiteWords(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, const std::string& recipe);
    std::shared_ptr<const maps::WordMap> map(std::int64_t head) const;

    WordUnits queries, keys;

private:
    const store::AnalysisFile& file_;
    std::int64_t s_, site_;
};

/// Sums of the pieces of each word; NaN if all are.
std::vector<double> sums_of_words(const std::vector<double>& pieces, const std::vector<std::int64_t>& begins);

/// Note below figures of words.
inline constexpr const char* kWordsNote = "Whole words: rows of their pieces averaged, columns summed.";

}  // namespace headscope::figures

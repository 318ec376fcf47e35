// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// BLEU of a corpus (Papineni et al. 2002), one reference a segment, with the numbers of sacrebleu's default (Post 2018;
// signature nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp): mteval-v13a's tokens, n-grams of one to four, orders without
// a match smoothed by NIST's rule. Texts are valid UTF-8. Threads: any.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::evaluation {

/// The tokens of a segment: mteval-v13a's entities and hyphenated line ends, ASCII punctuation apart, full stops and
/// commas apart unless between digits, dashes behind digits apart. Other scripts' punctuation stays where it is.
std::vector<std::string> bleu_tokens(std::string_view segment);

class BleuCounts {
public:
    void add(std::string_view said, std::string_view reference);
    /// 0 to 100. 0 where no word matches, and where no segment has four tokens.
    double score() const;
    double brevity_penalty() const;
    std::int64_t segments() const { return segments_; }

private:
    static constexpr std::size_t kOrders = 4;
    std::array<std::int64_t, kOrders> correct_{}, total_{};
    std::int64_t said_ = 0, reference_ = 0, segments_ = 0;  ///< tokens, tokens
};

}  // namespace headscope::evaluation

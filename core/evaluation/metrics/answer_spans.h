// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How SQuAD judges an answer (Rajpurkar et al. 2016, 2018): by its words, case, ASCII punctuation, articles and white
// space aside, against the best of several true ones. Texts are valid UTF-8. Threads: any.

#include <span>
#include <string>
#include <string_view>

namespace headscope::evaluation {

/// Lower case; ASCII punctuation taken out; the words a, an and the made white space; one space between what is left.
std::string normalized_answer(std::string_view text);

struct SpanScore {
    double f1 = 0, exact = 0;  ///< of 1
};
/// The best F1 over bags of words and the best exact match among `truths`, as of SQuAD 2.0: true answers of which
/// nothing is left are passed over; where none is left (a question without an answer), "" is the true one, and an empty
/// answer is right.
SpanScore span_score(std::string_view said, std::span<const std::string> truths);
/// The same as of SQuAD 1.1: no true answer is passed over, and F1 without a common word is 0, of two empty texts too.
SpanScore first_span_score(std::string_view said, std::span<const std::string> truths);

/// A question in the search for the best threshold of "no answer".
struct ThresholdItem {
    double no_answer = 0;  ///< larger: more likely none
    bool has_answer = false, says_one = false;
};
struct BestThreshold {
    double score = 0, threshold = 0;  ///< mean over the questions; an answer is dropped above the threshold
};
/// SQuAD 2.0's search: all say "none" at first, then the answers by rising no_answer (of equals the earlier first) add
/// their `scores`, or -1 where there is none; the first threshold with the largest sum.
BestThreshold best_threshold(std::span<const ThresholdItem> items, std::span<const double> scores);

}  // namespace headscope::evaluation

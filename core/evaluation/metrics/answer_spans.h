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

}  // namespace headscope::evaluation

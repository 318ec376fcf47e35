// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// LongBench's scores of one said answer against one true answer, as lm-eval 0.4.13 has them, and THUDM's code but for
// what parameters say: shares of 1. Texts are
// valid UTF-8. Threads: any.

#include <span>
#include <string>
#include <string_view>

namespace headscope::evaluation {

/// F1 of the bags of normalized_answer()'s words; 0 without a common word, also of two empty texts.
double qa_f1(std::string_view said, std::string_view truth);

/// F1 (epsilon 1e-8) of package rouge 1.0.1's ROUGE-L of summaries: sentences end at ".", case and punctuation stay;
/// different words on a longest common subsequence of any two sentences, over the different words of each side.
double rouge_l(std::string_view said, std::string_view truth);

/// 1 over the number of `classes` that `said` contains, if the true one is among them; else 0. Those contained in the
/// true one are left out as lm-eval's loop does, which skips the entry after each.
double class_in_text(std::string_view said, std::string_view truth, std::span<const std::string> classes);

/// difflib's ratio, to two digits, of the first line of `said` that is not white space and has no `, # or //; 1 for
/// equal texts, 0 where one alone is empty. `blank_too` (THUDM/LongBench): behind the line ends at the beginning a line
/// of white space counts, also an empty one.
double line_similarity(std::string_view said, std::string_view truth, bool blank_too = false);

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Scores of GLUE and SuperGLUE. Shares of 1; NaN without anything to score. Pairs of spans have one
// length. Threads: any.

#include <cstdint>
#include <span>
#include <vector>

namespace headscope::evaluation {

/// Said and true classes [n], each in [0, classes).
double accuracy(std::span<const std::int64_t> said, std::span<const std::int64_t> truth);
/// F1 of one class: 2 tp / (2 tp + fp + fn); 0 if the class never occurs. GLUE's is that of class 1.
double f1_of_class(std::span<const std::int64_t> said, std::span<const std::int64_t> truth, std::int64_t wanted);
/// Mean of f1_of_class over the classes that are said or true (macro; SuperGLUE's CB).
double f1_macro(std::span<const std::int64_t> said, std::span<const std::int64_t> truth);
/// Matthews' correlation, of any number of classes (Gorodkin 2004); 0 where either side says one class only.
double matthews(std::span<const std::int64_t> said, std::span<const std::int64_t> truth);

/// Ranks from 1, those of equal numbers their mean.
std::vector<double> mean_ranks(std::span<const double> values);
/// Pearson's correlation of mean ranks (Spearman 1904); NaN for fewer than two, where either side is constant, and
/// where a number is NaN.
double spearman(std::span<const double> said, std::span<const double> truth);

}  // namespace headscope::evaluation

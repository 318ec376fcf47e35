// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What "Attention Needs to Focus" (Lazy Attention) claims, from what was measured (core/reproduce/claim.h).

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/lazy/plan.h"

namespace headscope::reproduce::lazy {

/// Where the attention of a model goes: means over the queries, heads and layers of the longest sequences of an
/// analysis; and what it learned. Shares, not per cent.
struct Attended {
    double density = kNotPrinted, sink = kNotPrinted;  ///< on other keys than the first, and on the first
    double released = kNotPrinted;                     ///< 1 - density - sink: the paper's 59.58 % of sparsity
    double zeros = kNotPrinted;                        ///< of the weights that the mask allows
    std::vector<double> layer_zeros;
    std::vector<double> on_key;                ///< [length]: the mean weight on a key, of the queries that see it
    std::vector<std::vector<double>> offsets;  ///< [layers][heads]; empty: none are learned
    std::vector<std::vector<double>> biases;   ///< [layers][distances from 0], mean over heads; empty: there are none
};
/// Errors: Error, as AnalysisFile has them.
Attended read_attended(const std::filesystem::path& analysis);

struct Measured {
    std::map<std::string, std::int64_t> parameters;                    ///< by model
    std::map<std::string, std::map<std::int64_t, double>> perplexity;  ///< by model and length
    std::map<std::string, double> loss;                                ///< at the training length
    std::map<std::string, Attended> attended;
};

/// Whether the plan has tokens enough (a million a run) for models of this size to use their context; else what is
/// claimed of them is undecided.
bool learned(const Plan& plan);
/// Perplexity at `times` the training length; NaN: not measured.
double perplexity_at(const Plan& plan, const Measured& measured, const std::string& model, std::int64_t times);
/// That over the perplexity at the training length.
double degradation(const Plan& plan, const Measured& measured, const std::string& model, std::int64_t times);

/// How a layer's mean bias goes with distance.
struct Decay {
    double correlation = kNotPrinted;  ///< Pearson's, of bias and distance
    double drop = kNotPrinted;         ///< mean over the nearest eighth of distances less that over the farther half
};
Decay decay_of(const std::vector<double>& biases);

std::vector<Claim> judge(const Plan& plan, const Measured& measured);

struct ReportInput : ReportFrame {
    Plan plan;
    Measured measured;
};
/// Markdown: our numbers beside the paper's, and of each claim whether it held.
std::string report_markdown(const ReportInput& input);

}  // namespace headscope::reproduce::lazy

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Approximations of activation patching by gradients: attribution patching (one backward pass) and integrated gradients
// (m passes per place), and their rank correlation with the exact sweep.
// Threads: the compute thread. Errors: headscope::Error; Stopped.

#include <span>
#include <vector>

#include "core/ask/patch.h"

namespace headscope::ask {

struct ApproximateOptions {
    bool attribution = false;
    std::vector<model::Point> integrated;  ///< points; empty: none
    std::int64_t steps = 16;               ///< of the path from corrupted to clean
    bool correlation = false;
};

/// Throws for what run_approximations() refuses, before the sweep that it follows: unsupported for weights without
/// gradients, usage for points that the sweep leaves out.
void check_approximations(const model::Model& model, const PatchOptions& options,
                          const ApproximateOptions& approximate);

/// Fills /patch/attribution, /patch/integrated, /patch/completeness and /patch/correlation of a record that run_patch()
/// has filled.
void run_approximations(model::Model& model, const std::vector<store::SequenceTokens>& clean,
                        const PatchOptions& options, const ApproximateOptions& approximate, store::AskRecord& record,
                        Progress& progress, const Cancellation& cancellation);

/// Spearman's rank correlation over cells that both have, ties averaged; NaN for fewer than two.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace headscope::ask

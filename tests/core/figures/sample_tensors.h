// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <memory>

#include "core/checkpoint/tensor_summary.h"
#include "core/figures/figure_data.h"
#include "core/figures/figure_inputs.h"

namespace headscope::test {

/// Counts of `bins` equal bins, a bell with one far value at the end.
inline figures::TensorSpread sample_tensor(const std::string& model, const std::string& name, std::size_t bins = 20,
                                           double reach = 2) {
    auto summary = std::make_shared<checkpoint::TensorSummary>();
    for (std::size_t edge = 0; edge <= bins; ++edge)
        summary->edges.push_back(reach * (2 * static_cast<double>(edge) / static_cast<double>(bins) - 1));
    for (std::size_t bin = 0; bin < bins; ++bin) {
        const double middle = (summary->edges[bin] + summary->edges[bin + 1]) / 2;
        summary->counts.push_back(bin + 1 == bins ? 1 : std::llround(1000 * std::exp(-8 * middle * middle)));
        summary->finite += summary->counts.back();
    }
    summary->elements = summary->finite + 3;
    summary->nans = 2;
    summary->negative_infinities = 1;
    summary->zeros = 7;
    summary->minimum = -reach;
    summary->maximum = reach;
    summary->mean = 0.125;
    summary->deviation = 0.25;
    summary->norm = 31.5;
    return {model, name, "BF16", {64, 48}, summary};
}

/// Two checkpoints; the second lacks a tensor.
inline figures::FigureInputs sample_tensors() {
    figures::FigureInputs inputs;
    inputs.tensors = {sample_tensor("first", "model.layers.0.self_attn.q_proj.weight"),
                      sample_tensor("first", "model.norm.weight", 10, 1),
                      sample_tensor("second", "model.layers.0.self_attn.q_proj.weight", 16, 3)};
    return inputs;
}

}  // namespace headscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The papers' numbers and what was measured, side by side: what the command line prints, the figure `cost` draws and
// the window shows. Knows no tensor. Threads: any. Errors: Error usage for mixers without an entry.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/mixer_cost.h"

namespace headscope::cost {

/// One layer's mixer, without its output projection. Operations are NaN where a GPU's kernels ran, which do not count.
struct MeasuredMixer {
    std::string mixer;
    double prefill_flops = 0;  ///< reading `length` tokens
    double decode_flops = 0;   ///< one more token for each sequence; NaN: an encoder
    /// Bytes that a recorded forward pass left for the backward pass, with the mixer's input and without its output.
    /// NaN where training was not measured.
    double activation_bytes = 0;
    double cache_bytes = 0;  ///< held after `length` tokens; NaN: an encoder
    double prefill_seconds = 0, decode_seconds = 0;
};

struct MeasuredModel {
    std::int64_t batch = 0, length = 0;
    std::int64_t parameters = 0;
    std::string type;  ///< of the weights: "float32"
    std::vector<MeasuredMixer> layers;
    double guide_flops = 0;     ///< of guide streams, once for a length: maps are kept afterwards
    double forward_flops = 0;   ///< of the whole model, with logits of the last token alone
    double decode_flops = 0;    ///< likewise
    double training_flops = 0;  ///< forward, loss and backward; NaN where it was not measured
    double forward_peak_bytes = 0, training_peak_bytes = 0;  ///< of tensors, beyond weights and gradients
    double cache_bytes = 0;
    double forward_seconds = 0, decode_seconds = 0, training_seconds = 0;
};

struct CostRow {
    std::string mixer;
    std::int64_t length = 0;
    CostNumbers paper;
    std::optional<MeasuredMixer> measured;
    std::optional<double> guide_flops;  ///< measured: of guide streams, once for a length and all layers
};

struct CostTable {
    CostSetting setting;        ///< its length is that of the first row
    std::vector<CostRow> rows;  ///< by mixer, then by length
    /// As kernels::chosen_device() and chosen_kernels(), where numbers were measured; else empty.
    std::string device{}, kernels{};
};

/// `mixers` empty: all that have an entry.
CostTable paper_table(CostSetting setting, const std::vector<std::int64_t>& lengths,
                      const std::vector<std::string>& mixers = {});

/// A row a mixer and length, columns for the paper's numbers and the measured ones; empty cells where there is none.
std::string cost_csv(const CostTable& table);

}  // namespace headscope::cost

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The memory that a model takes, from its description alone: before weights are read. Bytes. Threads: any.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/machine/memory_room.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/model_device.h"
#include "core/model/model.h"

namespace headscope::model {

/// Bytes of a number of weights that are read as `precision`.
double number_bytes(checkpoint::LoadAs precision);

/// Bytes of the weights, read as `precision`.
double weight_bytes(const Inspection& inspection, checkpoint::LoadAs precision);
/// Bytes that the weights take at the peak of a pass.
double resident_bytes(const Inspection& inspection, checkpoint::LoadAs precision, Residence residence);
/// The same as `info` lists them, without the buffers of a head.
double listed_bytes(const Inspection& inspection, Residence residence);
/// Bytes that one layer needs for `rows` tokens; the allocator keeps its buffers side by side.
double pass_bytes(const ModelConfig& tower, double rows, double number);
/// Bytes of the keys and values of `rows` tokens in all layers; mixers with a state take less.
double cache_bytes(const ModelConfig& config, double rows, double number);
/// Bytes of the hidden states of `tokens` tokens that wait while other texts run a layer (Model::forward_each).
double waiting_bytes(const ModelConfig& config, double tokens);
/// Bytes of the largest chunk of logits (Model::logit_rows) of `rows` tokens; 0 without a head.
double logit_bytes(const Inspection& inspection, double rows);

/// Bytes of a layer's attention matrices where scores or weights are edited, in `texts` texts of `tokens` tokens.
double edited_matrix_bytes(const ModelConfig& config, double texts, double tokens);
/// Bytes that a forward pass of `tokens` tokens, of an encoder-decoder on each side, keeps for the backward pass.
double gradient_bytes(const ModelConfig& config, double tokens);

/// Bytes of weights, a pass of `rows` tokens through a tower and the head, and keys and values of `cached` tokens.
double reading_bytes(const Inspection& inspection, double rows, double cached, checkpoint::LoadAs precision,
                     Residence residence);

/// Tokens of a batch, halved from `most` down to 256 until `bytes(tokens, residence)` fit into `room` bytes, and on a
/// GPU into its room, in the residence, or in any where the choice is open. A room of 0 is not known.
std::int64_t fitting_batch_tokens(std::int64_t most, std::optional<Residence> residence, double room,
                                  const std::function<double(std::int64_t tokens, Residence)>& bytes,
                                  double device_room = model_device_room());

/// True for weight files of `bytes` in all whose pages are not kept when they are streamed (UncachedReads): more than
/// half of the `room` that is free (0: not known).
bool streams_uncached(double bytes, double room = memory_room());

/// A user's choice about weights.
struct WeightChoice {
    checkpoint::LoadAs precision = checkpoint::LoadAs::float32;
    std::optional<Residence> residence{};  ///< empty: the first that fits
    bool offered = true;                   ///< there is an option to ask for another
    std::string otherwise{};               ///< the advice if none fits
};

/// The residence to take where the work takes `bytes(residence)` in all. Throws Error(memory), naming the option that
/// fits, where that is not free (core/base/process/free_memory.h). A model that moves to a GPU has to fit there, too,
/// in `device_room` bytes (0: unknown): with all weights, or with those of the layer that runs.
Residence choose_residence(const std::function<double(Residence)>& bytes, const WeightChoice& choice,
                           double device_room = model_device_room());

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log_softmax.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include "core/model/trainable.h"

namespace headscope::test {

/// A small native configuration, fresh weights of which spread the scores.
inline nlohmann::json native_config(const std::vector<std::string>& layers, const nlohmann::json& options = {}) {
    nlohmann::json config = {{"model_type", "headscope"},
                             {"vocab_size", 29},
                             {"hidden_size", 12},
                             {"intermediate_size", 20},
                             {"num_hidden_layers", layers.size()},
                             {"num_attention_heads", 3},
                             {"num_key_value_heads", 3},
                             {"head_dim", 4},
                             {"max_position_embeddings", 320},
                             {"rope_theta", 100.0},
                             {"initializer_range", 0.4},
                             {"attention_bias", true},
                             {"layers", layers}};
    if (options.is_object()) config.update(options);
    // At -1 the first row's weight is 0 by a hair: no place for differences.
    if (std::find(layers.begin(), layers.end(), "lazy") != layers.end() && !config["mixers"].contains("lazy"))
        config["mixers"]["lazy"] = {{"offset_init", -0.9}};
    return config;
}

inline model::Batch some_tokens(std::int64_t sequences, std::int64_t length, std::int64_t vocabulary = 29) {
    const at::Tensor places = at::arange(sequences * length, at::kLong);
    model::Batch batch;
    batch.ids = (places * 7 + places * places * 3 + 5).remainder(vocabulary).view({sequences, length});
    return batch;
}

/// Mean next-token loss of final hidden states, by operators that autograd knows, on the processor.
inline at::Tensor loss_of(const model::Trainable& model, const at::Tensor& hidden, const model::Batch& batch) {
    const at::Tensor logits = hidden.cpu().matmul(model.head_weight().cpu().t());
    const std::int64_t length = batch.ids.size(1);
    const at::Tensor rows = at::log_softmax(logits.narrow(1, 0, length - 1), -1);
    return -rows.gather(2, batch.ids.narrow(1, 1, length - 1).unsqueeze(2)).mean();
}

/// Recorded by autograd.
inline at::Tensor next_token_loss(model::Trainable& model, const model::Batch& batch,
                                  const model::TrainingForward& training = {}) {
    return loss_of(model, model.forward(batch, training), batch);
}

/// The same weights, as inference computes them.
inline double loss_value(model::Trainable& model, const model::Batch& batch) {
    const c10::InferenceMode inference;
    return loss_of(model, model.model().forward(batch), batch).item<double>();
}

/// (loss(weight + step) - loss(weight - step)) / (2 step) of element `i` of the flat weights.
inline double finite_difference(model::Trainable& model, const model::Batch& batch, std::int64_t i,
                                double step = 1e-5) {
    double* weight = model.weights().mutable_data_ptr<double>() + i;
    const double here = *weight;
    *weight = here + step;
    const double above = loss_value(model, batch);
    *weight = here - step;
    const double below = loss_value(model, batch);
    *weight = here;
    return (above - below) / (2 * step);
}

inline const model::Parameter* find_parameter(const model::Trainable& model, const std::string& name) {
    for (const model::Parameter& one : model.parameters())
        if (one.name == name) return &one;
    return nullptr;
}

}  // namespace headscope::test

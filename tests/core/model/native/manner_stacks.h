// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/core/model/native_model.h"

namespace headscope::test::native_stacks {

inline const nlohmann::json kClassic{
    {"norm", "layer"},        {"layer_norm_eps", 1e-5},  {"norm_place", "post"},
    {"positions", "learned"}, {"feed_forward", "plain"}, {"hidden_act", "gelu"},
    {"output_bias", true},    {"mlp_bias", true},        {"tie_word_embeddings", true}};

/// test::native_config() of a manner: "encoder" (BERT's), "decoder" (GPT-2's), "both" (Vaswani's, the last two layers
/// the decoder's).
inline nlohmann::json stack_config(const std::string& manner, const std::vector<std::string>& layers,
                                   const nlohmann::json& options = {}) {
    nlohmann::json config = test::native_config(layers, kClassic);
    if (manner == "encoder")
        config.update({{"stack", "encoder"},
                       {"embedding_norm", true},
                       {"type_vocab_size", 2},
                       {"head", {{"kind", "masked_language"}}}});
    else if (manner == "decoder")
        config.update({{"norm_place", "pre"}, {"hidden_act", "gelu_pytorch_tanh"}});
    else
        config.update({{"stack", "encoder_decoder"},
                       {"num_encoder_layers", layers.size() - 2},
                       {"positions", "sinusoidal"},
                       {"embedding_scale", 2.0}});
    if (options.is_object()) config.update(options);
    return config;
}

}  // namespace headscope::test::native_stacks

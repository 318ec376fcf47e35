// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Small decoders with every mixer of the registry and its options.

#include "tests/catch_with_torch.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/mixers/types/type.h"
#include "tests/core/model/native_model.h"

namespace headscope::test::native_mixers {

/// Those of decoders (test_native_stacks.cpp has encoders).
inline std::vector<std::string> all_mixers() {
    return mixers::names_where([](const mixers::MixerType& type) { return type.in_decoders; });
}

/// Mixers with a state, whose heads are of sizes of their own.
inline bool is_recurrent(const std::string& mixer) {
    const auto& options = mixers::find_type(mixer)->options;
    return std::any_of(options.begin(), options.end(), [](const Option& option) { return option.name == "num_heads"; });
}

/// Mixers whose state learns divide by the spread of the numbers that it makes of a key: of few numbers it may come
/// near 0, and roundings grow by its inverse square.
inline constexpr std::array<const char*, 2> kLearners{"ttt_linear", "titans"};

/// native_config(), with heads of such layers that are wide enough.
inline nlohmann::json stack_config(const std::vector<std::string>& layers, const nlohmann::json& options = {}) {
    nlohmann::json config = native_config(layers, options);
    for (const char* mixer : kLearners) {
        const bool there = std::find(layers.begin(), layers.end(), mixer) != layers.end();
        if (there && !config["mixers"][mixer].contains("head_dim")) config["mixers"][mixer]["head_dim"] = 16;
    }
    return config;
}

inline const std::vector<std::pair<std::string, nlohmann::json>> kOptions{
    {"biases", {{"attention_bias", true}}},
    {"one key head, norms", {{"attention_bias", false}, {"qk_norm", true}, {"num_key_value_heads", 1}}},
    {"sparsemax", {{"mixers", {{"standard", {{"normaliser", "sparsemax"}}}}}}},
    {"grouped values, narrow, no gate",
     {{"mixers",
       {{"gated_deltanet",
         {{"num_heads", 2},
          {"num_value_heads", 4},
          {"head_dim", 3},
          {"expand_v", 2.0 / 3},
          {"conv_size", 1},
          {"use_gate", false},
          {"allow_neg_eigval", true}}}}}}},
    {"no convolution, gate", {{"mixers", {{"deltanet", {{"conv_size", 0}, {"use_gate", true}}}}}}},
    {"over sums, no writes of their own",
     {{"mixers", {{"deltanet", {{"qk_activation", "elu"}, {"qk_norm", "sum"}, {"use_beta", false}}}}}}},
    {"shared keys, another base",
     {{"mixers", {{"retnet", {{"num_heads", 4}, {"num_key_value_heads", 2}, {"rope_theta", 7.0}}}}}}},
    {"shared keys, convolution, bounded decay",
     {{"mixers",
       {{"gla",
         {{"num_heads", 4},
          {"num_key_value_heads", 2},
          {"conv_size", 3},
          {"use_gate", false},
          {"clamp_min", -0.05}}}}}}},
    {"groups, another convolution",
     {{"mixers",
       {{"mamba2", {{"num_heads", 6}, {"head_dim", 5}, {"state_size", 7}, {"num_groups", 3}, {"conv_size", 2}}}}}}},
    {"no convolution, no feed-forward",
     {{"intermediate_size", 0}, {"mixers", {{"mamba2", {{"num_heads", 2}, {"state_size", 9}, {"conv_size", 0}}}}}}},
    {"two heads, narrow values", {{"mixers", {{"lightning", {{"num_heads", 2}, {"head_dim", 4}, {"expand_v", 0.5}}}}}}},
    {"two heads, wide values, one tap",
     {{"mixers",
       {{"kda",
         {{"num_heads", 2}, {"head_dim", 3}, {"expand_v", 2.0}, {"conv_size", 1}, {"allow_neg_eigval", true}}}}}}},
    {"a short window, constant offsets",
     {{"mixers", {{"lazy", {{"window", 3}, {"offset", "constant"}, {"offset_init", -0.3}}}}}}},
    {"a fixed offset, no bias", {{"mixers", {{"lazy", {{"distance_bias", false}, {"offset", "fixed"}}}}}}},
    {"entmax", {{"mixers", {{"lazy", {{"normaliser", "entmax"}, {"window", 5}}}}}}},
    {"another bias", {{"mixers", {{"sigmoid", {{"bias", 0.5}}}}}}},
    {"a small window", {{"mixers", {{"streaming_llm", {{"first", 2}, {"window", 5}}}}}}},
    {"positions in the cache, shared keys",
     {{"num_key_value_heads", 1},
      {"mixers", {{"streaming_llm", {{"first", 2}, {"window", 5}, {"positions", "cache"}}}}}}},
    {"mini-batches of four, no gate",
     {{"mixers",
       {{"ttt_linear",
         {{"num_heads", 2}, {"head_dim", 14}, {"use_gate", false}, {"mini_batch_size", 4}, {"base_lr", 0.5}}}}}}},
    {"mini-batches of one, no convolution",
     {{"mixers", {{"ttt_linear", {{"head_dim", 14}, {"conv_size", 0}, {"mini_batch_size", 1}}}}}}},
    {"mini-batches of four, one tap",
     {{"mixers",
       {{"titans",
         {{"num_heads", 2}, {"head_dim", 14}, {"conv_size", 1}, {"mini_batch_size", 4}, {"base_lr", 0.5}}}}}}},
    {"mini-batches of one, no convolution, no gate",
     {{"mixers", {{"titans", {{"head_dim", 14}, {"conv_size", 0}, {"use_gate", false}, {"mini_batch_size", 1}}}}}}},
    {"no rotary positions, tied", {{"rotary", false}, {"tie_word_embeddings", true}}},
};

/// `f(what, config)` for a uniform and a hybrid stack of every mixer, with every option.
template <class F>
void for_every_stack(F f) {
    for (const std::string& mixer : all_mixers()) {
        for (const auto& layers : {std::vector<std::string>{mixer, mixer}, {mixer, "standard", mixer}}) {
            for (const auto& [name, options] : kOptions) {
                if (layers.size() == 3 && name == kOptions.back().first) continue;
                if (options.contains("mixers") && !options.at("mixers").contains(mixer)) continue;  // another mixer's
                const std::string what = mixer + ", " + std::to_string(layers.size()) + " layers, " + name;
                INFO(what);
                f(stack_config(layers, options));
            }
        }
    }
}

}  // namespace headscope::test::native_mixers

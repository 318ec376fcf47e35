// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/config.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/model/load/config_reader.h"

namespace headscope::model {
namespace {

const char* name(Activation activation) {
    switch (activation) {
        case Activation::gelu:
            return "gelu";
        case Activation::gelu_tanh:
            return "gelu_tanh";
        case Activation::gelu_quick:
            return "gelu_quick";
        case Activation::silu:
            return "silu";
        case Activation::relu:
            return "relu";
        case Activation::relu_squared:
            return "relu_squared";
        case Activation::tanh:
            return "tanh";
        case Activation::xielu:
            return "xielu";
    }
    return "";
}

const char* name(QueryKeyNorm norm) {
    switch (norm) {
        case QueryKeyNorm::none:
            return "none";
        case QueryKeyNorm::each_head:
            return "each_head";
        case QueryKeyNorm::own_of_each_head:
            return "own_of_each_head";
        case QueryKeyNorm::all_heads:
            return "all_heads";
        case QueryKeyNorm::rotated_head:
            return "rotated_head";
    }
    return "";
}

const char* name(PositionKind kind) {
    switch (kind) {
        case PositionKind::none:
            return "none";
        case PositionKind::learned:
            return "learned";
        case PositionKind::sinusoidal:
            return "sinusoidal";
        case PositionKind::rotary:
            return "rotary";
        case PositionKind::alibi:
            return "alibi";
        case PositionKind::bucketed:
            return "bucketed";
        case PositionKind::relative:
            return "relative";
    }
    return "";
}

const char* name(HeadKind head) {
    switch (head) {
        case HeadKind::vocabulary:
            return "vocabulary";
        case HeadKind::token_classes:
            return "token_classes";
        case HeadKind::sequence_classes:
            return "sequence_classes";
        case HeadKind::none:
            return "none";
    }
    return "";
}

const char* name(TextPooling pooling) {
    switch (pooling) {
        case TextPooling::first:
            return "first";
        case TextPooling::mean:
            return "mean";
        case TextPooling::logits:
            return "logits";
        case TextPooling::last:
            return "last";
    }
    return "";
}

nlohmann::json to_json(const RopeConfig& rope) {
    nlohmann::json json{{"type", rope.type},
                        {"theta", rope.theta},
                        {"partial", rope.partial},
                        {"interleaved", rope.interleaved},
                        {"factor", rope.factor}};
    if (rope.size > 0) json["size"] = rope.size;
    if (rope.type == "llama3") {
        json["low_frequency_factor"] = rope.low_frequency_factor;
        json["high_frequency_factor"] = rope.high_frequency_factor;
    }
    if (rope.type == "yarn") {
        json["beta_fast"] = rope.beta_fast;
        json["beta_slow"] = rope.beta_slow;
        json["truncate"] = rope.truncate;
        if (rope.mscale) json["mscale"] = *rope.mscale;
        if (rope.mscale_all_dim) json["mscale_all_dim"] = *rope.mscale_all_dim;
    }
    if (rope.type == "longrope") {
        json["short_factor"] = rope.short_factor;
        json["long_factor"] = rope.long_factor;
    }
    if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
    if (rope.type != "default") json["original_positions"] = rope.original_positions;
    return json;
}

nlohmann::json to_json(const ExpertRouting& routing) {
    return {{"sigmoid", routing.sigmoid},
            {"choice_bias", routing.choice_bias},
            {"groups", routing.groups},
            {"groups_per_token", routing.groups_per_token},
            {"best_of_group", routing.best_of_group},
            {"scale", routing.scale},
            {"wide", routing.wide},
            {"weighs_input", routing.weighs_input}};
}

nlohmann::json to_json(const StateSpaceConfig& choices) {
    nlohmann::json json{{"projection_bias", choices.projection_bias},
                        {"taps_bias", choices.taps_bias},
                        {"normed", choices.normed},
                        {"norm_first", choices.norm_first},
                        {"direct_by_number", choices.direct_by_number},
                        {"least_step", choices.least_step}};
    if (std::isfinite(choices.most_step)) json["most_step"] = choices.most_step;
    if (!choices.factors.empty()) json["factors"] = choices.factors;
    return json;
}

}  // namespace

ModelConfig ModelConfig::of_layer(std::int64_t layer) const {
    ModelConfig own = *this;
    const auto found = layer_heads.find(layer);
    if (found == layer_heads.end()) return own;
    own.heads = found->second.heads;
    own.key_value_heads = found->second.key_value_heads;
    own.head_size = hidden / own.heads;
    own.query_key_value_bias = found->second.biases;
    own.rope.theta = found->second.theta;
    return own;
}

std::string ModelConfig::to_json() const {
    nlohmann::json json{
        {"family", family},
        {"name", name},
        {"vocabulary", vocabulary},
        {"hidden", hidden},
        {"feed_forward", feed_forward},
        {"layers", layers},
        {"heads", heads},
        {"key_value_heads", key_value_heads},
        {"head_size", head_size},
        {"token_types", token_types},
        {"max_positions", max_positions},
        {"positions", model::name(positions)},
        {"positions_are_a_table", positions_are_a_table},
        {"position_offset", position_offset},
        {"position_padding", position_padding},
        {"causal", causal},
        {"pre_norm", pre_norm},
        {"parallel_residual", parallel_residual},
        {"parallel_norms", parallel_norms},
        {"norm", norm == NormKind::rms ? "rms" : "layer"},
        {"norm_epsilon", norm_epsilon},
        {"norm_gain_offset", norm_gain_offset},
        {"recurrent_norm_epsilon", recurrent_norm_epsilon > 0 ? recurrent_norm_epsilon : norm_epsilon},
        {"query_key_norm", model::name(query_key_norm)},
        {"query_key_norm_epsilon", query_key_norm_epsilon > 0 ? query_key_norm_epsilon : norm_epsilon},
        {"query_key_value_clip", query_key_value_clip},
        {"norm_affine", norm_affine},
        {"norm_bias", norm_bias},
        {"first_input_norm", first_input_norm},
        {"residual_after_norm", residual_after_norm},
        {"embedding_norm", embedding_norm},
        {"embedding_norm_first", embedding_norm_first},
        {"embedding_size", embedding_size},
        {"embedding_sum_projected", embedding_sum_projected},
        {"embedding_scale", embedding_scale},
        {"dropped_token", dropped_token},
        {"update_scale", update_scale},
        {"final_norm", final_norm},
        {"activation", model::name(activation)},
        {"gated_feed_forward", gated_feed_forward},
        {"query_key_value_bias", query_key_value_bias},
        {"output_bias", output_bias},
        {"attention_gate", attention_gate},
        {"feed_forward_bias", feed_forward_bias},
        {"head_bias", head_bias},
        {"head_transform", head_transform},
        {"head_transform_bias", head_transform_bias},
        {"head", model::name(head)},
        {"head_activation", model::name(head_activation.value_or(activation))},
        {"tied_head", tied_head},
        {"attention_scale", attention_scale},
        {"scale_by_inverse_layer", scale_by_inverse_layer},
        {"sink_logits", sink_logits},
        {"soft_cap", soft_cap},
        {"final_soft_cap", final_soft_cap},
        {"shared_layers", shared_layers},
        {"group_layers", group_layers},
        {"windows", windows},
        {"mixers", mixers},
        {"mixer_options", mixer_options_json(mixer_options, mixers)},
        {"initializer_range", initializer_range},
    };
    if (experts > 0) {
        json["experts"] = experts;
        json["experts_per_token"] = experts_per_token;
        json["expert_feed_forward"] = expert_size();
        json["expert_layers"] = expert_layers;
        json["expert_shares_of_chosen"] = expert_shares_of_chosen;
        json["shared_expert"] = shared_expert;
        json["shared_expert_gated"] = shared_expert_gated;
        json["expert_limit"] = expert_limit;
        json["expert_slope"] = expert_slope;
        json["expert_routing"] = model::to_json(routing);
    }
    const auto has_mixer = [this](const char* mixer) {
        return std::find(mixers.begin(), mixers.end(), mixer) != mixers.end();
    };
    const bool side_by_side = has_mixer("attention_mamba2");
    if (side_by_side) {
        json["branch_factors"] = {{"attention_in", branch_factors.attention_in},
                                  {"attention_out", branch_factors.attention_out},
                                  {"state_in", branch_factors.state_in},
                                  {"state_out", branch_factors.state_out},
                                  {"state_bias", branch_factors.state_bias}};
    }
    if (has_mixer("mamba")) {
        json["selective_scan"] = {{"channels", selective_scan.channels},
                                  {"state_size", selective_scan.state_size},
                                  {"rank", selective_scan.rank},
                                  {"taps", selective_scan.taps},
                                  {"input_bias", selective_scan.input_bias},
                                  {"taps_bias", selective_scan.taps_bias}};
    }
    for (const auto& [layer, own] : layer_heads) {
        json["layer_heads"][std::to_string(layer)] = {{"heads", own.heads},
                                                      {"key_value_heads", own.key_value_heads},
                                                      {"biases", own.biases},
                                                      {"theta", own.theta}};
    }
    if (feature_map) json["feature_map"] = model::name(*feature_map);
    if (sigmoid_gate) json["sigmoid_gate"] = true;
    if (side_by_side || has_mixer("mamba2")) json["state_space"] = model::to_json(state_space);
    if (gate_scale != 1) json["gate_scale"] = gate_scale;
    if (!feed_forward_layers.empty()) json["feed_forward_layers"] = feed_forward_layers;
    if (key_value_rank > 0) {
        json["key_value_rank"] = key_value_rank;
        json["query_rank"] = query_rank;
        json["value_size"] = value_size;
    }
    if (convolution_taps > 0) {
        json["convolution_taps"] = convolution_taps;
        json["convolution_bias"] = convolution_bias;
    }
    if (differential) json["differential"] = true;
    if (!chunks.empty()) json["chunks"] = chunks;
    for (const SumFactors& sum : attention_sums) json["attention_sums"].push_back({sum.kept, sum.added});
    if (feed_forward_sum != SumFactors()) json["feed_forward_sum"] = {feed_forward_sum.kept, feed_forward_sum.added};
    if (positions == PositionKind::sinusoidal) {
        json["fairseq_sinusoids"] = fairseq_sinusoids;
        json["interleaved_sinusoids"] = interleaved_sinusoids;
    }
    if (has_classes()) json["classes"] = classes;
    if (head == HeadKind::sequence_classes) {
        json["text_pooling"] = model::name(text_pooling);
        if (!problem_type.empty()) json["problem_type"] = problem_type;
    }
    if (!layout.empty()) json["layout"] = layout;
    if (positions == PositionKind::relative) {
        json["clamped_distance"] = clamped_distance;
        json["own_position_biases"] = own_position_biases;
        json["memory_length"] = memory_length;
        json["memory_is_a_window"] = memory_is_a_window;
    }
    if (adaptive) {
        json["adaptive"] = {{"ends", adaptive->ends},
                            {"size", adaptive->size},
                            {"divisor", adaptive->divisor},
                            {"tied_tables", adaptive->tied_tables},
                            {"tied_maps", adaptive->tied_maps}};
    }
    if (!hashed.is_table())
        json["embedding"] = nlohmann::json::parse(tokenizer::hash_settings_json(hashed), nullptr, false);
    if (positions == PositionKind::rotary) json["rope"] = model::to_json(rope);
    if (!rotary_layers.empty()) json["rotary_layers"] = rotary_layers;
    if (window_rope) json["window_rope"] = model::to_json(*window_rope);
    if (positions == PositionKind::alibi) {
        json["alibi_scale"] = alibi_scale;
        json["alibi_rounded"] = alibi_rounded;
    }
    if (query_growth != 0) {
        json["query_growth"] = query_growth;
        json["query_growth_step"] = query_growth_step;
        json["query_growth_unrotated"] = query_growth_unrotated;
    }
    if (distance_buckets > 0) {
        json["distance_buckets"] = distance_buckets;
        json["farthest_bucket"] = farthest_bucket;
        json["bucket_rows"] = bucket_rows > 0 ? bucket_rows : distance_buckets;
    }
    json["head_scale"] = head_scale;
    if (encoder) {
        json["encoder"] = nlohmann::json::parse(encoder->to_json(), nullptr, false);
        json["decoder_start"] = decoder_start;
        json["own_embedding"] = own_embedding;
    }
    if (!original_json.empty()) json["original"] = nlohmann::json::parse(original_json, nullptr, false);
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace headscope::model

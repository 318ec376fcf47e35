// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/native_config.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/config_reader.h"

namespace headscope::model {
namespace {

constexpr const char* kNative = "headscope";

/// Whether transformers has a class for every layer's mixer.
bool in_transformers(const ModelConfig& config) {
    return std::all_of(config.mixers.begin(), config.mixers.end(), [&config](const std::string& mixer) {
        const mixers::MixerType* type = mixers::find_type(mixer);
        return type != nullptr && type->in_transformers && config.mixer_options.are_standard(*type);
    });
}

std::string activation_name(Activation activation) {
    switch (activation) {
        case Activation::silu:
            return "silu";
        case Activation::gelu:
            return "gelu";
        case Activation::gelu_tanh:
            return "gelu_pytorch_tanh";
        case Activation::gelu_quick:
            return "quick_gelu";
        case Activation::relu:
            return "relu";
        case Activation::relu_squared:
            return "relu2";
        case Activation::tanh:
            return "tanh";
        case Activation::xielu:
            return "xielu";
    }
    return "";
}

/// What of a model the native format has no key for; empty: nothing.
std::string unsaid(const ModelConfig& config) {
    const std::pair<bool, const char*> all[] = {
        {config.encoder != nullptr, "an encoder-decoder"},
        {!config.causal, "an encoder"},
        {!config.pre_norm || config.parallel_residual || config.residual_after_norm, "blocks that are not pre-norm"},
        {config.update_scale != 1 || !config.attention_sums.empty() || config.feed_forward_sum != SumFactors(),
         "sums with factors"},
        {config.query_key_value_clip != 0, "heads that are cut"},
        {config.norm != NormKind::rms || config.norm_gain_offset != 0 || !config.norm_affine, "other norms"},
        {config.query_key_norm == QueryKeyNorm::all_heads, "norms of all heads' numbers together"},
        {config.query_key_norm == QueryKeyNorm::own_of_each_head, "norms of each head's own"},
        {config.query_key_norm == QueryKeyNorm::rotated_head, "norms of rotated heads"},
        {config.query_key_norm_epsilon != 0, "norms of heads with an epsilon of their own"},
        {config.key_value_rank > 0, "latent attention"},
        {config.attention_gate, "attention with a gate"},
        {config.differential, "differences of softmax maps"},
        {config.recurrent_norm_epsilon > 0, "norms of another epsilon in layers with a state"},
        {config.state_space != StateSpaceConfig(), "Mamba2 of another form"},
        {config.gate_scale != 1 || !config.feed_forward_layers.empty(), "a feed-forward of another form"},
        {std::any_of(config.mixers.begin(), config.mixers.end(),
                     [](const std::string& mixer) { return mixers::find_type(mixer) == nullptr; }),
         "layers of a kind that no other family has"},
        {!config.chunks.empty(), "a text in pieces"},
        {config.adaptive.has_value(), "a vocabulary in clusters"},
        {!config.gated_feed_forward || config.experts > 0, "a feed-forward that is not gated"},
        {config.positions != PositionKind::rotary && config.positions != PositionKind::none, "other positions"},
        {config.window_rope.has_value() || !config.rotary_layers.empty() || config.rope.partial != 1 ||
             config.rope.interleaved,
         "rotary positions of another kind"},
        {std::any_of(config.windows.begin(), config.windows.end(), [](std::int64_t w) { return w > 0; }), "windows"},
        {config.sink_logits || config.soft_cap != 0 || config.final_soft_cap != 0 || config.attention_scale != 0 ||
             config.scale_by_inverse_layer || config.query_growth != 0,
         "scores of another form"},
        {config.embedding_size != 0 || config.embedding_scale != 1 || config.embedding_norm, "other embeddings"},
        {config.token_types != 0 || config.head_transform || config.head_bias || config.head_scale != 1,
         "another head or token types"},
        {!config.shared_layers.empty(), "layers that are shared"},
    };
    for (const auto& [there, what] : all) {
        if (there) return what;
    }
    return "";
}

/// Configuration as it was read; an empty object where it was none.
nlohmann::json original(const ModelConfig& config) {
    nlohmann::json json = nlohmann::json::parse(config.original_json, nullptr, false);
    return json.is_object() ? json : nlohmann::json::object();
}

void write_rope(nlohmann::json& json, const ModelConfig& config) {
    json["rope_theta"] = config.rope.theta;
    if (config.rope.type != "default") return;  // the original's object stays
    json.erase("rope_scaling");
    json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", config.rope.theta}};
}

/// Sizes and choices that the native format and transformers' families share.
nlohmann::json shared_json(const ModelConfig& config) {
    nlohmann::json json = original(config);
    json["vocab_size"] = config.vocabulary;
    json["hidden_size"] = config.hidden;
    json["intermediate_size"] = config.feed_forward;
    json["num_hidden_layers"] = config.layers;
    json["num_attention_heads"] = config.heads;
    json["num_key_value_heads"] = config.key_value_heads;
    json["head_dim"] = config.head_size;
    json["rms_norm_eps"] = config.norm_epsilon;
    json["hidden_act"] = activation_name(config.activation);
    json["tie_word_embeddings"] = config.tied_head;
    if (config.max_positions > 0) json["max_position_embeddings"] = config.max_positions;
    json["initializer_range"] = config.initializer_range;
    write_rope(json, config);
    for (const char* key : {"architectures", "model_type", "layers", "mixers", "qk_norm", "rotary", "output_bias",
                            "mlp_bias", "attention_bias", "torch_dtype", "dtype", "embedding"}) {
        json.erase(key);
    }
    return json;
}

nlohmann::json transformers_json(const ModelConfig& config, const std::string& type) {
    nlohmann::json json = shared_json(config);
    json["model_type"] = type;
    json["attention_bias"] = type == "qwen2";
    if (type == "llama") json["mlp_bias"] = false;
    if (type == "mistral") json["sliding_window"] = nullptr;
    if (type == "qwen2" || type == "qwen3") json["use_sliding_window"] = false;
    return json;
}

void name_classes(nlohmann::json& json) {
    static const std::map<std::string, std::string> classes{{"llama", "LlamaForCausalLM"},
                                                            {"mistral", "MistralForCausalLM"},
                                                            {"qwen2", "Qwen2ForCausalLM"},
                                                            {"qwen3", "Qwen3ForCausalLM"}};
    const auto found = classes.find(json.value("model_type", ""));
    if (found != classes.end() && !json.contains("architectures"))
        json["architectures"] = nlohmann::json::array({found->second});
}

}  // namespace

std::string transformers_type(const ModelConfig& config) {
    const bool biases = config.query_key_value_bias, norms = config.query_key_norm == QueryKeyNorm::each_head;
    const bool plain = config.family == kNative && in_transformers(config) && config.hashed.is_table() &&
                       config.positions == PositionKind::rotary && !config.output_bias && !config.feed_forward_bias &&
                       !(biases && norms);
    if (!plain) return "";
    if (biases || norms) return biases ? "qwen2" : "qwen3";
    // transformers' Llama wants heads that divide the hidden size, whatever head_dim says; Mistral is it without that.
    return config.hidden % config.heads == 0 ? "llama" : "mistral";
}

nlohmann::json native_json(const ModelConfig& config) {
    if (const std::string what = unsaid(config); !what.empty()) {
        throw Error(ErrorCode::unsupported, escaped(config.name),
                    "expected a model that the native format can say (Llama's and Qwen's kin)", "found " + what);
    }
    nlohmann::json json = shared_json(config);
    for (const char* key : {"auto_map", "use_sliding_window", "sliding_window", "max_window_layers", "layer_types"})
        json.erase(key);
    json["model_type"] = kNative;
    json["attention_bias"] = config.query_key_value_bias;
    json["qk_norm"] = config.query_key_norm == QueryKeyNorm::each_head;
    json["output_bias"] = config.output_bias;
    json["mlp_bias"] = config.feed_forward_bias;
    json["rotary"] = config.positions == PositionKind::rotary;
    if (!config.hashed.is_table())
        json["embedding"] = nlohmann::json::parse(tokenizer::hash_settings_json(config.hashed));
    json["layers"] = config.mixers;
    json["mixers"] = mixer_options_json(config.mixer_options, config.mixers);
    return json;
}

nlohmann::json saved_json(const ModelConfig& config, at::ScalarType type) {
    nlohmann::json json;
    if (config.family != kNative) {
        json = original(config);
        // Of two towers the key says more than that (T5 scales by it), and they are trained as they are.
        if (!config.encoder) json["tie_word_embeddings"] = config.tied_head;
        json.erase("quantization_config");  // packed experts are written unpacked
    } else if (const std::string other = transformers_type(config); !other.empty()) {
        json = transformers_json(config, other);
    } else {
        json = native_json(config);
    }
    name_classes(json);
    json.erase("torch_dtype");
    json["dtype"] = type == at::kBFloat16 ? "bfloat16" : type == at::kDouble ? "float64" : "float32";
    return json;
}

}  // namespace headscope::model

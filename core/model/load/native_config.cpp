// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/native_config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/load/config_reader.h"
#include "core/model/load/native_head.h"

namespace headscope::model {
namespace {

/// True if transformers has a class for every layer's mixer.
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

/// Settings of a model that the native format has no key for; empty: none.
std::string unsaid(const ModelConfig& config) {
    if (config.family == kNativeFamily) return "";
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
        {!config.layer_heads.empty(), "layers with other heads"},
        {config.feature_map.has_value() || config.sigmoid_gate, "a feature map, or a gate that is a sigmoid"},
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
    json["num_hidden_layers"] = config.all_layers();
    json["num_attention_heads"] = config.heads;
    json["num_key_value_heads"] = config.key_value_heads;
    json["head_dim"] = config.head_size;
    json["rms_norm_eps"] = config.norm == NormKind::rms ? config.norm_epsilon : config.recurrent_norm_epsilon;
    json["hidden_act"] = activation_name(config.activation);
    json["tie_word_embeddings"] = config.tied_head;
    if (config.max_positions > 0) json["max_position_embeddings"] = config.max_positions;
    json["initializer_range"] = config.initializer_range;
    if (config.positions == PositionKind::rotary) write_rope(json, config);
    for (const char* key : {"architectures",
                            "model_type",
                            "layers",
                            "mixers",
                            "qk_norm",
                            "rotary",
                            "output_bias",
                            "mlp_bias",
                            "attention_bias",
                            "torch_dtype",
                            "dtype",
                            "stack",
                            "norm",
                            "layer_norm_eps",
                            "norm_place",
                            "positions",
                            "feed_forward",
                            "embedding_scale",
                            "type_vocab_size",
                            "embedding_norm",
                            "embedding",
                            "head",
                            "head_bias"}) {
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
    if (config.head == HeadKind::sequence_classes) {
        if (json.value("id2label", nlohmann::json::object()).size() != static_cast<std::size_t>(config.classes)) {
            json.erase("id2label");
            json.erase("label2id");
        }
        json["num_labels"] = config.classes;
    }
    return json;
}

std::string head_name(const ModelConfig& config) {
    for (const NativeHead& one : kNativeHeads)
        if (one.head == config.head && (one.head != HeadKind::vocabulary || one.transform == config.head_transform))
            return one.name;
    return "";
}

void write_stack(nlohmann::json& json, const ModelConfig& config) {
    json["stack"] = config.encoder ? "encoder_decoder" : config.causal ? "decoder" : "encoder";
    if (config.encoder) {
        json["num_encoder_layers"] = config.encoder->layers;
        if (config.decoder_start >= 0) json["decoder_start_token_id"] = config.decoder_start;
    }
    json["norm"] = config.norm == NormKind::rms ? "rms" : "layer";
    if (config.norm == NormKind::layer) json["layer_norm_eps"] = config.norm_epsilon;
    json["norm_place"] = config.pre_norm ? "pre" : "post";
    json["positions"] = config.positions == PositionKind::rotary       ? "rotary"
                        : config.positions == PositionKind::learned    ? "learned"
                        : config.positions == PositionKind::sinusoidal ? "sinusoidal"
                                                                       : "none";
    json["feed_forward"] = config.gated_feed_forward ? "gated" : "plain";
    json["embedding_scale"] = config.embedding_scale;
    json["type_vocab_size"] = config.token_types;
    json["embedding_norm"] = config.embedding_norm;
    if (config.hashed.is_table())
        json["embedding"] = {{"kind", "table"}};
    else
        json["embedding"] = nlohmann::json::parse(tokenizer::hash_settings_json(config.hashed));
    json["head"] = {{"kind", head_name(config)}};
    if (config.has_classes()) json["head"]["classes"] = config.classes;
    if (head_name(config) == "language") json["head_bias"] = config.head_bias;
}

/// Shared by BERT's, GPT-2's and BART's configurations.
nlohmann::json layout_json(const ModelConfig& config) {
    nlohmann::json json = nlohmann::json::object();
    const nlohmann::json before = original(config);
    for (const auto& [key, value] : before.items())
        if (key.ends_with("_token_id")) json[key] = value;
    json["model_type"] = config.layout;
    json["vocab_size"] = config.vocabulary;
    json["tie_word_embeddings"] = config.tied_head;
    json["initializer_range"] = config.initializer_range;
    if (config.has_classes()) json["num_labels"] = config.classes;
    return json;
}

nlohmann::json bert_json(const ModelConfig& config) {
    nlohmann::json json = layout_json(config);
    json["hidden_size"] = config.hidden;
    json["num_hidden_layers"] = config.layers;
    json["num_attention_heads"] = config.heads;
    json["intermediate_size"] = config.feed_forward;
    json["hidden_act"] = activation_name(config.activation);
    json["max_position_embeddings"] = config.max_positions;
    json["type_vocab_size"] = config.token_types;
    json["layer_norm_eps"] = config.norm_epsilon;
    json["architectures"] =
        nlohmann::json::array({config.head == HeadKind::token_classes      ? "BertForTokenClassification"
                               : config.head == HeadKind::sequence_classes ? "BertForSequenceClassification"
                               : config.head == HeadKind::none             ? "BertModel"
                                                                           : "BertForMaskedLM"});
    return json;
}

nlohmann::json gpt2_json(const ModelConfig& config) {
    nlohmann::json json = layout_json(config);
    json["n_embd"] = config.hidden;
    json["n_layer"] = config.layers;
    json["n_head"] = config.heads;
    json["n_inner"] = config.feed_forward;
    json["n_positions"] = config.max_positions;
    json["activation_function"] = activation_name(config.activation);
    json["layer_norm_epsilon"] = config.norm_epsilon;
    json["architectures"] =
        nlohmann::json::array({config.head == HeadKind::token_classes      ? "GPT2ForTokenClassification"
                               : config.head == HeadKind::sequence_classes ? "GPT2ForSequenceClassification"
                               : config.head == HeadKind::none             ? "GPT2Model"
                                                                           : "GPT2LMHeadModel"});
    return json;
}

nlohmann::json bart_json(const ModelConfig& config) {
    nlohmann::json json = layout_json(config);
    json["d_model"] = config.hidden;
    for (const auto& [side, tower] : {std::pair{"encoder", config.encoder.get()}, std::pair{"decoder", &config}}) {
        json[std::string(side) + "_layers"] = tower->layers;
        json[std::string(side) + "_attention_heads"] = tower->heads;
        json[std::string(side) + "_ffn_dim"] = tower->feed_forward;
    }
    json["max_position_embeddings"] = config.max_positions;
    json["activation_function"] = activation_name(config.activation);
    json["scale_embedding"] = config.embedding_scale != 1;
    json["init_std"] = config.initializer_range;
    json["forced_eos_token_id"] = nullptr;
    if (config.decoder_start >= 0) json["decoder_start_token_id"] = config.decoder_start;
    json["is_encoder_decoder"] = true;
    json["architectures"] =
        nlohmann::json::array({config.head == HeadKind::none ? "BartModel" : "BartForConditionalGeneration"});
    return json;
}

/// A decoder's head for classes of texts, as transformers' classes have it.
bool scores_last(const ModelConfig& config) {
    return config.head == HeadKind::sequence_classes && config.text_pooling == TextPooling::last;
}

/// Standard layers with layer norms, learned positions and every bias, as the classes of foreign_layout() have.
bool is_classic(const ModelConfig& config) {
    return in_transformers(config) && config.hashed.is_table() && config.norm == NormKind::layer &&
           config.positions == PositionKind::learned && config.query_key_value_bias && config.output_bias &&
           config.feed_forward_bias && !config.gated_feed_forward && config.feed_forward > 0 &&
           config.key_value_heads == config.heads && config.head_size * config.heads == config.hidden &&
           config.query_key_norm == QueryKeyNorm::none;
}

void name_classes(nlohmann::json& json, const ModelConfig& config) {
    static const std::map<std::string, std::string> classes{
        {"llama", "Llama"}, {"mistral", "Mistral"}, {"qwen2", "Qwen2"}, {"qwen3", "Qwen3"}};
    const auto found = classes.find(json.value("model_type", ""));
    const char* const task = config.head == HeadKind::sequence_classes ? "ForSequenceClassification" : "ForCausalLM";
    if (found != classes.end() && !json.contains("architectures"))
        json["architectures"] = nlohmann::json::array({found->second + task});
}

}  // namespace

std::string foreign_layout(const ModelConfig& config) {
    if (config.family != kNativeFamily || !is_classic(config)) return "";
    const bool has_vocabulary = config.head == HeadKind::vocabulary;
    const bool plain_head = !has_vocabulary || (!config.head_transform && !config.head_bias);
    if (config.encoder) {
        const bool scaled = config.embedding_scale == std::sqrt(static_cast<double>(config.hidden));
        const bool fits = is_classic(*config.encoder) && !config.pre_norm && config.embedding_norm &&
                          config.token_types == 0 && config.norm_epsilon == 1e-5 &&
                          (scaled || config.embedding_scale == 1) && plain_head && !config.has_classes() &&
                          (config.tied_head || !has_vocabulary);
        return fits ? "bart" : "";
    }
    if (config.embedding_scale != 1) return "";
    if (config.causal) {
        const bool fits = config.pre_norm && !config.embedding_norm && config.token_types == 0 && plain_head &&
                          (config.head != HeadKind::sequence_classes || scores_last(config));
        return fits ? "gpt2" : "";
    }
    const bool fits = !config.pre_norm && config.embedding_norm && config.token_types > 0 &&
                      (!has_vocabulary || (config.head_transform && config.tied_head));
    return fits ? "bert" : "";
}

void set_layout(ModelConfig& config, const std::string& layout) {
    config.layout = layout;
    if (layout == "bart") config.position_offset = 2;
    if (!config.encoder) return;
    ModelConfig encoder = *config.encoder;
    encoder.layout = layout;
    encoder.position_offset = config.position_offset;
    config.encoder = std::make_shared<ModelConfig>(std::move(encoder));
}

std::string transformers_type(const ModelConfig& config) {
    const bool biases = config.query_key_value_bias, norms = config.query_key_norm == QueryKeyNorm::each_head;
    const bool plain =
        config.family == kNativeFamily && in_transformers(config) && config.hashed.is_table() &&
        config.positions == PositionKind::rotary && !config.output_bias && !config.feed_forward_bias &&
        !(biases && norms) && config.causal && !config.encoder && config.pre_norm && config.norm == NormKind::rms &&
        config.gated_feed_forward && config.embedding_scale == 1 && config.token_types == 0 && !config.embedding_norm &&
        (config.head == HeadKind::vocabulary || scores_last(config)) && !config.head_transform && !config.head_bias;
    if (!plain) return "";
    if (biases || norms) return biases ? "qwen2" : "qwen3";
    // transformers' Llama wants heads that divide the hidden size, whatever head_dim says; Mistral is it without that.
    return config.hidden % config.heads == 0 ? "llama" : "mistral";
}

nlohmann::json native_json(const ModelConfig& config) {
    if (const std::string what = unsaid(config); !what.empty()) {
        throw Error(ErrorCode::unsupported, escaped(config.name),
                    "expected a model that the native format can express (Llama, Qwen and the like)", "found " + what);
    }
    nlohmann::json json = shared_json(config);
    for (const char* key : {"auto_map", "use_sliding_window", "sliding_window", "max_window_layers", "layer_types"})
        json.erase(key);
    json["model_type"] = kNativeFamily;
    json["attention_bias"] = config.query_key_value_bias;
    json["qk_norm"] = config.query_key_norm == QueryKeyNorm::each_head;
    json["output_bias"] = config.output_bias;
    json["mlp_bias"] = config.feed_forward_bias;
    json["rotary"] = config.positions == PositionKind::rotary;
    write_stack(json, config);
    std::vector<std::string> layers = config.encoder ? config.encoder->mixers : std::vector<std::string>();
    layers.insert(layers.end(), config.mixers.begin(), config.mixers.end());
    json["layers"] = layers;
    json["mixers"] = mixer_options_json(config.mixer_options, layers);
    return json;
}

nlohmann::json saved_json(const ModelConfig& config, at::ScalarType type) {
    nlohmann::json json;
    if (config.family != kNativeFamily) {
        json = original(config);
        // With two towers the key means more (T5 scales by it), and these are trained as they are.
        if (!config.encoder) json["tie_word_embeddings"] = config.tied_head;
    } else if (!config.layout.empty()) {
        json = config.layout == "bert"   ? bert_json(config)
               : config.layout == "gpt2" ? gpt2_json(config)
                                         : bart_json(config);
        json[kNativeInside] = native_json(config);
        json[kNativeInside].erase("forced_eos_token_id");  // BART's, of the text that transformers generates
    } else if (const std::string other = transformers_type(config); !other.empty()) {
        json = transformers_json(config, other);
    } else {
        json = native_json(config);
    }
    name_classes(json, config);
    json.erase("torch_dtype");
    json["dtype"] = type == at::kBFloat16 ? "bfloat16" : type == at::kDouble ? "float64" : "float32";
    return json;
}

}  // namespace headscope::model

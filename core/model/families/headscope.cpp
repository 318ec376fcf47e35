// SPDX-License-Identifier: GPL-3.0-or-later
// What Headscope trains: stacks whose layers each name their mixer (docs/file-formats.md, "Native checkpoints"). Where
// a file says nothing else, a pre-norm decoder in the manner of Qwen2 (Deconstructing Attention, arXiv 2510.11602);
// encoders, GPT-2's manner and encoder-decoders as Xue and Aletras's thesis has them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/mixers/types/fourier.h"
#include "core/mixers/types/sigmoid.h"
#include "core/mixers/types/token_map.h"
#include "core/model/families/families.h"
#include "core/model/load/native_head.h"

namespace headscope::model {
namespace {

constexpr const char* kEncoderLayers = "num_encoder_layers";

/// A text that is one of `choices`, the first of which it is where the file says nothing.
std::string read_choice(const ConfigReader& reader, const std::string& key, const std::vector<std::string>& choices) {
    std::string said = reader.text(key, choices.front());
    if (std::find(choices.begin(), choices.end(), said) == choices.end())
        reader.unsupported(key, "one of " + list_text(choices, 40));
    return said;
}

std::vector<std::string> read_layers(const ConfigReader& reader, std::int64_t layers) {
    if (!reader.has("layers")) return mixers::standard_layers(layers);
    std::vector<std::string> mixers = reader.texts("layers");
    if (static_cast<std::int64_t>(mixers.size()) != layers)
        reader.refuse("layers", "the mixers of " + std::to_string(layers) + " layers");
    for (const std::string& mixer : mixers) {
        if (mixers::find_type(mixer) != nullptr) continue;
        throw Error(ErrorCode::unsupported, reader.where("layers"),
                    "expected of each layer one of " + list_text(mixers::known_names(), 40), "found " + escaped(mixer));
    }
    return mixers;
}

/// Refuses mixers that layers of `what` cannot have.
void expect_mixers(const ConfigReader& reader, const std::vector<std::string>& layers, const std::string& what,
                   bool mixers::MixerType::*may) {
    for (const std::string& mixer : layers) {
        if (mixers::find_type(mixer)->*may) continue;
        const auto known = mixers::names_where([may](const mixers::MixerType& type) { return type.*may; });
        throw Error(ErrorCode::unsupported, reader.where("layers"),
                    "expected of each layer of " + what + " one of " + list_text(known, 40), "found " + escaped(mixer));
    }
}

PositionKind read_positions(const ConfigReader& reader) {
    const bool rotary = reader.boolean("rotary", true);
    const std::vector<std::string> known = rotary ? std::vector<std::string>{"rotary", "none", "learned", "sinusoidal"}
                                                  : std::vector<std::string>{"none", "rotary", "learned", "sinusoidal"};
    const std::string said = read_choice(reader, "positions", known);
    if (reader.has("rotary") && reader.has("positions") && rotary != (said == "rotary"))
        reader.refuse("rotary", said == "rotary" ? "true, or no such key, beside positions \"rotary\""
                                                 : "false, or no such key, beside positions \"" + said + '"');
    if (said == "learned") return PositionKind::learned;
    if (said == "sinusoidal") return PositionKind::sinusoidal;
    return said == "rotary" ? PositionKind::rotary : PositionKind::none;
}

void read_head(const ConfigReader& reader, ModelConfig& config) {
    const auto head = reader.object("head");
    std::vector<std::string> names;
    for (const NativeHead& one : kNativeHeads) names.emplace_back(one.name);
    const NativeHead& kind = head ? *find_native_head(read_choice(*head, "kind", names)) : kNativeHeads[0];
    if (head) head->expect_keys({"kind", "classes"});
    if (head && head->has("classes") && !kind.has_classes())
        head->unsupported("classes", std::string("none for a head of kind ") + kind.name);
    config.head = kind.head;
    if (kind.has_classes()) config.classes = head->size("classes");
    config.head_transform = kind.transform;
    config.head_transform_norm = kind.transform_norm;
    if (kind.activation) config.head_activation = kind.activation;
    config.head_bias = kind.reads_bias ? reader.boolean("head_bias", false) : kind.bias;
    if (config.head != HeadKind::vocabulary) config.tied_head = false;
}

void read_norms(const ConfigReader& reader, ModelConfig& config) {
    if (read_choice(reader, "norm", {"rms", "layer"}) == "layer") {
        config.recurrent_norm_epsilon = config.norm_epsilon;
        config.norm = NormKind::layer;
        config.norm_epsilon = reader.positive("layer_norm_eps", 1e-12);
    }
    config.pre_norm = config.final_norm = read_choice(reader, "norm_place", {"pre", "post"}) == "pre";
    config.embedding_norm = reader.boolean("embedding_norm", false);
}

tokenizer::HashSettings read_embedding(const ConfigReader& reader) {
    const auto embedding = reader.view("embedding");
    return embedding ? tokenizer::read_hash_settings(*embedding) : tokenizer::HashSettings();
}

/// Refuses what a hash embedding excludes.
void check_embedding(const ConfigReader& reader, ModelConfig& config) {
    const tokenizer::HashSettings& hashed = config.hashed;
    if (hashed.is_table()) return;
    if (config.vocabulary != 0)
        reader.refuse("vocab_size", "0, or no such key, for a hash embedding has no vocabulary");
    if (config.tied_head) reader.refuse("tie_word_embeddings", "false, for a hash embedding has no vocabulary");
    if (config.head == HeadKind::vocabulary) {
        if (reader.has("head")) reader.refuse("head", "one of classes or none, for a hash embedding has no vocabulary");
        config.head = HeadKind::none;
    }
    if (hashed.functions > 0 && config.hidden % hashed.functions != 0) {
        reader.refuse("hidden_size",
                      "a multiple of embedding.hash_functions (" + std::to_string(hashed.functions) + ")");
    }
    for (const std::string& mixer : config.mixers) {
        if (mixers::find_type(mixer)->query_key_source == mixers::QueryKeySource::fixed_guide)
            reader.unsupported("layers", "no " + mixer + ", whose guide is of a vocabulary's tokens");
    }
}

/// Everything that towers share.
ModelConfig read_stack(const ConfigReader& reader) {
    constexpr std::int64_t positions = 2048;
    SizeDefaults sizes;
    const tokenizer::HashSettings hashed = read_embedding(reader);
    sizes.may_lack_vocabulary = !hashed.is_table();
    sizes.may_lack_feed_forward = true;
    const PositionKind kind = read_positions(reader);
    ModelConfig config = kind == PositionKind::rotary ? read_llama(reader, positions, sizes)
                                                      : read_llama_without_positions(reader, positions, sizes);
    config.positions = kind;
    config.interleaved_sinusoids = kind == PositionKind::sinusoidal;
    config.query_key_value_bias = reader.boolean("attention_bias", false);
    config.output_bias = reader.boolean("output_bias", false);
    if (reader.boolean("qk_norm", false)) config.query_key_norm = QueryKeyNorm::each_head;
    config.gated_feed_forward = read_choice(reader, "feed_forward", {"gated", "plain"}) == "gated";
    config.embedding_scale = reader.number("embedding_scale", 1.0);
    config.token_types = reader.count("type_vocab_size", 0);
    read_norms(reader, config);
    read_head(reader, config);
    config.mixers = read_layers(reader, config.layers);
    config.mixer_options = read_mixer_options(reader);
    const auto options = reader.object("mixers");
    const auto sigmoid = options ? options->object(mixers::kSigmoid.name) : std::nullopt;
    if (!sigmoid || !sigmoid->has("bias")) {
        const auto longest = static_cast<double>(std::max<std::int64_t>(config.max_positions, 1));
        config.mixer_options.set(mixers::kSigmoid, "bias", -std::log(longest));
    }
    // Guides, and maps over positions, are as long as the model's positions, and no longer.
    config.positions_are_a_table =
        kind == PositionKind::learned ||
        std::any_of(config.mixers.begin(), config.mixers.end(), [](const std::string& mixer) {
            return mixers::find_type(mixer)->reads_guide() || mixer == mixers::kTokenMap.name;
        });
    config.hashed = hashed;
    check_embedding(reader, config);
    return config;
}

/// `both` with the layers of the encoder and of the decoder -> the decoder.
ModelConfig split_towers(const ConfigReader& reader, const ModelConfig& both) {
    if (!both.hashed.is_table()) reader.unsupported("embedding", "a table, in an encoder_decoder");
    const std::int64_t first = reader.size(kEncoderLayers);
    if (first >= both.layers)
        reader.refuse(kEncoderLayers, "fewer than num_hidden_layers (" + std::to_string(both.layers) + ")");
    ModelConfig encoder = both, decoder = both;
    encoder.causal = false;
    encoder.layers = first;
    encoder.mixers.resize(static_cast<std::size_t>(first));
    encoder.head = HeadKind::none;
    decoder.layers -= first;
    decoder.mixers.erase(decoder.mixers.begin(), decoder.mixers.begin() + first);
    expect_mixers(reader, encoder.mixers, "an encoder", &mixers::MixerType::in_encoders);
    expect_mixers(reader, decoder.mixers, "a decoder with cross-attention", &mixers::MixerType::in_cross);
    if (reader.has("decoder_start_token_id")) decoder.decoder_start = reader.count("decoder_start_token_id", 0);
    decoder.encoder = std::make_shared<ModelConfig>(std::move(encoder));
    return decoder;
}

ModelConfig read(const ConfigReader& reader) {
    const std::string stack = read_choice(reader, "stack", {"decoder", "encoder", "encoder_decoder"});
    ModelConfig config = read_stack(reader);
    if (stack == "encoder_decoder") return split_towers(reader, config);
    if (reader.has(kEncoderLayers)) reader.unsupported(kEncoderLayers, "none, as the stack is no encoder_decoder");
    config.causal = stack == "decoder";
    if (config.causal && config.head == HeadKind::sequence_classes) {
        config.text_pooling = TextPooling::last;
        config.head_transform = config.head_bias = false;
    }
    if (config.causal)
        expect_mixers(reader, config.mixers, "a decoder", &mixers::MixerType::in_decoders);
    else
        expect_mixers(reader, config.mixers, "an encoder", &mixers::MixerType::in_encoders);
    return config;
}

/// Files written by hand may omit keys that their tensors determine.
void fill_in(nlohmann::json& config, const checkpoint::Checkpoint& file) {
    const auto has = [&file](std::string_view end) {
        return std::any_of(file.tensors().begin(), file.tensors().end(),
                           [end](const auto& tensor) { return std::string_view(tensor.first).ends_with(end); });
    };
    const auto decide = [&config](const char* key, bool value) {
        if (!config.contains(key) || config.at(key).is_null()) config[key] = value;
    };
    decide("attention_bias", has(".self_attn.q_proj.bias"));
    decide("qk_norm", has(".self_attn.q_norm.weight"));
    decide("tie_word_embeddings",
           !has("lm_head.weight") && read_embedding(ConfigReader(config, "config.json")).is_table());
    decide("head_bias", has("lm_head.bias"));
}

/// `tower` is what stands before everything that each tower has of its own.
TensorNames own_names(const ModelConfig& config, const std::string& tower) {
    TensorNames names = llama_names(config);
    if (config.positions == PositionKind::learned) names.position_embedding = tower + "embed_positions";
    names.token_type_embedding = "embed_types";
    names.embedding_norm = tower + "embed_norm";
    names.layer = tower + names.layer;
    names.final_norm = tower + names.final_norm;
    LayerNames& layer = names.in_layer;
    layer.query_norm = "self_attn.q_norm";
    layer.key_norm = "self_attn.k_norm";
    layer.sinks = "self_attn.sinks";
    layer.cross_norm = "cross_attention_layernorm";
    layer.cross_query = "cross_attn.q_proj";
    layer.cross_key = "cross_attn.k_proj";
    layer.cross_value = "cross_attn.v_proj";
    layer.cross_output = "cross_attn.o_proj";
    layer.cross_query_norm = "cross_attn.q_norm";
    layer.cross_key_norm = "cross_attn.k_norm";
    LayerNames without_output = layer;
    without_output.output.clear();
    names.of_mixer = {{mixers::kFourier.name, without_output}, {mixers::kTokenMap.name, without_output}};
    names.guide = "guide";
    names.guide_ids = "guide_ids";
    if (config.has_classes()) {
        names.head = "classifier";
    } else if (config.head == HeadKind::none) {
        names.head.clear();
    }
    names.head_bias = {names.head + ".bias"};
    names.head_transform = "head.dense";
    names.head_transform_norm = "head.norm";
    const std::string classes = names.keys.classes;
    name_score_head(names, config);
    names.keys.classes = classes;
    return names;
}

/// For a stack under the names of a class of transformers (ModelConfig::layout).
TensorNames layout_names(const ModelConfig& config) {
    TensorNames names = config.layout == "bert"   ? bert_names(config)
                        : config.layout == "gpt2" ? gpt2_names(config)
                        : config.causal           ? bart_names(config)
                                                  : bart_encoder_names(config);
    if (config.head == HeadKind::none) names.head.clear();
    name_class_head(names, config, "bert.pooler.dense");
    name_score_head(names, config);
    names.keys = SizeKeys();
    return names;
}

TensorNames names(const ModelConfig& config) {
    if (!config.layout.empty()) return layout_names(config);
    return own_names(config, config.encoder ? "decoder." : "");
}

TensorNames encoder_names(const ModelConfig& config) {
    return config.layout.empty() ? own_names(config, "encoder.") : layout_names(config);
}

}  // namespace

const Family kHeadscope{
    "headscope", {"headscope"}, "Headscope's own: decoders, encoders and both, with any mixer in each layer",
    read,        names,         encoder_names,
    fill_in};

}  // namespace headscope::model

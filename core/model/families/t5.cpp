// SPDX-License-Identifier: GPL-3.0-or-later
// T5 (Raffel et al., arXiv 1910.10683), T5 1.1, Flan-T5 and mT5: an encoder and a decoder with cross-attention, RMS
// norms, scores without a scale, and a bias of the scores by distance in place of positions.
#include "core/model/families/families.h"

#include <cmath>
#include <memory>

namespace headscope::model {
namespace {

/// The bias by distance becomes a table of this many numbers a head and side; no model comes near.
constexpr std::int64_t kFarthestBucket = std::int64_t{1} << 16;

SizeKeys keys(const std::string& layers) {
    SizeKeys keys;
    keys.hidden = "d_model";
    keys.layers = layers;
    keys.heads = "num_heads";
    keys.key_value_heads = "num_heads";
    keys.head_size = "d_kv";
    keys.feed_forward = "d_ff";
    return keys;
}

/// "relu", "gated-gelu": an activation's name, perhaps with a gate. transformers takes gelu in gated-gelu alone for its
/// approximation by tanh.
void read_feed_forward(ModelConfig& config, const ConfigReader& reader, const std::string& otherwise) {
    const std::string key = "feed_forward_proj", text = reader.text(key, otherwise), gate = "gated-";
    config.gated_feed_forward = text.compare(0, gate.size(), gate) == 0;
    const std::string activation = config.gated_feed_forward ? text.substr(gate.size()) : text;
    config.activation = text == "gated-gelu" ? Activation::gelu_tanh : activation_named(activation, reader, key);
    // transformers writes the derived value into every file, and obeys a different one.
    if (reader.has("dense_act_fn")) config.activation = read_activation(reader, "dense_act_fn", "relu");
    if (reader.boolean("is_gated_act", config.gated_feed_forward) != config.gated_feed_forward)
        reader.unsupported("is_gated_act", "what feed_forward_proj says");
}

void read_buckets(ModelConfig& config, const ConfigReader& reader) {
    const std::string buckets = "relative_attention_num_buckets", farthest = "relative_attention_max_distance";
    config.positions = PositionKind::bucketed;
    config.distance_buckets = reader.size(buckets, 32);
    config.farthest_bucket = reader.size(farthest, 128);
    if (config.distance_buckets < 4) reader.unsupported(buckets, "at least 4");
    // The decoder has all of the buckets on one side, half of them for a distance each.
    const std::int64_t exact = config.distance_buckets / 2;
    if (config.farthest_bucket <= exact || config.farthest_bucket > kFarthestBucket) {
        reader.unsupported(farthest, "from " + std::to_string(exact + 1) + " to " + std::to_string(kFarthestBucket));
    }
}

}  // namespace

ModelConfig read_t5(const ConfigReader& reader, const std::string& feed_forward) {
    // With a decoder in the file transformers then answers otherwise with a cache than without.
    if (reader.boolean("is_decoder", false)) reader.unsupported("is_decoder", "false");
    ModelConfig config;
    read_sizes(config, reader, keys("num_layers"), SizeDefaults{0, 64});
    config.norm = NormKind::rms;
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-6);
    config.attention_scale = 1.0;
    read_buckets(config, reader);
    read_feed_forward(config, reader, feed_forward);
    config.causal = false;

    ModelConfig decoder = config;
    decoder.encoder = std::make_shared<ModelConfig>(config);
    decoder.layers = reader.size("num_decoder_layers", config.layers);
    decoder.causal = true;
    // The head shares the embedding where the file has no other, whatever tie_word_embeddings says.
    decoder.tied_head = true;
    decoder.decoder_start = reader.count("decoder_start_token_id", reader.count("pad_token_id", 0));
    return decoder;
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    const bool multilingual = reader.text("model_type", "t5") == "mt5";
    ModelConfig config = read_t5(reader, multilingual ? "gated-gelu" : "relu");
    if (multilingual) config.decoder_start = reader.count("decoder_start_token_id", 0);  // whatever pad_token_id says
    // tie_word_embeddings determines whether hidden states are scaled. transformers 5 writes the answer under a name of
    // its own.
    const bool scaled = reader.boolean("scale_decoder_outputs", reader.boolean("tie_word_embeddings", true));
    if (scaled && !multilingual) config.head_scale = 1.0 / std::sqrt(static_cast<double>(config.hidden));
    return config;
}

TensorNames tower_names(const std::string& tower, const std::string& layers, const std::string& feed_forward) {
    TensorNames names;
    names.keys = keys(layers);
    names.prefixes = {"", "transformer."};
    names.token_embedding = tower + ".embed_tokens";
    names.shared_embedding = "shared";
    names.bucket_bias = tower + ".block.0.layer.0.SelfAttention.relative_attention_bias";
    names.layer = tower + ".block.{}.";
    names.in_layer.input_norm = "layer.0.layer_norm";
    names.in_layer.query = "layer.0.SelfAttention.q";
    names.in_layer.key = "layer.0.SelfAttention.k";
    names.in_layer.value = "layer.0.SelfAttention.v";
    names.in_layer.output = "layer.0.SelfAttention.o";
    names.in_layer.feed_forward_norm = feed_forward + "layer_norm";
    names.in_layer.gate = feed_forward + "DenseReluDense.wi_0";
    names.in_layer.down = feed_forward + "DenseReluDense.wo";
    names.final_norm = tower + ".final_layer_norm";
    return names;
}

}  // namespace

TensorNames t5_encoder_names(const ModelConfig& config) {
    TensorNames names = tower_names("encoder", "num_layers", "layer.1.");
    names.in_layer.up = config.gated_feed_forward ? "layer.1.DenseReluDense.wi_1" : "layer.1.DenseReluDense.wi";
    return names;
}

TensorNames t5_names(const ModelConfig& config) {
    TensorNames names = tower_names("decoder", "num_decoder_layers", "layer.2.");
    names.in_layer.up = config.gated_feed_forward ? "layer.2.DenseReluDense.wi_1" : "layer.2.DenseReluDense.wi";
    names.in_layer.cross_norm = "layer.1.layer_norm";
    names.in_layer.cross_query = "layer.1.EncDecAttention.q";
    names.in_layer.cross_key = "layer.1.EncDecAttention.k";
    names.in_layer.cross_value = "layer.1.EncDecAttention.v";
    names.in_layer.cross_output = "layer.1.EncDecAttention.o";
    names.head = "lm_head";
    names.buffers = {"EncDecAttention.relative_attention_bias.weight"};
    return names;
}

const Family kT5{
    "t5", {"t5", "mt5"}, "T5, T5 1.1, Flan-T5, mT5: encoder and decoder, biases by distance, scores without a scale",
    read, t5_names,      t5_encoder_names};

}  // namespace headscope::model

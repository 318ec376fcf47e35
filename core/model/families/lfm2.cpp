// SPDX-License-Identifier: GPL-3.0-or-later
// LFM2 (Liquid AI, 2025): short convolutions between gates in most layers, grouped attention with norms of each query
// and key head in the others.
#include <algorithm>

#include "core/mixers/types/short_convolution.h"
#include "core/mixers/types/standard.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

/// layer_types, or the layers that full_attn_idxs names; all have attention where the file says neither.
void read_layers(ModelConfig& config, const ConfigReader& reader) {
    const std::vector<std::string> types = reader.texts("layer_types");
    const std::vector<double> listed = reader.numbers("full_attn_idxs");
    if (reader.has("layer_types") && static_cast<std::int64_t>(types.size()) != config.layers)
        reader.refuse("layer_types", "a list of " + std::to_string(config.layers) + ", one for each layer");
    for (const std::string& type : types) {
        if (type != "conv" && type != "full_attention")
            reader.unsupported("layer_types", "conv or full_attention for each layer");
    }
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        bool full = !reader.has("full_attn_idxs") ||
                    std::find(listed.begin(), listed.end(), static_cast<double>(layer)) != listed.end();
        if (!types.empty()) full = types[static_cast<std::size_t>(layer)] == "full_attention";
        config.mixers.emplace_back(full ? mixers::kStandard.name : mixers::kShortConvolution.name);
    }
}

/// The feed-forward's size is a part of what the file says, rounded up.
void adjust_feed_forward(ModelConfig& config, const ConfigReader& reader) {
    config.feed_forward = reader.size("block_ff_dim", config.feed_forward);
    if (!reader.boolean("block_auto_adjust_ff_dim", true)) return;
    config.feed_forward = 2 * config.feed_forward / 3;
    if (!reader.is_null("block_ffn_dim_multiplier")) {
        const double factor = reader.positive("block_ffn_dim_multiplier", 1);
        const double scaled = factor * static_cast<double>(config.feed_forward);
        const std::int64_t multiple = reader.size("block_multiple_of", 256);
        constexpr double most = 2147483648.0;
        if (scaled >= most) reader.refuse("block_ffn_dim_multiplier", "a feed-forward of less than 2^31");
        config.feed_forward = (static_cast<std::int64_t>(scaled) + multiple - 1) / multiple * multiple;
    }
    if (config.feed_forward < 1) reader.refuse("intermediate_size", "at least 2, of which two thirds are used");
}

ModelConfig read(const ConfigReader& reader) {
    RopeDefaults rope;
    rope.theta = 1'000'000.0;
    ModelConfig config = read_llama(reader, 128'000, {8, 0, 65'536, 2560, 32, 32, 12'288}, rope);
    config.norm_epsilon = reader.positive("norm_eps", 1e-5);
    // Whatever the file says: transformers asks for none of these.
    config.activation = Activation::silu;
    config.query_key_value_bias = config.feed_forward_bias = false;
    config.query_key_norm = QueryKeyNorm::each_head;
    config.tied_head = reader.boolean("tie_embedding", reader.boolean("tie_word_embeddings", true));
    config.convolution_taps = reader.size("conv_L_cache", 3);
    if (config.convolution_taps > 64) reader.refuse("conv_L_cache", "at most 64");
    config.convolution_bias = config.output_bias = reader.boolean("conv_bias", false);
    adjust_feed_forward(config, reader);
    read_layers(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    LayerNames& softmax = names.in_layer;
    softmax.input_norm = "operator_norm";
    softmax.query_norm = "self_attn.q_layernorm";
    softmax.key_norm = "self_attn.k_layernorm";
    softmax.output = "self_attn.out_proj";
    softmax.plain_output = true;
    softmax.feed_forward_norm = "ffn_norm";
    softmax.gate = "feed_forward.w1";
    softmax.up = "feed_forward.w3";
    softmax.down = "feed_forward.w2";
    LayerNames& convolution = names.of_mixer[mixers::kShortConvolution.name] = softmax;
    convolution.output = "conv.out_proj";
    convolution.plain_output = false;
    names.final_norm = "embedding_norm";
    names.keys.feed_forward = "intermediate_size and block_auto_adjust_ff_dim";
    return names;
}

}  // namespace

const Family kLfm2{
    "lfm2", {"lfm2"}, "LFM2: short convolutions between gates in most layers, grouped attention", read, names};

}  // namespace headscope::model

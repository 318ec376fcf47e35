// SPDX-License-Identifier: GPL-3.0-or-later
// Transformer-XL (Dai et al., arXiv 1901.02860) in the format of transfo-xl-wt103, which transformers had until 4.35:
// relative positions, a memory of earlier segments, a vocabulary in clusters.
#include <cmath>

#include "core/model/families/families.h"

namespace headscope::model {
namespace {

constexpr std::size_t kMostClusters = 64;

SizeKeys keys() {
    SizeKeys keys;
    keys.hidden = "d_model";
    keys.layers = "n_layer";
    keys.heads = "n_head";
    keys.head_size = "d_head";
    keys.feed_forward = "d_inner";
    keys.embedding = "d_embed";
    return keys;
}

std::vector<std::int64_t> read_ends(const ConfigReader& reader, std::int64_t vocabulary) {
    const std::string key = "cutoffs";
    const std::vector<double> cutoffs =
        reader.has(key) ? reader.numbers(key) : std::vector<double>{20000, 40000, 200000};
    if (cutoffs.size() >= kMostClusters)
        reader.refuse(key, "a list of fewer than " + std::to_string(kMostClusters) + " ids");
    std::vector<std::int64_t> ends;
    for (const double cutoff : cutoffs) {
        const double least = ends.empty() ? 0 : static_cast<double>(ends.back());
        if (cutoff != std::floor(cutoff) || cutoff <= least || cutoff >= static_cast<double>(vocabulary))
            reader.refuse(key, "rising ids between 0 and vocab_size (" + std::to_string(vocabulary) + ")");
        ends.push_back(static_cast<std::int64_t>(cutoff));
    }
    ends.push_back(vocabulary);
    return ends;
}

/// tie_weight is what the first versions said for tie_word_embeddings.
bool read_tied(const ConfigReader& reader) {
    const std::string key = "tie_word_embeddings", old = "tie_weight";
    const bool tied = reader.boolean(key, reader.boolean(old, true));
    if (reader.boolean(old, tied) != tied) reader.unsupported(old, "what tie_word_embeddings says");
    return tied;
}

std::vector<bool> read_tied_maps(const ConfigReader& reader, std::size_t clusters) {
    const std::string key = "tie_projs";
    if (!reader.has(key)) {
        std::vector<bool> tied(clusters, reader.boolean("proj_share_all_but_first", true));
        tied.front() = false;
        return tied;
    }
    const std::vector<bool> tied = reader.booleans(key);
    if (tied.size() != clusters)
        reader.refuse(key, "one for each cluster, which cutoffs makes " + std::to_string(clusters));
    return tied;
}

AdaptiveConfig read_vocabulary(const ConfigReader& reader, const ModelConfig& config) {
    AdaptiveConfig adaptive;
    adaptive.ends = read_ends(reader, config.vocabulary);
    adaptive.size = reader.size("d_embed", 1024);
    adaptive.divisor = reader.size("div_val", 4);
    if (adaptive.size_of(adaptive.clusters() - 1) < 1)
        reader.refuse("div_val", "what leaves the last cluster a number of d_embed (" + std::to_string(adaptive.size) +
                                     ") at least");
    adaptive.tied_tables = read_tied(reader);
    adaptive.tied_maps = read_tied_maps(reader, adaptive.ends.size());
    return adaptive;
}

/// Settings of the original code that its files never use, or that would change the computation.
void refuse_others(const ConfigReader& reader) {
    if (reader.count("attn_type", 0) != 0) reader.unsupported("attn_type", "0, Transformer-XL's own attention");
    if (reader.number("sample_softmax", -1) > 0) reader.unsupported("sample_softmax", "-1: the whole softmax");
    if (reader.count("ext_len", 0) != 0) reader.unsupported("ext_len", "0 or absent");
    if (!reader.boolean("adaptive", true)) reader.unsupported("adaptive", "true or absent");
    if (!reader.boolean("is_causal", true)) reader.unsupported("is_causal", "true or absent");
}

ModelConfig read(const ConfigReader& reader) {
    refuse_others(reader);
    SizeKeys sizes = keys();
    sizes.vocabulary = present_key(reader, {"vocab_size", "n_token"});
    SizeDefaults defaults;
    defaults.vocabulary = 267'735;
    defaults.hidden = 1024;
    defaults.layers = 18;
    defaults.heads = 16;
    defaults.head_size = 64;
    defaults.feed_forward = 4096;
    ModelConfig config;
    read_sizes(config, reader, sizes, defaults);
    if (config.key_value_heads != config.heads)
        reader.unsupported(sizes.key_value_heads, "none: this family has no groups of heads");
    if (config.hidden % 2 != 0) reader.refuse(sizes.hidden, "an even size, for sines and cosines");
    config.adaptive = read_vocabulary(reader, config);
    config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
    config.positions = PositionKind::relative;
    // -1 and 0 are none.
    const double clamped = reader.number("clamp_len", 1000);
    if (clamped != std::floor(clamped) || clamped > 0x1p30) reader.refuse("clamp_len", "a number of tokens, or -1");
    config.clamped_distance = clamped > 0 ? static_cast<std::int64_t>(clamped) : 0;
    config.memory_length = reader.count("mem_len", 1600);
    config.memory_is_a_window = reader.boolean("same_length", true);
    if (config.memory_is_a_window && config.memory_length == 0)
        reader.refuse("mem_len", "at least 1, which is all that a token sees (same_length)");
    config.pre_norm = reader.boolean("pre_lnorm", false);
    config.final_norm = false;
    config.norm_epsilon = reader.positive("layer_norm_epsilon", 1e-5);
    config.activation = Activation::relu;
    config.feed_forward_bias = true;
    config.own_position_biases = reader.boolean("untie_r", true);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names;
    names.keys = keys();
    names.prefixes = {"transformer.", ""};
    names.adaptive_embedding = "word_emb";
    names.token_embedding = names.adaptive_embedding + ".emb_layers.0";
    names.layer = "layers.{}.";
    names.in_layer.input_norm = "dec_attn.layer_norm";
    names.in_layer.query_key_value = "dec_attn.qkv_net";
    names.in_layer.output = "dec_attn.o_net";
    names.in_layer.position_key = "dec_attn.r_net";
    names.in_layer.key_bias = "dec_attn.r_w_bias";
    names.in_layer.position_bias = "dec_attn.r_r_bias";
    if (!config.own_position_biases) {
        names.key_bias = "r_w_bias";
        names.position_bias = "r_r_bias";
    }
    names.in_layer.feed_forward_norm = "pos_ff.layer_norm";
    names.in_layer.up = "pos_ff.CoreNet.0";
    names.in_layer.down = "pos_ff.CoreNet.3";
    names.head = "crit";
    const std::int64_t tables = config.adaptive->divisor == 1 ? 1 : config.adaptive->clusters();
    names.numbered = {{"word_emb.emb_layers.", tables, "cutoffs"}};
    // The frequencies are made; biases that all layers share lie in each one's names too.
    names.buffers = {"pos_emb.inv_freq", "dec_attn.r_w_bias", "dec_attn.r_r_bias"};
    return names;
}

}  // namespace

const Family kTransfoXl{"transfo_xl",
                        {"transfo-xl"},
                        "Transformer-XL: relative positions, a memory of earlier segments, a vocabulary in clusters",
                        read,
                        names};

}  // namespace headscope::model

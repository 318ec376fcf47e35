// SPDX-License-Identifier: GPL-3.0-or-later
// FNet (Lee-Thorp et al., arXiv 2105.03824): BERT with Fourier transforms in place of attention, and one map more
// behind the embeddings. There is no mask: transformers transforms a padded batch as it is, padding included; here each
// text is transformed alone, over its own tokens, as transformers does with one text at a time.
#include "core/mixers/types/fourier.h"
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

constexpr const char* kOptimised = "use_tpu_fourier_optimizations";

SizeKeys keys() {
    SizeKeys keys;
    keys.embedding = keys.hidden;
    keys.classes = "id2label";
    return keys;
}

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.vocabulary = 32000;
    sizes.hidden = 768;
    sizes.layers = 12;
    sizes.heads = 1;  // there are none: the site is as wide as the model
    sizes.feed_forward = 3072;
    ModelConfig config;
    read_sizes(config, reader, keys(), sizes);
    refuse_groups(config, reader, keys());
    // Such a model takes texts of tpu_short_seq_length tokens alone.
    if (reader.boolean(kOptimised, false)) reader.unsupported(kOptimised, "false or absent");
    config.mixers.assign(static_cast<std::size_t>(config.layers), mixers::kFourier.name);
    config.token_types = reader.size(keys().token_types, 4);
    config.max_positions = reader.size(keys().positions, 512);
    config.positions = PositionKind::learned;
    config.positions_are_a_table = true;
    config.causal = config.pre_norm = config.final_norm = false;
    config.embedding_norm = true;
    config.embedding_size = config.hidden;
    config.embedding_sum_projected = true;
    config.norm_epsilon = reader.positive("layer_norm_eps", 1e-12);
    config.activation = read_activation(reader, "hidden_act", "gelu_new");
    config.feed_forward_bias = true;
    config.head_transform = config.head_bias = true;
    config.tied_head = reader.boolean("tie_word_embeddings", true);
    read_class_head(config, reader);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = bert_names(config);
    names.keys = keys();
    names.prefixes = {"fnet.", ""};
    names.embedding_projection = "embeddings.projection";
    names.in_layer.output.clear();
    names.in_layer.input_norm = "fourier.output.LayerNorm";
    name_class_head(names, config, "fnet.pooler.dense");
    return names;
}

}  // namespace

const Family kFNet{"fnet", {"fnet"}, "FNet: BERT with Fourier transforms in place of attention", read, names};

}  // namespace headscope::model

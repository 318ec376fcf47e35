// SPDX-License-Identifier: GPL-3.0-or-later
// Mixtral (Jiang et al., arXiv 2401.04088): Mistral with a mixture of experts in place of each feed-forward.
#include "core/model/families/families.h"

namespace headscope::model {

void name_mixtral_experts(TensorNames& names) {
    ExpertNames each, all;
    each.router = "block_sparse_moe.gate";
    each.gate = "block_sparse_moe.experts.{}.w1";
    each.up = "block_sparse_moe.experts.{}.w3";
    each.down = "block_sparse_moe.experts.{}.w2";
    all.router = "mlp.gate";
    all.gate_up = "mlp.experts.gate_up_proj";
    all.down = "mlp.experts.down_proj";
    ExpertNames mlx = each;
    mlx.gate = "block_sparse_moe.experts.{}.gate_proj";
    mlx.up = "block_sparse_moe.experts.{}.up_proj";
    mlx.down = "block_sparse_moe.experts.{}.down_proj";
    names.in_layer.experts = {each, all, mlx};
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    SizeDefaults sizes;
    sizes.key_value_heads = 8;
    RopeDefaults rope;
    rope.theta = 1'000'000.0;
    ModelConfig config = read_llama(reader, 131072, sizes, rope);
    config.norm_epsilon = reader.positive("rms_norm_eps", 1e-5);
    config.query_key_value_bias = config.output_bias = config.feed_forward_bias = false;
    config.windows = read_windows_everywhere(reader, config.layers, read_window(reader, 0));
    read_experts(config, reader, present_key(reader, {"num_experts", "num_local_experts"}), 8, 2);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_mixtral_experts(names);
    return names;
}

}  // namespace

const Family kMixtral{"mixtral", {"mixtral"}, "Mixtral: Mistral with a mixture of experts", read, names};

}  // namespace headscope::model

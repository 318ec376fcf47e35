// SPDX-License-Identifier: GPL-3.0-or-later
// Granite 3's mixtures of experts (IBM, 2024): Granite with experts in place of each feed-forward.
#include "core/model/families/families.h"

namespace headscope::model {

void name_granite_experts(TensorNames& names) {
    ExpertNames published, renamed;
    published.router = "block_sparse_moe.router.layer";
    published.gate_up = "block_sparse_moe.input_linear.weight";
    published.down = "block_sparse_moe.output_linear.weight";
    renamed.router = "block_sparse_moe.router";
    renamed.gate_up = "block_sparse_moe.experts.gate_up_proj";
    renamed.down = "block_sparse_moe.experts.down_proj";
    names.in_layer.experts = {published, renamed};
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    ModelConfig config = read_granite(reader);
    config.feed_forward_bias = false;
    read_experts(config, reader, "num_local_experts", 8, 2);
    return config;
}

TensorNames names(const ModelConfig& config) {
    TensorNames names = llama_names(config);
    name_granite_experts(names);
    return names;
}

}  // namespace

const Family kGraniteMoe{
    "granitemoe", {"granitemoe"}, "Granite 3 with a mixture of experts: its scales, and experts", read, names};

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
// GLM-4-0414 (Zhipu AI, 2025): GLM-4 with norms after each part, too.
#include "core/model/families/families.h"

namespace headscope::model {
namespace {

TensorNames names(const ModelConfig& config) {
    TensorNames names = glm_names(config);
    names.in_layer.attention_update_norm = "post_self_attn_layernorm";
    names.in_layer.feed_forward_update_norm = "post_mlp_layernorm";
    return names;
}

}  // namespace

const Family kGlm4{"glm4", {"glm4"}, "GLM-4-0414: GLM-4 with norms after each part, too", read_glm, names};

}  // namespace headscope::model

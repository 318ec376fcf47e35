// SPDX-License-Identifier: GPL-3.0-or-later
// GLM-4-0414: rows of neighbouring pairs here and in transformers; gate and up are one matrix.
#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {

void build_glm4(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "glm4", "Glm4ForCausalLM");
    read_rms_norm(build);
    read_partial_rope(build, sizes.head_size);
    build.config()["attention_bias"] = build.has_in_layers("attn_q.bias") || build.has_in_layers("attn_qkv.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = layer_stem(layer);
        build.module(from + "attn_norm", to + "input_layernorm");
        build.module(from + "post_attention_norm", to + "post_self_attn_layernorm");
        build.module(from + "ffn_norm", to + "post_attention_layernorm");
        build.module(from + "post_ffw_norm", to + "post_mlp_layernorm");
        name_attention(build, sizes, layer);
        build.module(from + "ffn_up", to + "mlp.gate_up_proj");
        build.module(from + "ffn_down", to + "mlp.down_proj");
    }
}

}  // namespace headscope::checkpoint::gguf

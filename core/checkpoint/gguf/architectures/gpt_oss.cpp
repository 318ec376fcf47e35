// SPDX-License-Identifier: GPL-3.0-or-later
// gpt-oss, whose files hold gate and up apart, and each expert's matrices [out, in]; the model has them interleaved and
// [in, out].
#include <stdexcept>

#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

/// Rows of each expert: gate 0, up 0, gate 1, ...
PackedPointer interleaved_gate_up(const PackedPointer& gate, const PackedPointer& up) {
    if (gate->shape() != up->shape() || gate->shape().size() != 3)
        throw std::invalid_argument("no stack of matrices like the gates'");
    const std::int64_t inner = gate->shape()[1];
    return with_rows({gate, up}, {gate->shape()[0], 2 * inner, gate->shape()[2]}, [](std::int64_t row) {
        return SourceRow{static_cast<std::size_t>(row % 2), row / 2};
    });
}

void name_gpt_oss_experts(ModelBuilder& build, std::int64_t layer) {
    const std::string from = block(layer), to = layer_stem(layer) + "mlp.experts.";
    build.module(from + "ffn_gate_inp", layer_stem(layer) + "mlp.router");
    const PackedPointer gate = build.take_scaled(from + "ffn_gate_exps.weight");
    const std::string up = from + "ffn_up_exps.weight";
    build.put(to + "gate_up_proj",
              build.changed(up, build.take_scaled(up),
                            [&](const PackedPointer& found) { return interleaved_gate_up(gate, found); }),
              true);
    const PackedPointer gate_bias = build.take(from + "ffn_gate_exps.bias");
    const std::string up_bias = from + "ffn_up_exps.bias";
    build.put(to + "gate_up_proj_bias", build.changed(up_bias, build.take(up_bias), [&](const PackedPointer& found) {
        return interleaved(gate_bias, found);
    }));
    const std::string down = from + "ffn_down_exps.weight";
    build.put(to + "down_proj",
              build.changed(down, build.take_scaled(down),
                            [](const PackedPointer& found) {
                                if (found->shape().size() != 3) throw std::invalid_argument("no stack of matrices");
                                return found;
                            }),
              true);
    build.tensor(from + "ffn_down_exps.bias", to + "down_proj_bias");
}

}  // namespace

void build_gpt_oss(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "gpt_oss", "GptOssForCausalLM");
    nlohmann::json& config = build.config();
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    if (config.contains("rope_scaling") && config["rope_scaling"]["rope_type"] == "yarn") {
        nlohmann::json& scaling = config["rope_scaling"];
        scaling["truncate"] = false;
        if (!scaling.contains("beta_fast")) scaling["beta_fast"] = 32.0;
        if (!scaling.contains("beta_slow")) scaling["beta_slow"] = 1.0;
    } else if (!config.contains("rope_scaling")) {
        config["rope_scaling"] = {{"rope_type", "default"}};  // without it the family takes the published one
    }
    read_window(build, [](std::int64_t layer) { return layer % 2 == 0; });
    read_experts(build, "num_local_experts");
    const std::int64_t inner = build.size("expert_feed_forward_length", build.size("feed_forward_length", 0));
    if (inner == 0) build.mismatch("expert_feed_forward_length", "expected a size");
    config["intermediate_size"] = inner;
    config["attention_bias"] = build.has_in_layers("attn_q.bias");
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = layer_stem(layer);
        build.module(from + "attn_norm", to + "input_layernorm");
        build.module(from + "post_attention_norm", to + "post_attention_layernorm");
        name_attention(build, sizes, layer);
        build.tensor(from + "attn_sinks.weight", to + "self_attn.sinks");
        name_gpt_oss_experts(build, layer);
    }
}

}  // namespace headscope::checkpoint::gguf

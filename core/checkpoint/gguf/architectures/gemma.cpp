// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 1 to 3, whose norms are stored as 1 + w.
#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

/// Scores of the largest models are divided by another root than their heads'.
void read_query_scale(ModelBuilder& build, const DecoderSizes& sizes, std::int64_t layers_of_largest) {
    const bool largest = build.layers() == layers_of_largest;
    if (largest && sizes.hidden % sizes.heads != 0)
        build.mismatch("embedding_length", "expected a multiple of " + std::to_string(sizes.heads) + " heads");
    build.config()["query_pre_attn_scalar"] = largest ? sizes.hidden / sizes.heads : sizes.head_size;
}

void read_cap(ModelBuilder& build, const std::string& name, double otherwise) {
    const double cap = build.number(name, otherwise);
    build.config()[name] = cap == 0 ? nlohmann::json() : nlohmann::json(cap);
}

void name_gemma_norms(ModelBuilder& build, std::int64_t layer) {
    const std::string from = block(layer), to = layer_stem(layer);
    build.module(from + "attn_norm", to + "input_layernorm", minus_one);
    build.module(from + "post_attention_norm", to + "post_attention_layernorm", minus_one);
    build.module(from + "ffn_norm", to + "pre_feedforward_layernorm", minus_one);
    build.module(from + "post_ffw_norm", to + "post_feedforward_layernorm", minus_one);
}

}  // namespace

void build_gemma(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "gemma", "GemmaForCausalLM");
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    name_ends(build, minus_one);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        build.module(block(layer) + "attn_norm", layer_stem(layer) + "input_layernorm", minus_one);
        build.module(block(layer) + "ffn_norm", layer_stem(layer) + "post_attention_layernorm", minus_one);
        name_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_gemma2(ModelBuilder& build) {
    constexpr std::int64_t kLayersOfLargest = 46;
    const DecoderSizes sizes = read_decoder(build, "gemma2", "Gemma2ForCausalLM");
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    read_query_scale(build, sizes, kLayersOfLargest);
    read_cap(build, "attn_logit_softcapping", 50.0);
    read_cap(build, "final_logit_softcapping", 30.0);
    read_window(build, [](std::int64_t layer) { return layer % 2 == 0; });
    name_ends(build, minus_one);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_gemma_norms(build, layer);
        name_attention(build, sizes, layer);
        name_feed_forward(build, layer);
    }
}

void build_gemma3(ModelBuilder& build) {
    constexpr std::int64_t kLayersOfLargest = 62;
    constexpr double kLocalBase = 10000.0;
    const DecoderSizes sizes = read_decoder(build, "gemma3_text", "Gemma3ForCausalLM");
    read_rms_norm(build);
    read_whole_rope(build, sizes.head_size);
    read_query_scale(build, sizes, kLayersOfLargest);
    if (build.number("final_logit_softcapping", 0) != 0) read_cap(build, "final_logit_softcapping", 0);
    build.config()["rope_local_base_freq"] = build.number("rope.freq_base_swa", kLocalBase);
    read_window(build, [](std::int64_t layer) { return (layer + 1) % 6 != 0; });
    name_ends(build, minus_one);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        name_gemma_norms(build, layer);
        name_attention(build, sizes, layer);
        name_head_norms(build, layer, minus_one);
        name_feed_forward(build, layer);
    }
}

}  // namespace headscope::checkpoint::gguf

// SPDX-License-Identifier: GPL-3.0-or-later
// BERT and RoBERTa without their heads, which the files lack; positions count from the first row.
#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {

void build_bert(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "bert", "BertModel");
    nlohmann::json& config = build.config();
    if (build.flag("attention.causal", true)) build.unsupported("attention.causal", "expected false");
    if (sizes.key_value_heads != sizes.heads || sizes.head_size * sizes.heads != sizes.hidden)
        build.unsupported("attention.head_count", "expected heads that are alike and together as wide as the model");
    config.erase("num_key_value_heads");
    config.erase("head_dim");
    config["tie_word_embeddings"] = true;
    read_layer_norm(build);
    const auto rows = [&](const char* name) -> std::int64_t {
        const Tensor* table = build.find(name);
        return table != nullptr && table->shape.size() == 2 ? table->shape[0] : 1;
    };
    config["type_vocab_size"] = rows("token_types.weight");
    config["max_position_embeddings"] = rows("position_embd.weight");
    const std::string stem = "embeddings.";
    build.module("token_embd", stem + "word_embeddings");
    build.module("position_embd", stem + "position_embeddings");
    build.module("token_types", stem + "token_type_embeddings");
    build.module("token_embd_norm", stem + "LayerNorm");
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = "encoder.layer." + std::to_string(layer) + ".";
        const std::string attention = to + "attention.self.";
        split_rows(build, from + "attn_qkv",
                   {{attention + "query", sizes.hidden},
                    {attention + "key", sizes.hidden},
                    {attention + "value", sizes.hidden}});
        build.module(from + "attn_q", attention + "query");
        build.module(from + "attn_k", attention + "key");
        build.module(from + "attn_v", attention + "value");
        build.module(from + "attn_output", to + "attention.output.dense");
        build.module(from + "attn_output_norm", to + "attention.output.LayerNorm");
        build.module(from + "ffn_up", to + "intermediate.dense");
        build.module(from + "ffn_down", to + "output.dense");
        build.module(from + "layer_output_norm", to + "output.LayerNorm");
    }
}

}  // namespace headscope::checkpoint::gguf

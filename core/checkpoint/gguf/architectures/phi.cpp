// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-2 and Phi-3.
#include <algorithm>
#include <cmath>

#include "core/checkpoint/gguf/architectures/architecture.h"
#include "core/checkpoint/gguf/architectures/decoder_parts.h"

namespace headscope::checkpoint::gguf {
namespace {

/// Longrope's factors, which the file has as tensors.
void read_long_rope(ModelBuilder& build, std::int64_t rotated) {
    const std::string long_name = "rope_factors_long.weight", short_name = "rope_factors_short.weight";
    const std::int64_t original =
        build.size("rope.scaling.original_context_length", build.config()["max_position_embeddings"]);
    build.config()["original_max_position_embeddings"] = original;
    const double attention = build.number("rope.scaling.attn_factor", 1);
    if (!build.has_tensor(long_name) && !build.has_tensor(short_name)) {
        if (attention != 1) build.unsupported("rope.scaling.attn_factor", "expected 1 without rope_factors_long");
        return;
    }
    const auto factors = [&](const std::string& name) {
        std::vector<float> numbers = build.read_numbers(name);
        const bool positive = std::all_of(numbers.begin(), numbers.end(),
                                          [](float factor) { return factor > 0 && std::isfinite(factor); });
        if (static_cast<std::int64_t>(numbers.size()) != rotated / 2 || !positive) {
            build.refuse_tensor(name, "expected " + std::to_string(rotated / 2) + " numbers above 0",
                                "found " + std::to_string(numbers.size()) + (positive ? "" : ", some of them not"));
        }
        return numbers;
    };
    build.config()["rope_scaling"] = {{"rope_type", "longrope"},
                                      {"long_factor", factors(long_name)},
                                      {"short_factor", factors(short_name)},
                                      {"attention_factor", attention}};
}

/// Three stored maps as one, query, key, value.
PackedPointer stacked_rows(std::vector<PackedPointer> sources) {
    std::vector<std::int64_t> ends;
    std::int64_t rows = 0;
    for (const PackedPointer& source : sources) ends.push_back(rows += source->rows());
    const std::int64_t columns = sources.front()->columns();
    return with_rows(std::move(sources), {rows, columns}, [ends](std::int64_t row) {
        const auto source = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), row) - ends.begin());
        return SourceRow{source, row - (source == 0 ? 0 : ends[source - 1])};
    });
}

}  // namespace

void build_phi3(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "phi3", "Phi3ForCausalLM");
    read_rms_norm(build);
    const std::string scaling = build.text("rope.scaling.type", "longrope");
    if (scaling != "longrope" && scaling != "none")
        build.unsupported("rope.scaling.type", "expected longrope, which phi3 has, or none");
    build.config()["rope_theta"] = build.number("rope.freq_base", 10000.0);
    const std::int64_t rotated = build.size("rope.dimension_count", sizes.head_size);
    if (rotated > sizes.head_size || rotated % 2 != 0)
        build.mismatch("rope.dimension_count", "expected an even number up to " + std::to_string(sizes.head_size));
    set_partial_rope(build, rotated, sizes.head_size, "partial_rotary_factor");
    read_long_rope(build, rotated);
    if (build.number("rope.scaling.factor", 0) != 0 && scaling == "none")
        build.unsupported("rope.scaling.factor", "expected none");
    read_window(build, nullptr);
    name_ends(build);
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = layer_stem(layer);
        build.module(from + "attn_norm", to + "input_layernorm");
        build.module(from + "ffn_norm", to + "post_attention_layernorm");
        build.module(from + "attn_output", to + "self_attn.o_proj");
        if (build.has_tensor(from + "attn_q.weight")) {
            std::vector<PackedPointer> parts;
            for (const char* part : {"q", "k", "v"})
                parts.push_back(build.take_scaled(from + "attn_" + part + ".weight"));
            build.put(to + "self_attn.qkv_proj.weight",
                      build.changed(from + "attn_q.weight", parts[0],
                                    [&](const PackedPointer&) { return stacked_rows(parts); }));
        }
        build.module(from + "attn_qkv", to + "self_attn.qkv_proj");
        build.module(from + "ffn_up", to + "mlp.gate_up_proj");
        build.module(from + "ffn_down", to + "mlp.down_proj");
    }
}

void build_phi2(ModelBuilder& build) {
    const DecoderSizes sizes = read_decoder(build, "phi", "PhiForCausalLM");
    read_layer_norm(build);
    read_partial_rope(build, sizes.head_size);
    name_ends(build, nullptr, "model.final_layernorm");
    for (std::int64_t layer = 0; layer < build.layers(); ++layer) {
        const std::string from = block(layer), to = layer_stem(layer);
        build.module(from + "attn_norm", to + "input_layernorm");
        split_rows(build, from + "attn_qkv",
                   {{to + "self_attn.q_proj", sizes.heads * sizes.head_size},
                    {to + "self_attn.k_proj", sizes.key_value_heads * sizes.head_size},
                    {to + "self_attn.v_proj", sizes.key_value_heads * sizes.head_size}});
        build.module(from + "attn_q", to + "self_attn.q_proj");
        build.module(from + "attn_k", to + "self_attn.k_proj");
        build.module(from + "attn_v", to + "self_attn.v_proj");
        build.module(from + "attn_output", to + "self_attn.dense");
        build.module(from + "ffn_up", to + "mlp.fc1");
        build.module(from + "ffn_down", to + "mlp.fc2");
    }
}

}  // namespace headscope::checkpoint::gguf

// SPDX-License-Identifier: GPL-3.0-or-later
// DeepSeek-V3 and R1 (arXiv 2412.19437), and Kimi K2 (arXiv 2507.20534): DeepSeek-V2 whose experts are chosen by
// sigmoids, with a number of each expert that balances them. Layers that predict further tokens are not run.
#include "core/model/families/families.h"

namespace headscope::model {

void read_sigmoid_routing(ModelConfig& config, const ConfigReader& reader, std::int64_t groups,
                          std::int64_t groups_per_token) {
    read_expert_groups(config, reader, groups, groups_per_token, 2);
    config.routing.sigmoid = config.routing.choice_bias = true;
    config.expert_shares_of_chosen = !reader.is_null("norm_topk_prob") && reader.boolean("norm_topk_prob", true);
    config.further_layers = reader.count(present_key(reader, {"num_mtp_layers", "num_nextn_predict_layers"}), 1);
}

namespace {

ModelConfig read(const ConfigReader& reader) {
    refuse_other_routing(reader, "sigmoid");
    const std::string method = "topk_method", built = "noaux_tc";
    if (reader.text(method, built) != built) reader.unsupported(method, built);
    SizeDefaults sizes;
    sizes.key_value_heads = 128;
    ModelConfig config = read_latent_attention(reader, sizes, 4096);
    const std::string whole = "head_dim";
    if (reader.has(whole) && reader.size(whole) != config.rope.size)
        reader.unsupported(whole, std::to_string(config.rope.size) + ", what qk_rope_head_dim is");
    config.rope.interleaved = !reader.is_null("rope_interleave") && reader.boolean("rope_interleave", true);
    read_deepseek_experts(config, reader, present_key(reader, {"num_local_experts", "n_routed_experts"}),
                          {256, 8, 2048, 1, 3, 2.5});
    read_sigmoid_routing(config, reader, 8, 4);
    return config;
}

}  // namespace

const Family kDeepseekV3{"deepseek_v3",
                         {"deepseek_v3", "kimi_k2"},
                         "DeepSeek-V3 and R1, Kimi K2: latent attention, experts chosen by sigmoids",
                         read,
                         deepseek_names};

}  // namespace headscope::model

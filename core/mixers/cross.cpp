// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/cross.h"

#include <cmath>

#include "core/base/error.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"

namespace headscope::mixers {

CrossMixer::CrossMixer(const model::ModelConfig& config) : heads_(config.heads), head_size_(config.head_size) {
    rule_.scale =
        config.attention_scale > 0 ? config.attention_scale : 1.0 / std::sqrt(static_cast<double>(head_size_));
    rule_.causal = false;
}

void CrossMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    const model::SizeKeys& keys = plan.keys();
    const std::int64_t rows = heads_ * head_size_;
    const model::Dimension out{rows, keys.heads + " * " + keys.head_size};
    const model::Dimension hidden{config.hidden, keys.hidden}, memory{config.encoder->hidden, keys.hidden};
    query_.declare(plan, names.layer_stem + names.in_layer.cross_query, out, hidden, config.query_key_value_bias);
    const auto part = [&](const std::string& name, std::int64_t first) {
        const std::string stem = names.layer_stem + name;
        plan.want_rows(&key_value_.weight, stem + ".weight", {out, memory}, first, 2 * rows);
        if (config.query_key_value_bias) plan.want_rows(&key_value_.bias, stem + ".bias", {out}, first, 2 * rows);
    };
    part(names.in_layer.cross_key, 0);
    part(names.in_layer.cross_value, rows);
}

std::vector<Site> CrossMixer::sites() const {
    Site site;
    site.kind = "cross";
    site.heads = site.key_value_heads = static_cast<std::int32_t>(heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.causal = false;
    return {site};
}

at::Tensor CrossMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const at::Tensor query = query_(normed, context.cancellation).unflatten(2, {heads_, head_size_}).transpose(1, 2);
    auto* held = cache ? &dynamic_cast<KeyValueCache&>(*cache) : nullptr;
    at::Tensor key, value;
    if (held && !held->empty()) {
        key = held->key();
        value = held->value();
    } else {
        if (!context.memory.defined()) {
            throw Error(ErrorCode::usage, "cross-attention", "expected what the encoder returned, or a cache of it",
                        "found neither");
        }
        const at::Tensor both =
            key_value_(context.memory, context.cancellation).unflatten(2, {2 * heads_, head_size_}).transpose(1, 2);
        key = both.narrow(1, 0, heads_);
        value = both.narrow(1, heads_, heads_);
        if (held) held->append(key, value);
    }
    context.announce("query", query);
    context.announce("key", key);
    context.announce("value", value);

    kernels::ScoreRule rule = rule_;
    if (context.lengths) rule.query_length = *context.lengths;
    if (context.memory_lengths) rule.key_length = *context.memory_lengths;
    return attend(query, key, value, rule, context.site, context);
}

std::unique_ptr<MixerCache> CrossMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

}  // namespace headscope::mixers

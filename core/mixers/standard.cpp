// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/standard.h"

#include <cmath>

#include "core/base/error.h"
#include "core/mixers/attend.h"
#include "core/mixers/key_value_cache.h"

namespace headscope::mixers {

StandardMixer::StandardMixer(const model::ModelConfig& config, std::int64_t layer)
    : heads_(config.heads), key_value_heads_(config.key_value_heads), head_size_(config.head_size) {
    rule_.scale =
        config.attention_scale > 0 ? config.attention_scale : 1.0 / std::sqrt(static_cast<double>(head_size_));
    if (config.scale_by_inverse_layer) rule_.scale /= static_cast<double>(layer + 1);
    rule_.soft_cap = config.soft_cap;
    rule_.causal = config.causal;
    const std::int64_t window = config.windows.empty() ? 0 : config.windows.at(static_cast<std::size_t>(layer));
    if (window > 0) rule_.window_left = window - 1;
}

void StandardMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    const model::SizeKeys& keys = plan.keys();
    const model::LayerNames& in_layer = names.in_layer;
    const model::Dimension hidden{config.hidden, keys.hidden};
    const std::int64_t query_rows = heads_ * head_size_, key_rows = key_value_heads_ * head_size_;
    const std::int64_t rows = query_rows + 2 * key_rows;
    if (!in_layer.query_key_value.empty()) {
        query_key_value_.declare(plan, names.layer_stem + in_layer.query_key_value,
                                 {rows, "query, key and value of " + keys.heads + " * " + keys.head_size}, hidden,
                                 config.query_key_value_bias);
        return;
    }
    const auto part = [&](const std::string& name, std::int64_t first, std::int64_t count, const std::string& heads) {
        const std::string stem = names.layer_stem + name;
        const model::Dimension out{count, heads + " * " + keys.head_size};
        plan.want_rows(&query_key_value_.weight, stem + ".weight", {out, hidden}, first, rows);
        if (config.query_key_value_bias) plan.want_rows(&query_key_value_.bias, stem + ".bias", {out}, first, rows);
    };
    part(in_layer.query, 0, query_rows, keys.heads);
    part(in_layer.key, query_rows, key_rows, keys.key_value_heads);
    part(in_layer.value, query_rows + key_rows, key_rows, keys.key_value_heads);
}

std::vector<Site> StandardMixer::sites() const {
    Site site;
    site.heads = static_cast<std::int32_t>(heads_);
    site.key_value_heads = static_cast<std::int32_t>(key_value_heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.causal = rule_.causal;
    return {site};
}

at::Tensor StandardMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    // [B, L, heads, size]; views of the one product, told apart by head.
    const at::Tensor all =
        query_key_value_(normed, context.cancellation).unflatten(2, {heads_ + 2 * key_value_heads_, head_size_});
    const at::Tensor query_key = all.narrow(2, 0, heads_ + key_value_heads_);
    at::Tensor value = all.narrow(2, heads_ + key_value_heads_, key_value_heads_).transpose(1, 2);
    const auto query_of = [this](const at::Tensor& both) { return both.narrow(2, 0, heads_).transpose(1, 2); };
    const auto key_of = [this](const at::Tensor& both) {
        return both.narrow(2, heads_, key_value_heads_).transpose(1, 2);
    };
    context.announce("query", query_of(query_key));
    context.announce("key", key_of(query_key));
    context.announce("value", value);

    at::Tensor rotated = query_key;
    if (context.rotary) {
        rotated = context.rotary->rotate(query_key, *context.rotation);
        context.announce("query_rotated", query_of(rotated));
        context.announce("key_rotated", key_of(rotated));
    }
    at::Tensor key = key_of(rotated);
    if (cache) {
        auto& held = dynamic_cast<KeyValueCache&>(*cache);
        if (context.history_rotation) {
            held.append(key_of(query_key), value);
            key = context.rotary->rotate(held.key().transpose(1, 2), *context.history_rotation).transpose(1, 2);
        } else {
            held.append(key, value);
            key = held.key();
        }
        value = held.value();
    }

    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return attend(query_of(rotated), key, value, rule, context.site, context);
}

std::unique_ptr<MixerCache> StandardMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

}  // namespace headscope::mixers

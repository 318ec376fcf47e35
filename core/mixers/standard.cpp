// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/standard.h"

#include <cmath>

#include <ATen/ops/cat.h>

#include "core/base/error.h"
#include "core/mixers/attend.h"
#include "core/mixers/key_value_cache.h"

namespace headscope::mixers {
namespace {

/// The slopes of ALiBi (Press et al., arXiv 2108.12409): 2^(-8 k / n), k = 1 .. n, for a power of two of heads; further
/// heads take every other slope of twice as many.
std::vector<float> alibi_slopes(std::int64_t heads) {
    std::int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    std::vector<float> slopes;
    for (std::int64_t head = 0; head < heads; ++head) {
        const double step = head < power ? static_cast<double>(head + 1) / static_cast<double>(power)
                                         : static_cast<double>(2 * (head - power) + 1) / static_cast<double>(2 * power);
        slopes.push_back(static_cast<float>(std::exp2(-8.0 * step)));
    }
    return slopes;
}

}  // namespace

StandardMixer::StandardMixer(const model::ModelConfig& config, std::int64_t layer)
    : heads_(config.heads), key_value_heads_(config.key_value_heads), head_size_(config.head_size) {
    rule_.scale =
        config.attention_scale > 0 ? config.attention_scale : 1.0 / std::sqrt(static_cast<double>(head_size_));
    if (config.scale_by_inverse_layer) rule_.scale /= static_cast<double>(layer + 1);
    rule_.soft_cap = config.soft_cap;
    rule_.causal = config.causal;
    const std::int64_t window = config.windows.empty() ? 0 : config.windows.at(static_cast<std::size_t>(layer));
    if (window > 0) rule_.window_left = window - 1;
    if (window > 0 && !config.causal) rule_.window_right = window - 1;
    if (config.positions == model::PositionKind::alibi) rule_.slopes = alibi_slopes(heads_);
    norms_of_all_heads_ = config.query_key_norm == model::QueryKeyNorm::all_heads;
}

void StandardMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    const model::SizeKeys& keys = plan.keys();
    const model::LayerNames& in_layer = names.in_layer;
    const model::Dimension hidden{config.hidden, keys.hidden};
    const std::int64_t query_rows = heads_ * head_size_, key_rows = key_value_heads_ * head_size_;
    const std::int64_t rows = query_rows + 2 * key_rows;
    declare_norms(plan, names);
    if (config.sink_logits) plan.want(&sinks_, {names.layer_stem + in_layer.sinks}, {{heads_, keys.heads}});
    if (!in_layer.query_key_value.empty()) {
        const std::string stem = names.layer_stem + in_layer.query_key_value;
        const model::Dimension out{rows, "query, key and value of " + keys.heads + " * " + keys.head_size};
        if (in_layer.fused_layout == model::FusedLayout::concatenated) {
            query_key_value_.declare(plan, stem, out, hidden, config.query_key_value_bias);
            return;
        }
        plan.want_by_head(&query_key_value_.weight, stem + ".weight", {out, hidden}, heads_, 3);
        if (config.query_key_value_bias) plan.want_by_head(&query_key_value_.bias, stem + ".bias", {out}, heads_, 3);
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

void StandardMixer::declare_norms(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    if (config.query_key_norm == model::QueryKeyNorm::none) return;
    const model::SizeKeys& keys = plan.keys();
    const auto size = [&](std::int64_t heads, const std::string& key) {
        return norms_of_all_heads_ ? model::Dimension{heads * head_size_, key + " * " + keys.head_size}
                                   : model::Dimension{head_size_, keys.head_size};
    };
    query_norm_.declare(plan, names.layer_stem + names.in_layer.query_norm, size(heads_, keys.heads), false);
    key_norm_.declare(plan, names.layer_stem + names.in_layer.key_norm, size(key_value_heads_, keys.key_value_heads),
                      false);
}

std::vector<Site> StandardMixer::sites() const {
    Site site;
    site.heads = static_cast<std::int32_t>(heads_);
    site.key_value_heads = static_cast<std::int32_t>(key_value_heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.causal = rule_.causal;
    return {site};
}

at::Tensor StandardMixer::with_norms(const at::Tensor& query_key) const {
    if (!query_norm_.weight.defined()) return query_key;
    const auto apply = [this](const model::Norm& norm, const at::Tensor& heads) {
        return norms_of_all_heads_ ? norm(heads.flatten(2)).reshape(heads.sizes()) : norm(heads);
    };
    return at::cat({apply(query_norm_, query_key.narrow(2, 0, heads_)),
                    apply(key_norm_, query_key.narrow(2, heads_, key_value_heads_))},
                   2);
}

at::Tensor StandardMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    // [B, L, heads, size]; views of the one product, told apart by head.
    const at::Tensor all =
        query_key_value_(normed, context.cancellation).unflatten(2, {heads_ + 2 * key_value_heads_, head_size_});
    const at::Tensor query_key = with_norms(all.narrow(2, 0, heads_ + key_value_heads_));
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
    if (sinks_.defined()) {
        const at::Tensor sinks = sinks_.to(at::kFloat).contiguous();
        rule.sink_logits.assign(sinks.const_data_ptr<float>(), sinks.const_data_ptr<float>() + heads_);
    }
    if (context.shared_bias) {
        rule.distance_bias = context.shared_bias->distance_bias;
        rule.bias_length = context.shared_bias->bias_length;
        rule.bias_origin = context.shared_bias->bias_origin;
        rule.beyond_table = context.shared_bias->beyond_table;
    }
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return attend(query_of(rotated), key, value, rule, context.site, context);
}

std::unique_ptr<MixerCache> StandardMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

}  // namespace headscope::mixers

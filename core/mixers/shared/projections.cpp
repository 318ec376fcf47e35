// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/projections.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "core/mixers/shared/key_value_cache.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

using model::QueryKeyNorm;

Projections::Projections(const model::ModelConfig& config)
    : heads_(config.heads),
      key_value_heads_(config.key_value_heads),
      head_size_(config.head_size),
      norms_(config.query_key_norm),
      clip_(config.query_key_value_clip),
      growth_(config.query_growth),
      growth_step_(config.query_growth_step),
      growth_unrotated_(config.query_growth_unrotated),
      gated_(config.attention_gate),
      biases_(config.query_key_value_bias) {
    if (norms_ != QueryKeyNorm::rotated_head) return;
    query_norm_.kind = config.norm;
    query_norm_.epsilon = config.norm_epsilon;
    query_norm_.affine = false;
}

void Projections::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    const model::SizeKeys& keys = plan.keys();
    const model::LayerNames& in_layer = names.in_layer;
    const model::Dimension hidden{config.hidden, keys.hidden};
    const std::int64_t query_rows = (gated_ ? 2 : 1) * heads_ * head_size_, key_rows = key_value_heads_ * head_size_;
    const std::int64_t rows = query_rows + 2 * key_rows;
    declare_norms(plan, names);
    if (!in_layer.query_key_value.empty()) {
        const std::string stem = names.layer_stem + in_layer.query_key_value;
        const model::Dimension out{rows, "query, key and value of " + keys.heads + " * " + keys.head_size};
        if (in_layer.fused_layout != model::FusedLayout::by_head) {
            by_group_ = in_layer.fused_layout == model::FusedLayout::by_group;
            if (config.encoder)
                all_.declare(plan, stem, out, hidden, biases_);
            else
                all_.declare_for_products(plan, stem, out, hidden, biases_);
            return;
        }
        plan.want_by_head(&all_.weight, stem + ".weight", {out, hidden}, heads_, 3);
        if (biases_) plan.want_by_head(&all_.bias, stem + ".bias", {out}, heads_, 3);
        return;
    }
    const auto part = [&](const std::string& name, std::int64_t first, std::int64_t count, const std::string& heads) {
        const std::string stem = names.layer_stem + name;
        const model::Dimension out{count, heads + " * " + keys.head_size};
        plan.want_rows(&all_.weight, stem + ".weight", {out, hidden}, first, rows);
        if (!config.encoder) plan.allow_product(&all_.packed);  // rows() takes the weight apart
        if (biases_) plan.want_rows(&all_.bias, stem + ".bias", {out}, first, rows);
    };
    part(in_layer.query, 0, query_rows, (gated_ ? "2 * " : "") + keys.heads);
    part(in_layer.key, query_rows, key_rows, keys.key_value_heads);
    part(in_layer.value, query_rows + key_rows, key_rows, keys.key_value_heads);
}

void Projections::declare_norms(model::TensorPlan& plan, const model::TensorNames& names) {
    if (!has_norms()) return;
    if (norms_ == QueryKeyNorm::own_of_each_head) return declare_own_norms(plan, names);
    const model::SizeKeys& keys = plan.keys();
    const auto size = [&](std::int64_t heads, const std::string& key) {
        return norms_ == QueryKeyNorm::all_heads ? model::Dimension{heads * head_size_, key + " * " + keys.head_size}
                                                 : model::Dimension{head_size_, keys.head_size};
    };
    query_norm_.declare(plan, names.layer_stem + names.in_layer.query_norm, size(heads_, keys.heads), false);
    key_norm_.declare(plan, names.layer_stem + names.in_layer.key_norm, size(key_value_heads_, keys.key_value_heads),
                      false);
    if (const double epsilon = plan.config().query_key_norm_epsilon; epsilon > 0)
        query_norm_.epsilon = key_norm_.epsilon = epsilon;
}

void Projections::declare_own_norms(model::TensorPlan& plan, const model::TensorNames& names) {
    const auto gains = [&](model::Norm& norm, const std::string& name, std::int64_t heads, const std::string& key) {
        norm.kind = plan.config().norm;
        norm.epsilon = plan.config().norm_epsilon;
        norm.affine = false;  // the norm itself: the gains lie side by side, [heads * size] or [heads, size]
        const model::Dimension size{head_size_, plan.keys().head_size};
        if (name.find("{}") == std::string::npos) {
            plan.want(&norm.weight, {names.layer_stem + name + ".weight"}, {{heads, key}, size}, model::Initial::gain);
            return;
        }
        for (std::int64_t head = 0; head < heads; ++head) {
            plan.want_rows(&norm.weight, names.layer_stem + model::numbered(name, head) + ".weight", {size},
                           head * head_size_, heads * head_size_, model::Initial::gain);
        }
    };
    gains(query_norm_, names.in_layer.query_norm, heads_, plan.keys().heads);
    gains(key_norm_, names.in_layer.key_norm, key_value_heads_, plan.keys().key_value_heads);
}

Site Projections::site(bool causal) const {
    Site site;
    site.heads = static_cast<std::int32_t>(heads_);
    site.key_value_heads = static_cast<std::int32_t>(key_value_heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.causal = causal;
    return site;
}

model::Linear Projections::rows(std::int64_t first, std::int64_t count) const {
    const std::int64_t begin = first * head_size_, size = count * head_size_;
    return {all_.weight.narrow(0, begin, size), all_.bias.defined() ? all_.bias.narrow(0, begin, size) : at::Tensor()};
}

at::Tensor Projections::heads(const at::Tensor& x, const Cancellation* cancellation, at::Tensor* gate) const {
    return by_head(all_(x, cancellation), gate);
}

HeadMaps Projections::head_maps() const {
    const at::Tensor all = by_head(all_.weight.t().unsqueeze(0), nullptr);
    at::Tensor bias;
    if (all_.bias.defined()) bias = value_of(by_head(all_.bias.view({1, 1, -1}), nullptr))[0].select(1, 0);
    return {gained(query_norm_, query_of(all)[0]), gained(key_norm_, key_of(all)[0]), value_of(all)[0], {}, bias};
}

at::Tensor Projections::gained(const model::Norm& norm, const at::Tensor& maps) const {
    if (!norm.weight.defined()) return maps;
    const bool centers = norm.kind == model::NormKind::layer && norms_ != QueryKeyNorm::all_heads;
    return (centers ? maps - maps.mean(2, true) : maps) * norm.gain().view({-1, 1, head_size_});
}

at::Tensor Projections::by_head(const at::Tensor& all, at::Tensor* gate) const {
    if (gated_) {
        const at::Tensor sizes = all.unflatten(2, {-1, head_size_});
        const at::Tensor both = sizes.narrow(2, 0, 2 * heads_).unflatten(2, {heads_, 2});
        if (gate) *gate = both.select(3, 1).flatten(2);
        return at::cat({both.select(3, 0), sizes.narrow(2, 2 * heads_, 2 * key_value_heads_)}, 2);
    }
    if (!by_group_) return all.unflatten(2, {heads_ + 2 * key_value_heads_, head_size_});
    const at::Tensor groups = all.unflatten(2, {key_value_heads_, -1, head_size_});
    const std::int64_t queries = heads_ / key_value_heads_;
    return at::cat(
        {groups.narrow(3, 0, queries).flatten(2, 3), groups.select(3, queries), groups.select(3, queries + 1)}, 2);
}

at::Tensor Projections::query_key(const at::Tensor& x, const Cancellation* cancellation) const {
    const std::int64_t count = heads_ + key_value_heads_;
    if (by_group_ || gated_) return heads(x, cancellation).narrow(2, 0, count);
    return rows(0, count)(x, cancellation).unflatten(2, {count, head_size_});
}

at::Tensor Projections::value(const at::Tensor& x, const Cancellation* cancellation) const {
    if (by_group_ || gated_) return value_of(heads(x, cancellation));
    const model::Linear own = rows(heads_ + key_value_heads_, key_value_heads_);
    return own(x, cancellation).unflatten(2, {key_value_heads_, head_size_}).transpose(1, 2);
}

bool Projections::separates_queries() const {
    return all_.weight.defined() && !by_group_ && !gated_ && growth_ == 0;
}

at::Tensor Projections::query_alone(const at::Tensor& x, const Cancellation* cancellation) const {
    return rows(0, heads_)(x, cancellation).unflatten(2, {heads_, head_size_});
}

at::Tensor Projections::key_value(const at::Tensor& x, const Cancellation* cancellation) const {
    const std::int64_t count = 2 * key_value_heads_;
    return rows(heads_, count)(x, cancellation).unflatten(2, {count, head_size_});
}

at::Tensor Projections::with_query_norm(const at::Tensor& query) const {
    return clipped(has_norms() ? normed(query_norm_, query) : query);
}

at::Tensor Projections::with_key_norm(const at::Tensor& key) const {
    return clipped(has_norms() ? normed(key_norm_, key) : key);
}

at::Tensor Projections::normed(const model::Norm& norm, const at::Tensor& heads) const {
    if (norms_ == QueryKeyNorm::all_heads) return norm(heads.flatten(2)).reshape(heads.sizes());
    if (norms_ == QueryKeyNorm::each_head) return norm(heads);
    model::Norm bare = norm;
    bare.weight = at::Tensor();
    return bare(heads) * norm.weight.view({-1, head_size_});
}

at::Tensor Projections::with_norms(const at::Tensor& query_key) const {
    if (!has_norms()) return clipped(query_key);
    return clipped(at::cat({normed(query_norm_, query_key.narrow(2, 0, heads_)),
                            normed(key_norm_, query_key.narrow(2, heads_, key_value_heads_))},
                           2));
}

at::Tensor Projections::rotated(const at::Tensor& heads, const model::Rotary& rotary,
                                const model::RotaryTable& table) const {
    const at::Tensor turned = rotary.rotate(heads, table);
    return norms_ == QueryKeyNorm::rotated_head ? query_norm_(turned) : turned;
}

at::Tensor Projections::grown(const at::Tensor& rotated, std::int64_t first, bool turns) const {
    if (growth_ == 0 || (growth_unrotated_ && turns)) return rotated;
    if (growth_unrotated_) ++first;
    const std::int64_t end = first + rotated.size(1);
    if (end <= growth_step_) return rotated;
    const at::Tensor steps =
        (at::arange(first, end, rotated.options().dtype(at::kDouble)) / static_cast<double>(growth_step_)).floor();
    const at::Tensor factor = ((steps + 1).log() * growth_ + 1).to(rotated.scalar_type()).view({-1, 1, 1});
    return at::cat({rotated.narrow(2, 0, heads_) * factor, rotated.narrow(2, heads_, key_value_heads_)}, 2);
}

at::Tensor announce_and_rotate(const Projections& maps, at::Tensor& query_key, at::Tensor& value,
                               const StackContext& context) {
    const bool edits = context.edits(model::Point::query) || context.edits(model::Point::key);
    const at::Tensor query = context.pass(model::Point::query, maps.query_of(query_key));
    const at::Tensor key = context.pass(model::Point::key, maps.key_of(query_key));
    value = context.pass(model::Point::value, value);
    if (edits) query_key = at::cat({query.transpose(1, 2), key.transpose(1, 2)}, 2);
    if (!context.rotary) return maps.grown(query_key, context.first_position, false);
    const at::Tensor rotated =
        maps.grown(maps.rotated(query_key, *context.rotary, *context.rotation), context.first_position, true);
    context.announce("query_rotated", maps.query_of(rotated));
    context.announce("key_rotated", maps.key_of(rotated));
    return rotated;
}

Attending attend_one(const Projections& maps, const at::Tensor& x, const StackContext& context) {
    const std::int64_t position = context.only_position, groups = maps.key_value_heads();
    const at::Tensor row = x.narrow(1, position, 1).contiguous();
    at::Tensor query = maps.with_query_norm(maps.query_alone(row, context.cancellation));
    const at::Tensor both = maps.key_value(x, context.cancellation);
    at::Tensor key = maps.with_key_norm(both.narrow(2, 0, groups));
    key = context.edited(model::Point::key, key.transpose(1, 2)).transpose(1, 2);
    const at::Tensor value = maps.clipped(both.narrow(2, groups, groups)).transpose(1, 2);
    if (context.rotary) {
        const model::RotaryTable& all = *context.rotation;
        const model::RotaryTable own{all.cosine.narrow(0, position, 1), all.sine.narrow(0, position, 1)};
        query = maps.rotated(query, *context.rotary, own);
        key = maps.rotated(key, *context.rotary, all);
    }
    return {query.transpose(1, 2), key.transpose(1, 2), context.edited(model::Point::value, value)};
}

void join_cache(const Projections& maps, const at::Tensor& query_key, at::Tensor& key, at::Tensor& value,
                const StackContext& context, MixerCache& cache) {
    auto& held = dynamic_cast<KeyValueCache&>(cache);
    if (context.history_rotation) {
        held.append(maps.key_of(query_key), value);
        key = maps.rotated(held.key().transpose(1, 2), *context.rotary, *context.history_rotation).transpose(1, 2);
    } else {
        held.append(key, value);
        key = held.key();
    }
    value = held.value();
}

}  // namespace headscope::mixers

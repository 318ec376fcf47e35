// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/head_variants.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/stack.h>

#include "core/base/error.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/model/load/tensor_plan.h"
#include "kernels/normaliser.h"

namespace headscope::mixers {
namespace {

constexpr double kEmbeddingDeviation = 0.02;

/// [B, L, heads, size] as [B, heads, L, size], and back.
at::Tensor swapped(const at::Tensor& heads) {
    return heads.transpose(1, 2);
}

}  // namespace

HeadVariantMixer::HeadVariantMixer(const MixerType& type, const model::ModelConfig& config, Reads reads)
    : type_(&type),
      reads_(reads),
      heads_(config.heads),
      head_size_(config.head_size),
      has_norms_(config.query_key_norm == model::QueryKeyNorm::each_head) {
    rule_.scale =
        config.attention_scale > 0 ? config.attention_scale : 1.0 / std::sqrt(static_cast<double>(head_size_));
    rule_.causal = config.causal && !is_cross();
    const bool standard = &type == &kStandard;
    if (standard)
        rule_.normaliser = *kernels::find_normaliser(config.mixer_options.get<std::string>(kStandard, "normaliser"));
    query_maps_ = &type == &kSingleHead || embeds_heads() ? 1 : heads_;
    key_maps_ = &type == &kElAttention ? 0 : standard || &type == &kSharedKeyValue ? config.key_value_heads : 1;
    value_maps_ = &type == &kElAttention || &type == &kSharedKeyValue ? 0 : key_maps_;
    query_heads_ = &type == &kSingleHead ? 1 : heads_;
    key_value_heads_ = embeds_heads() || &type == &kElAttention ? heads_ : key_maps_;
    if (&type == &kElAttention && config.hidden != heads_ * head_size_) {
        throw Error(ErrorCode::mismatch, "mixers.el_att",
                    "expected a hidden size of heads * head size, " + std::to_string(heads_ * head_size_),
                    "found " + std::to_string(config.hidden));
    }
}

void HeadVariantMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::SizeKeys& keys = plan.keys();
    const model::LayerNames& in_layer = names.in_layer;
    const model::ModelConfig& config = plan.config();
    const model::Dimension hidden{config.hidden, keys.hidden}, size{head_size_, keys.head_size};
    const model::Dimension read{is_cross() ? config.encoder->hidden : config.hidden, keys.hidden};
    const auto rows_of = [&](std::int64_t count, const std::string& heads) {
        return model::Dimension{count * head_size_, count == 1 ? keys.head_size : heads + " * " + keys.head_size};
    };
    const std::int64_t queries = is_cross() ? 0 : query_maps_;
    const std::int64_t rows = (queries + key_maps_ + value_maps_) * head_size_;
    const auto map = [&](const std::string& name, std::int64_t first, std::int64_t count, const std::string& heads) {
        const std::string stem = names.layer_stem + name;
        const model::Dimension out = rows_of(count, count == heads_ ? keys.heads : heads);
        if (count == 0) return;
        plan.want_rows(&maps_.weight, stem + ".weight", {out, read}, first * head_size_, rows);
        if (config.query_key_value_bias) plan.want_rows(&maps_.bias, stem + ".bias", {out}, first * head_size_, rows);
    };
    if (is_cross()) {
        query_.declare(plan, names.layer_stem + in_layer.cross_query, rows_of(query_maps_, keys.heads), hidden,
                       config.query_key_value_bias);
    } else {
        map(in_layer.query, 0, query_maps_, keys.heads);
    }
    map(is_cross() ? in_layer.cross_key : in_layer.key, queries, key_maps_, keys.key_value_heads);
    map(is_cross() ? in_layer.cross_value : in_layer.value, queries + key_maps_, value_maps_, keys.key_value_heads);
    if (has_norms_) {
        query_norm_.declare(plan, names.layer_stem + (is_cross() ? in_layer.cross_query_norm : in_layer.query_norm),
                            size, false);
        key_norm_.declare(plan, names.layer_stem + (is_cross() ? in_layer.cross_key_norm : in_layer.key_norm), size,
                          false);
    }
    if (!embeds_heads()) return;
    const auto embedding = [&](at::Tensor* into, const char* name) {
        plan.want_number(into, names.layer_stem + (is_cross() ? "cross_attn." : "self_attn.") + name,
                         {{heads_, keys.heads}, size}, kEmbeddingDeviation, model::Initial::drawn);
    };
    embedding(&query_embedding_, "q_head_embedding");
    embedding(&key_embedding_, "k_head_embedding");
    embedding(&value_embedding_, "v_head_embedding");
}

std::vector<Site> HeadVariantMixer::sites() const {
    Site site;
    site.heads = static_cast<std::int32_t>(query_heads_);
    site.key_value_heads = static_cast<std::int32_t>(key_value_heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.kind = is_cross() ? "cross" : "self";
    site.causal = rule_.causal;
    site.has_head_embeddings = embeds_heads();
    return {site};
}

at::Tensor HeadVariantMixer::of_heads(const at::Tensor& shared, const at::Tensor& embedding) const {
    if (!embeds_heads()) return shared;
    return type_ == &kHeadEmbeddingAdd ? shared + embedding : shared * (embedding + 1);
}

at::Tensor HeadVariantMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const auto mapped = [&](const model::Linear& map, const at::Tensor& x) {
        return map(x, context.cancellation).unflatten(2, {-1, head_size_});
    };
    at::Tensor all = mapped(is_cross() ? query_ : maps_, normed);
    at::Tensor query = of_heads(all.narrow(2, 0, query_maps_), query_embedding_);
    if (has_norms_) query = query_norm_(query);
    auto* held = dynamic_cast<KeyValueCache*>(cache);
    const StackContext memory = context.of_memory();
    const auto held_value = [&](const at::Tensor& key) { return value_maps_ > 0 ? swapped(held->value()) : key; };
    const bool known = is_cross() && held && !held->empty();
    at::Tensor key, value;
    if (known) {
        key = swapped(held->key());
        value = held_value(key);
    } else {
        if (is_cross() && !context.memory.defined()) {
            throw Error(ErrorCode::usage, "cross-attention", "expected what the encoder returned, or a cache of it",
                        "found neither");
        }
        const at::Tensor& read = is_cross() ? context.memory : normed;
        if (is_cross() && key_maps_ > 0) all = mapped(maps_, read);
        const std::int64_t first = is_cross() ? 0 : query_maps_;
        key = key_maps_ > 0 ? all.narrow(2, first, key_maps_) : read.unflatten(2, {heads_, head_size_});
        value = value_maps_ > 0 ? all.narrow(2, first + key_maps_, value_maps_) : key;
    }
    const auto finished_key = [&](const at::Tensor& shared) {
        const at::Tensor keys = of_heads(shared, key_embedding_);
        return has_norms_ ? key_norm_(keys) : keys;
    };
    if (embeds_heads() && context.wants("head_embeddings"))
        context.announce("head_embeddings", at::stack({query_embedding_, key_embedding_, value_embedding_}));
    query = swapped(context.pass(model::Point::query, swapped(query)));
    if (context.wants("key")) context.announce("key", swapped(finished_key(key)));
    if (context.wants("value")) context.announce("value", swapped(of_heads(value, value_embedding_)));
    // A cache holds keys and values before what each head does to them.
    const StackContext& of_keys = is_cross() ? memory : context;
    const bool edits = !known && (context.edits(model::Point::key) || context.edits(model::Point::value));
    if (edits && held && (embeds_heads() || has_norms_ || value_maps_ == 0))
        throw Error(ErrorCode::unsupported, "layer " + std::to_string(context.layer.value),
                    "expected no edits of keys and values of " + name() + " with a cache", "found some");
    const auto edit = [&] {
        key = swapped(of_keys.edited(model::Point::key, swapped(key)));
        value = swapped(of_keys.edited(model::Point::value, swapped(value)));
    };
    if (edits && held) edit();
    if (held && !known) {
        held->append(swapped(key), swapped(value_maps_ > 0 ? value : value.narrow(3, 0, 0)));
        key = swapped(held->key());
        value = held_value(key);
    }
    key = finished_key(key);
    value = of_heads(value, value_embedding_);
    if (edits && !held) edit();
    if (context.rotary && !is_cross()) {
        const model::RotaryTable& own = *context.rotation;
        const std::int64_t length = key.size(1);
        query = context.rotary->rotate(query, own);
        key = context.rotary->rotate(key, length == own.cosine.size(0) ? own
                                          : context.history_rotation
                                              ? *context.history_rotation
                                              : context.rotary->table(0, length, own.cosine.scalar_type()));
        context.announce("query_rotated", swapped(query));
        context.announce("key_rotated", swapped(key.narrow(1, context.first_position, normed.size(1))));
    }
    kernels::ScoreRule rule = rule_;
    if (!is_cross()) rule.query_offset = context.first_position;
    if (context.lengths) rule.query_length = *context.lengths;
    if (const auto* keys = is_cross() ? context.memory_lengths : context.lengths) rule.key_length = *keys;
    if (query_heads_ == heads_)
        return attend(swapped(query), swapped(key), swapped(value), rule, context.site, context);
    // Factors on all copies of the one head's output.
    StackContext own = context;
    at::Tensor folded;
    if (context.probe && context.output_projection) {
        folded = context.output_projection->unflatten(1, {heads_, head_size_}).sum(1);
        own.output_projection = &folded;
    }
    return attend(swapped(query), swapped(key), swapped(value), rule, context.site, own).repeat({1, 1, heads_});
}

std::optional<HeadMaps> HeadVariantMixer::head_maps() const {
    if (query_heads_ != heads_) return std::nullopt;
    const auto by_map = [this](const at::Tensor& weight) { return weight.t().unflatten(1, {-1, head_size_}); };
    at::Tensor all;  // [d, maps, size]; cross-attention of el_att has no such map
    if (maps_.weight.defined()) all = by_map(maps_.weight);
    const at::Tensor queries = is_cross() ? by_map(query_.weight) : all.narrow(1, 0, query_maps_);
    const std::int64_t first = is_cross() ? 0 : query_maps_;
    const auto of_each = [this](const at::Tensor& shared, const at::Tensor& embedding) {
        if (!embeds_heads()) return shared.transpose(0, 1);
        const at::Tensor own = type_ == &kHeadEmbeddingMul ? shared * (embedding + 1) : shared.expand({-1, heads_, -1});
        return own.transpose(0, 1);
    };
    // el_att: a head's keys and values are its part of the input.
    const at::Tensor key = key_maps_ > 0 ? all.narrow(1, first, key_maps_)
                                         : at::eye(heads_ * head_size_, queries.options()).unflatten(1, {heads_, -1});
    const at::Tensor value = value_maps_ > 0 ? all.narrow(1, first + key_maps_, value_maps_) : key;
    at::Tensor bias;  // added to the values, [G, size]
    if (maps_.bias.defined() && key_maps_ > 0) {
        const std::int64_t row = value_maps_ > 0 ? first + key_maps_ : first;
        bias = maps_.bias.unflatten(0, {-1, head_size_}).narrow(0, row, value_maps_ > 0 ? value_maps_ : key_maps_);
    }
    if (embeds_heads() && bias.defined()) bias = of_heads(bias, value_embedding_);
    if (type_ == &kHeadEmbeddingAdd && !bias.defined()) bias = value_embedding_;
    HeadMaps maps{
        of_each(queries, query_embedding_), of_each(key, key_embedding_), of_each(value, value_embedding_), {}, bias};
    const auto gained = [](const model::Norm& norm, const at::Tensor& map) -> at::Tensor {
        if (!norm.weight.defined()) return map;
        return (norm.kind == model::NormKind::layer ? map - map.mean(2, true) : map) * norm.gain();
    };
    maps.query = gained(query_norm_, maps.query);
    maps.key = gained(key_norm_, maps.key);
    return maps;
}

std::unique_ptr<MixerCache> HeadVariantMixer::new_cache() const {
    return std::make_unique<KeyValueCache>(is_cross());
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/linear/mamba2.h"

#include <cmath>
#include <iterator>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>

#include "core/base/error.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/types/state_sizes.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"

namespace headscope::mixers {
namespace {

at::Tensor by_head(const at::Tensor& rows, std::int64_t heads) {
    return rows.unflatten(2, {heads, -1}).transpose(1, 2);
}

}  // namespace

Mamba2Mixer::Mamba2Mixer(const model::ModelConfig& config) : choices_(config.state_space) {
    const StateSizes sizes = state_sizes(kMamba2, config.mixer_options, config.heads, config.head_size);
    check_state_sizes(kMamba2, sizes);
    heads_ = sizes.heads;
    head_size_ = std::llround(sizes.value_size);
    state_size_ = sizes.key_size;
    groups_ = sizes.groups;
    taps_count_ = sizes.taps;
    if (heads_ % groups_ != 0) {
        throw Error(ErrorCode::mismatch, "mixers.mamba2.num_groups",
                    "expected a divisor of num_heads " + std::to_string(heads_), "found " + std::to_string(groups_));
    }
}

void Mamba2Mixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem, convolution = stem + own.input_taps;
    const model::Dimension heads{heads_, own.keys.heads}, inner{this->inner(), own.keys.inner};
    const model::Dimension channels{this->channels(), inner.keys + " + " + own.keys.groups};
    projection_.declare(
        plan, stem + own.input,
        {inner.size + channels.size + heads_, "2 * " + inner.keys + " + " + own.keys.groups + " + " + heads.keys},
        {plan.config().hidden, plan.keys().hidden}, choices_.projection_bias);
    if (taps_count_ > 0) {
        plan.want(&taps_, {convolution + ".weight"}, {channels, {1, "one"}, {taps_count_, own.keys.taps}});
        if (choices_.taps_bias) plan.want(&taps_bias_, {convolution + ".bias"}, {channels});
    }
    plan.want(&rate_log_, {stem + own.rate_log}, {heads}, model::Initial::rate_log_from_1);
    plan.want_number(&direct_, stem + own.direct, {choices_.direct_by_number ? inner : heads}, 1.0,
                     model::Initial::number);
    plan.want(&step_bias_, {stem + own.step_bias}, {heads}, model::Initial::step_bias);
    if (choices_.normed) norm_.declare_recurrent(plan, stem + own.gated_norm, inner);
}

std::vector<Site> Mamba2Mixer::sites() const {
    Site site;
    site.heads = static_cast<std::int32_t>(heads_);
    site.key_value_heads = static_cast<std::int32_t>(groups_);
    site.key_size = static_cast<std::int32_t>(state_size_);
    site.value_size = static_cast<std::int32_t>(head_size_);
    site.has_matrix = false;
    site.has_implicit = !choices_.direct_by_number;
    return {site};
}

at::Tensor Mamba2Mixer::step(const at::Tensor& logits) const {
    const at::Tensor step = at::softplus(at_least_float(logits) + at_least_float(step_bias_));
    return choices_.limits_step() ? step.clamp(choices_.least_step, choices_.most_step) : step;
}

at::Tensor Mamba2Mixer::normal(const at::Tensor& x) const {
    if (!choices_.normed) return x;
    if (groups_ == 1) return norm_(x);
    model::Norm unit = norm_;
    unit.weight = at::Tensor();
    unit.affine = false;
    return unit(x.unflatten(2, {groups_, -1})).flatten(2) * norm_.weight;
}

at::Tensor Mamba2Mixer::gated(const at::Tensor& y, const at::Tensor& z) const {
    return choices_.norm_first ? normal(y) * at::silu(z) : normal(y * at::silu(z));
}

at::Tensor Mamba2Mixer::projected(const at::Tensor& normed, const Cancellation* cancellation) const {
    const at::Tensor rows = projection_(normed, cancellation);
    if (choices_.factors.empty()) return rows;
    const std::int64_t shared = groups_ * state_size_, sizes[] = {inner(), inner(), shared, shared, heads_};
    std::vector<at::Tensor> factors;
    for (std::size_t part = 0; part < std::size(sizes); ++part)
        factors.push_back(at::full({sizes[part]}, choices_.factors.at(part), rows.options()));
    return rows * at::cat(factors);
}

at::Tensor Mamba2Mixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    const auto [z, others] = model::split_heads(projected(normed, context.cancellation), inner());
    const auto [before, logits] = model::split_heads(others, channels());
    const at::Tensor mixed =
        taps_.defined() ? short_convolution(before, taps_.select(1, 0), taps_bias_, held ? &held->before : nullptr)
                        : at::silu(before);
    const auto [x, shared] = model::split_heads(mixed, inner());
    const auto [b, c] = model::split_heads(shared, groups_ * state_size_);
    const at::Tensor dt = step(logits);
    Recurrence what;
    what.query = context.pass(model::Point::query, by_head(c, groups_));
    what.key = context.pass(model::Point::key, by_head(b, groups_));
    what.value = context.pass(model::Point::value, by_head(x, heads_));
    what.write = dt.transpose(1, 2);
    what.log_decay = (dt * -at_least_float(rate_log_).exp()).transpose(1, 2);
    what.rule.delta = false;
    what.direct = direct_;
    StackContext own = context;
    own.output_projection = nullptr;  // the norm lies between
    return gated(recur(what, held ? &held->state : nullptr, context.site, own), z);
}

std::unique_ptr<MixerCache> Mamba2Mixer::new_cache() const {
    return std::make_unique<DeltaCache>();
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/delta_parts.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>

#include "core/base/error.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/types/gated_deltanet.h"
#include "core/model/tensor_plan.h"

namespace headscope::mixers {
namespace {

at::Tensor widened(const at::Tensor& x) {
    return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

}  // namespace

DeltaSizes::DeltaSizes(const MixerType& type, const model::ModelConfig& config) {
    const auto& options = config.mixer_options;
    const auto whole = [&](const MixerOption& option, std::int64_t otherwise) {
        const auto said = options.get<std::int64_t>(type, option.key);
        return said > 0 ? said : otherwise;
    };
    key_heads = whole(kOwnHeads, config.heads);
    heads = whole(kOwnValueHeads, key_heads);
    key_size = whole(kOwnKeySize, config.head_size);
    taps = whole(kTaps, 4);
    const double expanded = static_cast<double>(key_size) * options.get<double>(type, kExpandValue.key);
    value_size = std::llround(expanded);
    const std::string place = std::string("mixers.") + type.name;
    if (heads % key_heads != 0) {
        throw Error(ErrorCode::mismatch, place + ".num_value_heads",
                    "expected a multiple of num_heads " + std::to_string(key_heads), "found " + std::to_string(heads));
    }
    if (value_size < 1 || std::abs(expanded - static_cast<double>(value_size)) > 1e-3) {
        throw Error(ErrorCode::mismatch, place + ".expand_v",
                    "expected a value size (head_dim " + std::to_string(key_size) + " * expand_v) that is whole",
                    "found " + std::to_string(expanded));
    }
}

void DeltaParts::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem;
    const model::Dimension hidden{plan.config().hidden, plan.keys().hidden};
    const model::Dimension heads{sizes_.heads, "num_heads"}, taps{sizes_.taps, "conv_size"};
    const std::int64_t rows = 2 * sizes_.key_rows() + sizes_.value_rows();
    const auto part = [&](const std::string& name, const std::string& convolution, std::int64_t first,
                          std::int64_t count, const std::string& keys) {
        const model::Dimension out{count, keys};
        plan.want_rows(&query_key_value_.weight, stem + name + ".weight", {out, hidden}, first, rows);
        plan.want_rows(&taps_, stem + convolution + ".weight", {out, {1, "one"}, taps}, first, rows);
    };
    part(own.query, own.query_taps, 0, sizes_.key_rows(), "num_heads * head_dim");
    part(own.key, own.key_taps, sizes_.key_rows(), sizes_.key_rows(), "num_heads * head_dim");
    part(own.value, own.value_taps, 2 * sizes_.key_rows(), sizes_.value_rows(), "num_heads * head_dim * expand_v");
    write_.declare(plan, stem + own.write, heads, hidden, false);
    if (decays_) {
        decay_.declare(plan, stem + own.decay, heads, hidden, false);
        plan.want(&rate_log_, {stem + own.rate_log}, {heads}, model::Initial::rate_log);
        plan.want(&step_bias_, {stem + own.step_bias}, {heads}, model::Initial::step_bias);
    }
    if (gated_)
        gate_.declare(plan, stem + own.gate, {sizes_.value_rows(), "num_heads * head_dim * expand_v"}, hidden, false);
}

DeltaParts::Heads DeltaParts::heads(const at::Tensor& normed, at::Tensor* before,
                                    const Cancellation* cancellation) const {
    const at::Tensor all = short_convolution(query_key_value_(normed, cancellation), taps_.select(1, 0), {}, before);
    const auto part = [&](std::int64_t first, std::int64_t heads, std::int64_t size) {
        return all.narrow(2, first, heads * size).unflatten(2, {heads, size}).transpose(1, 2);
    };
    return {part(0, sizes_.key_heads, sizes_.key_size), part(sizes_.key_rows(), sizes_.key_heads, sizes_.key_size),
            part(2 * sizes_.key_rows(), sizes_.heads, sizes_.value_size)};
}

at::Tensor DeltaParts::write(const at::Tensor& normed) const {
    const at::Tensor share = at::sigmoid(widened(write_(normed))).transpose(1, 2);
    return negative_ ? share * 2 : share;
}

at::Tensor DeltaParts::log_decay(const at::Tensor& normed) const {
    if (!decays_) return {};
    const at::Tensor step = at::softplus(widened(decay_(normed)) + widened(step_bias_));
    return (step * -widened(rate_log_).exp()).transpose(1, 2);
}

at::Tensor DeltaParts::gate(const at::Tensor& normed, const Cancellation* cancellation) const {
    return gated_ ? at::silu(gate_(normed, cancellation)) : at::Tensor();
}

Site DeltaParts::site() const {
    Site site;
    site.heads = static_cast<std::int32_t>(sizes_.heads);
    site.key_value_heads = static_cast<std::int32_t>(sizes_.key_heads);
    site.key_size = static_cast<std::int32_t>(sizes_.key_size);
    site.value_size = static_cast<std::int32_t>(sizes_.value_size);
    site.has_matrix = false;
    site.has_implicit = true;
    return site;
}

at::Tensor unit_length(const at::Tensor& x) {
    const at::Tensor wide = widened(x);
    return (wide * ((wide * wide).sum(-1, true) + 1e-6).rsqrt()).to(x.scalar_type());
}

}  // namespace headscope::mixers

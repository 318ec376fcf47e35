// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/delta_parts.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/types/state_sizes.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"

namespace headscope::mixers {

at::Tensor at_least_float(const at::Tensor& x) {
    return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

std::int64_t DeltaCache::bytes() const {
    return state.bytes() + bytes_of(before);
}

std::unique_ptr<MixerCache> DeltaCache::clone() const {
    auto copy = std::make_unique<DeltaCache>();
    copy->state = state.clone();
    copy->before = copied(before);
    return copy;
}

std::unique_ptr<MixerCache> DeltaCache::chosen(const at::Tensor& sequences) const {
    auto copy = std::make_unique<DeltaCache>();
    copy->state = state.chosen(sequences);
    copy->before = of_sequences(before, sequences);
    return copy;
}

DeltaSizes::DeltaSizes(const MixerType& type, const model::ModelConfig& config) {
    const StateSizes said = state_sizes(type, config.mixer_options, config.heads, config.head_size);
    check_state_sizes(type, said);
    key_heads = said.query_heads;
    heads = said.heads;
    key_size = said.key_size;
    taps = said.taps;
    const std::int64_t shared = said.groups;
    sharing = key_heads / shared;
    const double expanded = said.value_size;
    value_size = std::llround(expanded);
    const std::string place = std::string("mixers.") + type.name;
    if (heads % key_heads != 0) {
        throw Error(ErrorCode::mismatch, place + ".num_value_heads",
                    "expected a multiple of num_heads " + std::to_string(key_heads), "found " + std::to_string(heads));
    }
    if (key_heads % shared != 0) {
        throw Error(ErrorCode::mismatch, place + ".num_key_value_heads",
                    "expected a divisor of num_heads " + std::to_string(key_heads), "found " + std::to_string(shared));
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
    const model::Dimension heads{sizes_.heads, own.keys.heads};
    declare_maps(plan, names);
    if (sizes_.taps > 0) declare_taps(plan, names);
    if (!own.write_decay.empty()) {
        write_decay_.declare(plan, stem + own.write_decay, {2 * sizes_.heads, "2 * " + own.keys.heads}, hidden, false);
    } else {
        if (writes_) write_.declare(plan, stem + own.write, heads, hidden, false);
        if (decays_) decay_.declare(plan, stem + own.decay, heads, hidden, false);
    }
    if (!decays_) return;
    plan.want(&rate_log_, {stem + own.rate_log}, {heads}, model::Initial::rate_log);
    plan.want(&step_bias_, {stem + own.step_bias}, {heads}, model::Initial::step_bias);
}

void DeltaParts::declare_maps(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem;
    const model::Dimension hidden{plan.config().hidden, plan.keys().hidden};
    const model::Dimension values{sizes_.value_rows(), own.keys.value_rows};
    const std::int64_t rows = sizes_.query_key_value_rows();
    by_key_head_ = !own.query_key_value_gate.empty();
    if (by_key_head_) {
        query_key_value_.declare(plan, stem + own.query_key_value_gate,
                                 {rows + sizes_.value_rows(), "2 * " + own.keys.key_rows + " + 2 * " + values.keys},
                                 hidden, false);
        return;
    }
    if (gated_) gate_.declare(plan, stem + own.gate, values, hidden, false);
    if (!own.query_key_value_by_head.empty()) {
        const model::Dimension all{rows, "3 * " + own.keys.key_rows};
        plan.want_by_head(&query_key_value_.weight, stem + own.query_key_value_by_head + ".weight", {all, hidden},
                          sizes_.heads, 3);
        return;
    }
    if (!own.query_key_value.empty()) {
        query_key_value_.declare(plan, stem + own.query_key_value,
                                 {rows, "2 * " + own.keys.key_rows + " + " + values.keys}, hidden, false);
        return;
    }
    for (const Piece& piece : pieces(own)) {
        plan.want_rows(&query_key_value_.weight, stem + piece.map + ".weight", {piece.rows, hidden}, piece.first, rows);
    }
}

void DeltaParts::declare_taps(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem, all = stem + own.taps + ".weight";
    const model::Dimension one{1, "one"}, taps{sizes_.taps, own.keys.taps};
    const std::int64_t rows = sizes_.query_key_value_rows();
    if (!own.taps.empty() && plan.has(all)) {
        plan.want(&taps_, {all}, {{rows, "2 * " + own.keys.key_rows + " + " + own.keys.value_rows}, one, taps});
        return;
    }
    // transformers cuts one tensor of all rows into thirds where it writes three, whatever is whose.
    const std::int64_t third = (rows + 2) / 3;
    const bool thirds = plan.rows_in_file(stem + own.query_taps + ".weight") == third &&
                        plan.rows_in_file(stem + own.value_taps + ".weight") == rows - 2 * third;
    std::int64_t first = 0;
    for (const Piece& piece : pieces(own)) {
        const std::int64_t part = std::min(third, rows - first);
        const model::Dimension cut{part, "a third of 2 * " + own.keys.key_rows + " + " + own.keys.value_rows};
        plan.want_rows(&taps_, stem + piece.taps + ".weight", {thirds ? cut : piece.rows, one, taps},
                       thirds ? first : piece.first, rows);
        first += part;
    }
}

std::array<DeltaParts::Piece, 3> DeltaParts::pieces(const model::RecurrentNames& own) const {
    const std::int64_t query = sizes_.key_rows(), key = query / sizes_.sharing;
    const std::int64_t value = sizes_.value_rows() / sizes_.sharing;
    return {{{own.query, own.query_taps, 0, {query, own.keys.key_rows}},
             {own.key, own.key_taps, query, {key, own.keys.key_rows}},
             {own.value, own.value_taps, query + key, {value, own.keys.value_rows}}}};
}

DeltaParts::Heads DeltaParts::heads(const at::Tensor& normed, at::Tensor* before,
                                    const Cancellation* cancellation) const {
    at::Tensor all = projected(normed, cancellation), gate;
    if (by_key_head_) {
        const at::Tensor groups = all.unflatten(2, {sizes_.key_heads, -1});
        const std::int64_t key = sizes_.key_size, values = sizes_.value_rows() / sizes_.key_heads;
        const auto of_all = [&](std::int64_t first, std::int64_t count) {
            return groups.narrow(3, first, count).flatten(2);
        };
        all = at::cat({of_all(0, key), of_all(key, key), of_all(2 * key, values)}, 2);
        gate = of_all(2 * key + values, values);
    }
    Heads made = convolved(all, before);
    made.gate = gate;
    return made;
}

DeltaParts::Heads DeltaParts::split(const at::Tensor& projected) const {
    Heads made;
    const auto part = [](const at::Tensor& rows, std::int64_t heads) {
        return rows.unflatten(2, {heads, rows.size(2) / heads}).transpose(1, 2);
    };
    const std::int64_t key_heads = sizes_.key_heads / sizes_.sharing;
    const auto [query, others] = model::split_heads(projected, sizes_.key_rows());
    const auto [key, value] = model::split_heads(others, key_heads * sizes_.key_size);
    made.query = part(query, sizes_.key_heads);
    made.key = part(key, key_heads);
    made.value = part(value, sizes_.heads / sizes_.sharing);
    return made;
}

DeltaParts::Heads DeltaParts::convolved(const at::Tensor& projected, at::Tensor* before) const {
    at::Tensor all = projected;
    if (taps_.defined()) {
        all = short_convolution(all, taps_.select(1, 0), {}, before, activation_ != DeltaActivation::all);
    } else if (activation_ == DeltaActivation::all) {
        all = at::silu(all);
    }
    Heads made = split(all);
    if (activation_ == DeltaActivation::value) made.value = at::silu(made.value);
    if (sizes_.sharing == 1) return made;
    made.key = made.key.repeat_interleave(sizes_.sharing, 1);
    made.value = made.value.repeat_interleave(sizes_.sharing, 1);
    return made;
}

DeltaParts::Rates DeltaParts::rates(const at::Tensor& normed) const {
    const at::Tensor both = write_decay_.weight.defined() ? write_decay_(normed) : at::Tensor();
    return {write(normed, both), log_decay(normed, both)};
}

at::Tensor DeltaParts::write(const at::Tensor& normed, const at::Tensor& both) const {
    if (!writes_ && !negative_) return {};
    const auto logits = [&] { return both.defined() ? of_values(both, 0) : write_(normed); };
    const at::Tensor share = writes_ ? at::sigmoid(at_least_float(logits())).transpose(1, 2)
                                     : at::full({normed.size(0), sizes_.heads, normed.size(1)}, 1.0,
                                                normed.options().dtype(at_least_float(normed).scalar_type()));
    return negative_ ? share * 2 : share;
}

at::Tensor DeltaParts::log_decay(const at::Tensor& normed, const at::Tensor& both) const {
    if (!decays_) return {};
    const at::Tensor logits = both.defined() ? of_values(both, 1) : decay_(normed);
    const at::Tensor step = at::softplus(at_least_float(logits) + at_least_float(step_bias_));
    return (step * -at_least_float(rate_log_).exp()).transpose(1, 2);
}

at::Tensor DeltaParts::of_values(const at::Tensor& logits, std::int64_t which) const {
    return logits.unflatten(2, {sizes_.key_heads, 2, -1}).select(3, which).flatten(2);
}

at::Tensor DeltaParts::gate(const at::Tensor& normed, const Cancellation* cancellation, const at::Tensor& made) const {
    if (!made.defined() && !gated_) return {};
    const at::Tensor logits = made.defined() ? made : gate_(normed, cancellation);
    return sigmoid_ ? at::sigmoid(logits) : at::silu(logits);
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
    // x / sqrt(sum x^2 + 1e-6) is the RMS norm with a gain of 1 / sqrt(size), for which training has one kernel.
    if (model::fused(x)) {
        const auto size = static_cast<double>(x.size(-1));
        return model::trained_rms_norm(x, at::zeros({x.size(-1)}, x.options()), 1e-6 / size, 1.0 / std::sqrt(size));
    }
    const at::Tensor wide = at_least_float(x);
    return (wide * ((wide * wide).sum(-1, true) + 1e-6).rsqrt()).to(x.scalar_type());
}

}  // namespace headscope::mixers

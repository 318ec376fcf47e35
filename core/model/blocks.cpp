// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/blocks.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "core/model/wide_product.h"

namespace headscope::model {

namespace {

/// f(x) by rows, in chunks of about 60 GFLOP: a third of a second on two cores, and from 256 to 4096 rows, where matrix
/// products still run at full speed. `weights`: elements of the matrices that each row meets; `size`: of a row of f(x).
template <class F>
at::Tensor by_rows(const at::Tensor& x, std::int64_t weights, std::int64_t size, const Cancellation* cancellation,
                   F f) {
    const std::int64_t rows = x.numel() / x.size(-1);
    const std::int64_t step = std::clamp<std::int64_t>(30'000'000'000 / weights, 256, 4096);
    if (rows <= step || recorded(x)) return f(x);
    const at::Tensor flat = x.reshape({rows, x.size(-1)});
    const at::Tensor result = at::empty({rows, size}, x.options());
    for (std::int64_t first = 0; first < rows; first += step) {
        if (cancellation) cancellation->check();
        const std::int64_t count = std::min(step, rows - first);
        result.narrow(0, first, count).copy_(f(flat.narrow(0, first, count)));
    }
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = size;
    return result.view(shape);
}

}  // namespace

at::Tensor Linear::operator()(const at::Tensor& x, const Cancellation* cancellation) const {
    if (packed) return bias.defined() ? (*packed)(x) + bias : (*packed)(x);
    if (fused_on_processor(x) || fused_on_processor(weight)) return trained_linear(x, weight, bias);
    return by_rows(x, weight.numel(), weight.size(0), cancellation,
                   [this](const at::Tensor& rows) { return linear_map(rows, weight, bias); });
}

at::Tensor Norm::gain() const {
    return gain_offset != 0 && weight.defined() ? weight + gain_offset : weight;
}

at::Tensor Norm::operator()(const at::Tensor& x) const {
    if (affine && !weight.defined()) return x;
    if (kind == NormKind::layer) return at::layer_norm(x, {x.size(-1)}, gain(), bias, epsilon);
    if (weight.defined() && (fused(x) || fused(weight))) return trained_rms_norm(x, weight, epsilon, gain_offset);
    // at::rms_norm of LibTorch 2.14 is not fused on processors: 22 ms for [2048, 768] on two cores where this takes
    // 0.2 ms. As in the reference, bfloat16 is normalised in float32 and rounded before the gain.
    const at::Tensor wide = x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
    const at::Tensor length = at::linalg_vector_norm(wide, 2, at::IntArrayRef{-1}, true);
    const at::Tensor scale = (length * length / static_cast<double>(x.size(-1)) + epsilon).rsqrt();
    if (!weight.defined()) return (wide * scale).to(x.scalar_type());
    if (gain_offset != 0) return (wide * scale * (weight.to(wide.scalar_type()) + gain_offset)).to(x.scalar_type());
    return (wide * scale).to(x.scalar_type()) * weight;
}

void Norm::declare(TensorPlan& plan, const std::string& stem, const Dimension& size, bool old_names) {
    kind = plan.config().norm;
    epsilon = plan.config().norm_epsilon;
    gain_offset = plan.config().norm_gain_offset;
    affine = plan.config().norm_affine;
    if (!affine) return;
    const auto names = [&](const char* name, const char* old_name) {
        std::vector<std::string> list{stem + "." + name};
        if (old_names) list.push_back(stem + "." + old_name);
        return list;
    };
    plan.want(&weight, names("weight", "gamma"), {size}, Initial::gain);
    if (kind == NormKind::layer && plan.config().norm_bias) plan.want(&bias, names("bias", "beta"), {size});
}

void Norm::declare_recurrent(TensorPlan& plan, const std::string& stem, const Dimension& size) {
    const ModelConfig& config = plan.config();
    kind = NormKind::rms;
    epsilon = config.recurrent_norm_epsilon > 0 ? config.recurrent_norm_epsilon : config.norm_epsilon;
    plan.want_number(&weight, stem + ".weight", {size}, 1.0, Initial::number);
}

at::Tensor activate(Activation activation, at::Tensor x) {
    const bool in_place = !recorded(x);
    switch (activation) {
        case Activation::gelu:
            return in_place ? at::gelu_(x) : at::gelu(x);
        case Activation::gelu_tanh:
            return in_place ? at::gelu_(x, "tanh") : at::gelu(x, "tanh");
        case Activation::gelu_quick:
            return x * at::sigmoid(1.702 * x);
        case Activation::silu:
            return in_place ? at::silu_(x) : at::silu(x);
        case Activation::relu:
            return in_place ? at::relu_(x) : at::relu(x);
        case Activation::relu_squared:
            return at::relu(x).square();
        case Activation::tanh:
            return in_place ? at::tanh_(x) : at::tanh(x);
        case Activation::xielu:  // whose numbers are a feed-forward's (Xielu)
            break;
    }
    return x;
}

at::Tensor Xielu::operator()(const at::Tensor& x) const {
    const at::Tensor slope = beta.defined() ? beta : at::scalar_tensor(0.5, x.options());
    const at::Tensor highest = epsilon.defined() ? epsilon : at::scalar_tensor(-1e-6, x.options());
    const at::Tensor above = at::softplus(alpha_positive) * x * x;
    const at::Tensor below = (at::expm1(at::minimum(x, highest)) - x) * (slope + at::softplus(alpha_negative));
    return at::where(x > 0, above, below) + slope * x;
}

void Xielu::declare(TensorPlan& plan, const std::string& stem) {
    const Dimension one{1, "one number"};
    plan.want_number(&alpha_positive, stem + ".alpha_p", {one}, std::log(std::expm1(0.8)), Initial::number);
    plan.want_number(&alpha_negative, stem + ".alpha_n", {one}, std::log(std::expm1(0.3)), Initial::number);
    if (plan.has(stem + ".beta")) plan.want_number(&beta, stem + ".beta", {}, 0.5, Initial::fixed);
    if (plan.has(stem + ".eps")) plan.want_number(&epsilon, stem + ".eps", {}, -1e-6, Initial::fixed);
}

at::Tensor FeedForward::operator()(const at::Tensor& x, const Cancellation* cancellation, Routing* taken) const {
    if (experts.per_token == 0) return plain(x, cancellation);
    const at::Tensor chosen = experts(x, cancellation, taken);
    if (!up.there()) return chosen;
    const at::Tensor shared = plain(x, cancellation);
    return chosen + (shared_share.there() ? at::sigmoid(shared_share(x)) * shared : shared);
}

at::Tensor FeedForward::plain(const at::Tensor& x, const Cancellation* cancellation) const {
    const auto apply = [this](const at::Tensor& rows) {
        const at::Tensor inner = up(rows);
        if (activation == Activation::xielu) return down(xielu(inner));
        if (!gated) return down(activate(activation, inner));
        if (activation == Activation::silu && gate_scale == 1 && fused(inner)) return down(trained_gated_silu(inner));
        const std::int64_t size = inner.size(-1) / 2;
        const at::Tensor logits = inner.narrow(-1, 0, size);
        at::Tensor gate = activate(activation, gate_scale == 1 ? logits : logits * gate_scale);
        const at::Tensor other = inner.narrow(-1, size, size);
        return down(recorded(gate) ? gate * other : gate.mul_(other));
    };
    return by_rows(x, up.elements() + down.elements(), down.outputs(), cancellation, apply);
}

void FeedForward::declare(TensorPlan& plan, const TensorNames& names, std::int64_t layer) {
    const ModelConfig& config = plan.config();
    if (!config.has_experts(layer))
        return declare_plain(plan, names, names.in_layer, {config.feed_forward, plan.keys().feed_forward});
    experts.declare(plan, names);
    if (config.shared_expert == 0) return;
    LayerNames shared;
    shared.gate = names.in_layer.shared_gate;
    shared.up = names.in_layer.shared_up;
    shared.gate_up = names.in_layer.shared_gate_up;
    shared.down = names.in_layer.shared_down;
    declare_plain(plan, names, shared, {config.shared_expert, plan.keys().shared_expert});
    if (config.shared_expert_gated) {
        shared_share.declare(plan, names.layer_stem + names.in_layer.shared_share, {1, "one number"},
                             {config.hidden, plan.keys().hidden}, false);
    }
}

void FeedForward::declare_plain(TensorPlan& plan, const TensorNames& names, const LayerNames& parts,
                                const Dimension& inner) {
    const ModelConfig& config = plan.config();
    const Dimension hidden{config.hidden, plan.keys().hidden};
    const std::string gate_stem = names.layer_stem + parts.gate;
    const std::string up_stem = names.layer_stem + parts.up;
    activation = config.activation;
    gated = config.gated_feed_forward;
    gate_scale = config.gate_scale;
    if (gated && !parts.gate_up.empty()) {
        up.declare_for_products(plan, names.layer_stem + parts.gate_up, {2 * inner.size, "2 * " + inner.keys}, hidden,
                                config.feed_forward_bias);
    } else if (gated) {
        const std::int64_t rows = 2 * inner.size;
        plan.want_rows(&up.weight, gate_stem + ".weight", {inner, hidden}, 0, rows);
        plan.allow_product(&up.packed);
        plan.want_rows(&up.weight, up_stem + ".weight", {inner, hidden}, inner.size, rows);
        plan.allow_product(&up.packed);
        if (config.feed_forward_bias) {
            plan.want_rows(&up.bias, gate_stem + ".bias", {inner}, 0, rows);
            plan.want_rows(&up.bias, up_stem + ".bias", {inner}, inner.size, rows);
        }
    } else {
        up.declare_for_products(plan, up_stem, inner, hidden, config.feed_forward_bias);
    }
    down.declare_for_products(plan, names.layer_stem + parts.down, hidden, inner, config.feed_forward_bias);
    if (activation == Activation::xielu) xielu.declare(plan, names.layer_stem + parts.activation);
}

at::Tensor Embedding::made_rows(const at::Tensor& numbers, std::int64_t size) const {
    const at::Tensor number = numbers.unsqueeze(-1);
    if (!fairseq_) {
        // The sines get the odd one of an odd size. As numpy has it: in float64, and rounded to float32.
        const at::Tensor step =
            at::arange(0, size, 2, numbers.options().dtype(at::kDouble)) / static_cast<double>(size);
        const at::Tensor angle = number.to(at::kDouble) / at::pow(10000.0, step);
        if (interleaved_) return at::stack({angle.sin(), angle.cos()}, -1).flatten(-2).narrow(-1, 0, size);
        return at::cat({angle.sin(), angle.cos().narrow(-1, 0, size / 2)}, -1).to(at::kFloat);
    }
    // In float32 from the first step on; an odd size ends in a zero.
    const std::int64_t half = size / 2;
    const at::Tensor index = at::arange(half, number.options().dtype(at::kFloat));
    const at::Tensor frequency = (index * (-std::log(10000.0) / static_cast<double>(half - 1))).exp();
    const at::Tensor angle = number.to(at::kFloat) * frequency;
    const at::Tensor rows = at::constant_pad_nd(at::cat({angle.sin(), angle.cos()}, -1), {0, size % 2});
    return rows * number.ge(position_offset_).to(at::kFloat);  // the row of padding is zero
}

at::Tensor Embedding::position_rows(const at::Tensor& ids, std::int64_t first_position) const {
    const std::int64_t first = first_position + position_offset_, length = ids.size(1);
    const auto rows = [this](const at::Tensor& numbers) {
        return made_ ? made_rows(numbers, columns()).to(type()) : at::embedding(positions, numbers);
    };
    if (position_padding_ < 0)
        return made_ ? rows(at::arange(first, first + length, ids.options())) : positions.narrow(0, first, length);
    const at::Tensor counted = ids.ne(position_padding_).to(at::kLong);
    return rows((counted.cumsum(1) + first_position) * counted + (position_offset_ - 1));
}

/// As ESM: `dropped_token_` has no embedding, and the others are scaled as dropout would, by the share of tokens that
/// was left in training over the share that is left here.
at::Tensor Embedding::without_dropped(const at::Tensor& x, const Batch& batch) const {
    constexpr double left_in_training = 1 - 0.15 * 0.8;
    const at::Tensor dropped = batch.ids.eq(dropped_token_);
    const std::vector<std::int64_t> lengths =
        batch.lengths.empty() ? std::vector<std::int64_t>(1, batch.ids.size(1)) : batch.lengths;
    const at::Tensor left = 1 - dropped.sum(1).to(at::kFloat) / at::tensor(lengths, dropped.options().dtype(at::kLong));
    const at::Tensor kept = x.masked_fill(dropped.unsqueeze(2), 0) * left_in_training;
    return (kept / left.view({-1, 1, 1})).to(x.scalar_type());
}

at::ScalarType Embedding::type() const {
    return hashed.there() ? hashed.special.scalar_type() : stored ? stored->type() : tokens.scalar_type();
}

std::int64_t Embedding::columns() const {
    return hashed.there() ? hashed.special.size(1) : stored ? stored->columns() : tokens.size(1);
}

std::int64_t Embedding::rows() const {
    return stored ? stored->size() : tokens.size(0);
}

at::Tensor Embedding::operator()(const Batch& batch, std::int64_t first_position,
                                 const TrainingForward* training) const {
    at::Tensor x = hashed.there()               ? hashed(batch, training)
                   : clusters.there()           ? clusters.rows_of(batch.ids)
                   : stored                     ? stored->rows(batch.ids)
                   : fused_on_processor(tokens) ? trained_embedding(tokens, batch.ids)
                                                : at::embedding(tokens, batch.ids);
    // As in the reference, the scale is rounded to the type of the weights.
    if (scale_ != 1) x = x * at::scalar_tensor(scale_, x.options());
    if (dropped_token_ >= 0) x = without_dropped(x, batch);
    if (projection.weight.defined() && !sum_projected_) x = projection(x);
    if (token_types.defined()) {
        x = x +
            (batch.token_types.defined() ? at::embedding(token_types, batch.token_types) : token_types.select(0, 0));
    }
    if (norm_first_) x = norm(x);
    if (positions.defined() || made_) x = x + position_rows(batch.ids, first_position);
    if (!norm_first_) x = norm(x);
    return sum_projected_ ? projection(x) : x;
}

void Embedding::declare(TensorPlan& plan, const TensorNames& names) {
    const ModelConfig& config = plan.config();
    const Dimension hidden{config.hidden, plan.keys().hidden};
    const Dimension entry =
        config.embedding_size > 0 ? Dimension{config.embedding_size, plan.keys().embedding} : hidden;
    const Dimension added = config.embedding_sum_projected ? entry : hidden;
    scale_ = config.embedding_scale;
    const std::size_t first = plan.wants().size();
    if (config.adaptive) {
        clusters.declare(plan, names.prefix + names.adaptive_embedding);
        return plan.count_as(TensorPlan::Part::embedding, first);
    }
    dropped_token_ = config.dropped_token;
    sum_projected_ = config.embedding_sum_projected;
    position_offset_ = config.position_offset;
    position_padding_ = config.position_padding;
    norm_first_ = config.embedding_norm_first;
    fairseq_ = config.fairseq_sinusoids;
    interleaved_ = config.interleaved_sinusoids;
    std::vector<std::string> tables{names.prefix + names.token_embedding + ".weight"};
    if (!names.shared_embedding.empty()) tables.push_back(names.prefix + names.shared_embedding + ".weight");
    if (!names.lone_embedding.empty()) tables.push_back(names.lone_embedding);
    // Without a file every name is there: two towers have one table.
    if (!plan.from_file() && !names.shared_embedding.empty()) std::swap(tables[0], tables[1]);
    hashed.declare(plan, names.prefix, hidden);
    const bool rows = config.hashed.kind == tokenizer::EmbeddingKind::emb;
    if (rows || config.hashed.is_table()) {
        plan.want(&tokens, tables, {{config.ids(), rows ? "embedding.rows + 5" : plan.keys().vocabulary}, entry});
        plan.allow_rows(&stored);
    }
    plan.count_as(TensorPlan::Part::embedding, first);
    const std::string table = names.prefix + names.position_embedding + ".weight";
    const bool sinusoidal = config.positions == PositionKind::sinusoidal;
    made_ = sinusoidal && (config.fairseq_sinusoids || !plan.from_file() || !plan.has(table));
    if (config.positions == PositionKind::learned || (sinusoidal && !made_)) {
        plan.want(&positions, {table}, {{config.position_offset + config.max_positions, plan.keys().positions}, added},
                  sinusoidal ? Initial::fixed : Initial::usual);
    }
    if (config.token_types > 0) {
        plan.want(&token_types, {names.prefix + names.token_type_embedding + ".weight"},
                  {{config.token_types, plan.keys().token_types}, added});
    }
    if (config.embedding_norm) norm.declare(plan, names.prefix + names.embedding_norm, added, names.old_norm_names);
    if (config.embedding_size > 0) {
        projection.declare(plan, names.prefix + names.embedding_projection, hidden, entry,
                           config.embedding_sum_projected);
    }
}

at::Tensor Head::before_vocabulary(const at::Tensor& rows) const {
    at::Tensor x = scale == 1 ? rows : rows * scale;
    if (projection.weight.defined()) x = projection(x);
    return transform.weight.defined() ? transform_norm(activate(activation, transform(x))) : x;
}

/// Large vocabularies come in chunks of words, so that a table in another type is never converted as a whole. The
/// chunks are the same wherever the table is, for the order of a product's sums may depend on its shape.
at::Tensor Head::entries(const at::Tensor& rows) const {
    constexpr std::int64_t chunk = 1 << 14;
    const std::int64_t all = stored ? stored->size() : vocabulary.weight.size(0);
    if (!stored && (all <= chunk || recorded(rows))) return vocabulary(rows);
    if (const PackedMatrix* product = stored ? stored->product() : nullptr; product && rows.size(0) <= kFewTokens)
        return vocabulary.bias.defined() ? (*product)(rows) + vocabulary.bias : (*product)(rows);
    const at::Tensor logits = at::empty({rows.size(0), all}, rows.options());
    for (std::int64_t first = 0; first < all; first += chunk) {
        const std::int64_t count = std::min(chunk, all - first);
        const Linear part{
            stored ? on_device(stored->rows(first, count), rows.device()) : vocabulary.weight.narrow(0, first, count),
            vocabulary.bias.defined() ? vocabulary.bias.narrow(0, first, count) : at::Tensor()};
        logits.narrow(1, first, count).copy_(part(rows));
    }
    return logits;
}

at::Tensor Head::operator()(const at::Tensor& rows) const {
    if (clusters.there()) return clusters(rows);
    at::Tensor x = entries(before_vocabulary(rows)).to(at::kFloat);
    if (logits_bias.defined()) x = x + logits_bias;
    return soft_cap > 0 ? (x / soft_cap).tanh() * soft_cap : x;
}

LossSum Head::loss(const at::Tensor& rows, const at::Tensor& targets, const HeadLossOptions& options) const {
    at::Tensor bias = vocabulary.bias;
    if (logits_bias.defined()) {
        const at::Tensor row = logits_bias.view({-1});
        bias = bias.defined() ? bias + row : row;
    }
    return head_loss(before_vocabulary(rows), {vocabulary.weight, bias, soft_cap}, targets, options);
}

at::Tensor Head::class_logits(const at::Tensor& rows) const {
    return vocabulary(before_vocabulary(rows));
}

void Head::declare(TensorPlan& plan, const TensorNames& names) {
    const ModelConfig& config = plan.config();
    if (names.head.empty()) {
        plan.note(config.head == HeadKind::none ? "no head: no logits" : "no head for the vocabulary: no logits");
        return;
    }
    if (config.adaptive) {
        clusters.declare(plan, names);
        there = clusters.there();
        return;
    }
    const Dimension hidden{config.hidden, plan.keys().hidden};
    const Dimension entries = config.has_classes() ? Dimension{config.classes, plan.keys().classes}
                                                   : Dimension{config.vocabulary, plan.keys().vocabulary};
    const bool small = config.embedding_size > 0 && !config.has_classes();
    const Dimension entry = small ? Dimension{config.embedding_size, plan.keys().embedding} : hidden;
    std::vector<std::string> needed;
    const bool old =
        !plan.has(names.head + ".weight") && !names.old_head.empty() && plan.has(names.old_head + ".weight");
    const std::string weight = (old ? names.old_head : names.head) + ".weight";
    if (!config.tied_head) needed.push_back(weight);
    if (config.head_transform) needed.push_back(names.head_transform + ".weight");
    if (config.head_bias) {
        const auto found = std::find_if(names.head_bias.begin(), names.head_bias.end(),
                                        [&plan](const std::string& tensor) { return plan.has(tensor); });
        needed.push_back(found == names.head_bias.end() ? names.head_bias.front() : *found);
    }
    for (const std::string& tensor : needed) {
        if (!plan.has(tensor)) plan.note_missing(tensor);
    }
    there = std::all_of(needed.begin(), needed.end(), [&plan](const std::string& tensor) { return plan.has(tensor); });
    if (!there) {
        plan.note(config.has_classes() ? "no head for classes in the file: no logits"
                                       : "no head for the vocabulary in the file: no logits");
        return;
    }
    activation = config.head_activation.value_or(config.activation);
    scale = config.head_scale;
    soft_cap = config.final_soft_cap;
    // A tied head that is in the file all the same is read: files whose two copies differ exist, and mean both.
    const bool shared_head = config.tied_head && (plan.shares_tied_head() || weight == names.lone_embedding);
    if (plan.has(weight) && !shared_head) {
        plan.want(&vocabulary.weight, {weight}, {entries, entry});
        plan.allow_rows(&stored);
    } else {
        // With two towers this is the shared table, of which the decoder may have a copy.
        const std::string shared = names.prefix + names.shared_embedding + ".weight";
        if (!names.shared_embedding.empty() && plan.from_file() && plan.has(shared)) {
            plan.want(&vocabulary.weight, {shared}, {entries, entry});
            plan.allow_rows(&stored);
        }
        plan.note("the head shares the token embedding");
    }
    if (!names.logits_bias.empty() && plan.from_file() && plan.has(names.logits_bias))
        plan.want(&logits_bias, {names.logits_bias}, {{1, "one row"}, entries});
    if (config.head_bias) plan.want(&vocabulary.bias, names.head_bias, {entries});
    if (!names.output_projection.empty() && config.embedding_size > 0)
        projection.declare(plan, names.prefix + names.output_projection, entry, hidden, false);
    if (config.head_transform) {
        transform.declare(plan, names.head_transform, entry, hidden, config.head_transform_bias);
        if (config.head_transform_norm)
            transform_norm.declare(plan, names.head_transform_norm, entry, names.old_norm_names);
    }
}

}  // namespace headscope::model

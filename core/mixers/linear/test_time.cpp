// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/var.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/types/test_time.h"
#include "core/model/blocks.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// TTT-Linear (kTttLinear) and Titans (kTitans), whose state is a map W of each head that learns while it reads. Linear
/// time, a cache of constant size. The operators are flash-linear-attention 0.6.0's plain ones (fla/ops/ttt/naive.py,
/// fla/ops/titans/naive.py), to the letter:
///
/// A token's error is of the W before its mini-batch: with x = k W, its layer norm n = (x - mean x) / s, s = sqrt(var x
/// + 1e-6), and g = a (a n + c - (v - k)), a and c being the head's gain and bias,
///     TTT-Linear  e = (g - mean g - n mean(g n)) / s         the gradient of |a n + c - (v - k)|^2 / 2 by x
///     Titans      e = D g - (mean g + n mean(g n)) / s       the operator's, which that gradient is not
/// D the size of a head. Then o = y + a layernorm(y) + c, where
///     TTT-Linear  y_t = q~_t (W - eta_t sum of k~_j^T e_j over the mini-batch's j <= t), k~ = (k, 1) and q~ = (q /
///                 sqrt(D), 1): the last row of W is a bias. The mini-batch's last token makes the next W.
///     Titans      S_t = eta_t S_(t-1) - 2 theta_t k_t^T e_t, W_t = (1 - alpha_t) W_(t-1) + S_t, y_t = q_t W_t, S_0 = 0
///
/// The operators leave open what goes in, and flash-linear-attention has no layers of them. Ours is that of its Gated
/// DeltaNet: queries, keys and values through a short convolution and SiLU, unit queries and keys, an RMS norm of each
/// head's output times SiLU of a gate. Rates are r = base_lr sigmoid(w x + b) / D of each token and head: Titans'
/// theta; TTT-Linear's eta_t = r / (place of t in its mini-batch, from 1), as in the authors' code (ttt-lm-pytorch),
/// without its correction learned for each place. Titans' alpha and eta are sigmoids of maps, too, alpha's bias begins
/// at -4. W begins at a learned map, drawn as other weights are; no rotary positions. Sums are in float32 at least.
///
/// Mini-batches are ATen operators that autograd knows; training keeps two states of each beside what its tokens make.
/// The norms make outputs no linear function of values: there is no implicit matrix.
class TestTimeMixer final : public Mixer {
public:
    TestTimeMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// [B, H, D or D + 1, D] each.
    struct Memory {
        at::Tensor start;       ///< before the open mini-batch; undefined: no token yet
        at::Tensor change;      ///< TTT-Linear: sum of the mini-batch's k~^T e; Titans: S; undefined: 0
        at::Tensor now;         ///< Titans: after the last token
        std::int64_t open = 0;  ///< tokens of the mini-batch so far
    };
    class Cache;
    /// [B, H, L, size], or [B, H, L] of rates and what else a token says.
    struct Tokens {
        at::Tensor query, key;  ///< as the memory reads them
        at::Tensor target;      ///< v - k
        at::Tensor rate;
        at::Tensor log_kept, log_momentum;  ///< Titans: ln (1 - alpha), ln eta
        Tokens part(std::int64_t first, std::int64_t count) const;
    };

    bool is_titans() const { return type_ == &kTitans; }
    Tokens tokens(const DeltaParts::Heads& heads, const at::Tensor& normed) const;
    Memory fresh(std::int64_t batch, at::ScalarType type) const;
    /// e of one mini-batch's tokens.
    at::Tensor error(const Tokens& in, const at::Tensor& start) const;
    // y of tokens of one mini-batch, which the memory takes in.
    at::Tensor learn_ttt(const Tokens& in, Memory& memory) const;
    at::Tensor learn_titans(const Tokens& in, Memory& memory) const;
    /// o of all tokens, [B, H, L, D].
    at::Tensor learn(const Tokens& in, Memory& memory, const Cancellation* cancellation) const;

    const MixerType* type_;
    DeltaParts parts_;
    std::int64_t mini_batch_;
    double base_rate_;
    at::Tensor gain_, offset_;                    ///< [H, D] of the memory's layer norm
    at::Tensor initial_, initial_offset_;         ///< [H, D, D]; TTT-Linear: [H, D]
    model::Linear rate_, forgetting_, momentum_;  ///< the latter two: Titans
    model::Norm norm_;                            ///< of each head's output
};

namespace {

constexpr double kEpsilon = 1e-6;        // the operators', of the memory's layer norm
constexpr double kFreshForgetting = -4;  // sigmoid: 0.018

at::Tensor with_ones(const at::Tensor& x) {
    return at::cat({x, at::ones({x.size(0), x.size(1), x.size(2), 1}, x.options())}, 3);
}

/// e^(sums_i - sums_j) for j <= i, else 0, [B, H, C, C].
at::Tensor between(const at::Tensor& sums) {
    const std::int64_t length = sums.size(2);
    const at::Tensor above = at::ones({length, length}, sums.options().dtype(at::kBool)).triu(1);
    // Masked before the exponential: above the diagonal it could be infinite, and its gradient no number.
    return (sums.unsqueeze(3) - sums.unsqueeze(2)).masked_fill(above, -1e4).exp();
}

at::Tensor pairs(const at::Tensor& query, const at::Tensor& key) {
    return query.matmul(key.transpose(2, 3)).tril();
}

}  // namespace

class TestTimeMixer::Cache final : public MixerCache {
public:
    std::int64_t bytes() const override {
        return bytes_of(memory.start) + bytes_of(memory.change) + bytes_of(memory.now) + bytes_of(before);
    }
    std::unique_ptr<MixerCache> clone() const override {
        auto copy = std::make_unique<Cache>();
        copy->memory = {copied(memory.start), copied(memory.change), copied(memory.now), memory.open};
        copy->before = copied(before);
        return copy;
    }
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override {
        auto copy = std::make_unique<Cache>();
        copy->memory = {of_sequences(memory.start, sequences), of_sequences(memory.change, sequences),
                        of_sequences(memory.now, sequences), memory.open};
        copy->before = of_sequences(before, sequences);
        return copy;
    }

    Memory memory;
    at::Tensor before;  ///< the convolution's last inputs
};

TestTimeMixer::TestTimeMixer(const MixerType& type, const model::ModelConfig& config)
    : type_(&type),
      parts_(DeltaSizes(type, config), false, config.mixer_options.get<bool>(type, "use_gate"), false,
             DeltaActivation::all, false),
      mini_batch_(config.mixer_options.get<std::int64_t>(type, kMiniBatch.name)),
      base_rate_(config.mixer_options.get<double>(type, kBaseRate.name)) {}

void TestTimeMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    const std::string stem = names.layer_stem + own.stem;
    const model::Dimension hidden{plan.config().hidden, plan.keys().hidden};
    const model::Dimension heads{parts_.sizes().heads, own.keys.heads};
    const model::Dimension size{parts_.sizes().key_size, own.keys.key_size};
    rate_.declare(plan, stem + "lr_proj", heads, hidden, true);
    if (is_titans()) {
        plan.want_linear(&forgetting_.weight, stem + "forget_proj", heads, hidden);
        plan.want_number(&forgetting_.bias, stem + "forget_proj.bias", {heads}, kFreshForgetting,
                         model::Initial::number);
        momentum_.declare(plan, stem + "momentum_proj", heads, hidden, true);
    }
    plan.want(&gain_, {stem + "memory_norm.weight"}, {heads, size}, model::Initial::gain);
    plan.want(&offset_, {stem + "memory_norm.bias"}, {heads, size}, model::Initial::bias);
    plan.want(&initial_, {stem + "memory"}, {heads, size, size});
    if (!is_titans()) plan.want(&initial_offset_, {stem + "memory_bias"}, {heads, size}, model::Initial::bias);
    norm_.declare_recurrent(plan, stem + own.norm, size);
}

std::vector<Site> TestTimeMixer::sites() const {
    Site site = parts_.site();
    site.has_implicit = false;
    return {site};
}

TestTimeMixer::Tokens TestTimeMixer::Tokens::part(std::int64_t first, std::int64_t count) const {
    const auto cut = [&](const at::Tensor& x) { return x.defined() ? x.narrow(2, first, count) : x; };
    return {cut(query), cut(key), cut(target), cut(rate), cut(log_kept), cut(log_momentum)};
}

TestTimeMixer::Tokens TestTimeMixer::tokens(const DeltaParts::Heads& heads, const at::Tensor& normed) const {
    const auto size = static_cast<double>(parts_.sizes().key_size);
    const auto said = [&normed](const model::Linear& map) { return at_least_float(map(normed)).transpose(1, 2); };
    Tokens in;
    in.query = at_least_float(unit_length(heads.query));
    in.key = at_least_float(unit_length(heads.key));
    in.target = at_least_float(heads.value) - in.key;
    in.rate = at::sigmoid(said(rate_)) * (base_rate_ / size);
    if (is_titans()) {
        in.log_kept = at::log_sigmoid(-said(forgetting_));
        in.log_momentum = at::log_sigmoid(said(momentum_));
    } else {
        in.query = with_ones(in.query / std::sqrt(size));
        in.key = with_ones(in.key);
    }
    return in;
}

TestTimeMixer::Memory TestTimeMixer::fresh(std::int64_t batch, at::ScalarType type) const {
    at::Tensor map = initial_.to(type);
    if (!is_titans()) map = at::cat({map, initial_offset_.to(type).unsqueeze(1)}, 1);
    map = map.expand({batch, -1, -1, -1});
    return {map, {}, is_titans() ? map : at::Tensor(), 0};
}

at::Tensor TestTimeMixer::error(const Tokens& in, const at::Tensor& start) const {
    const at::Tensor gain = gain_.to(start.scalar_type()).unsqueeze(1);
    const at::Tensor offset = offset_.to(start.scalar_type()).unsqueeze(1);
    const at::Tensor read = in.key.matmul(start);
    const at::Tensor spread =
        (at::var(read, at::IntArrayRef{-1}, /*unbiased=*/false, /*keepdim=*/true) + kEpsilon).sqrt();
    const at::Tensor normal = (read - read.mean(-1, true)) / spread;
    const at::Tensor slope = gain * (gain * normal + offset - in.target);
    const at::Tensor common = slope.mean(-1, true) + normal * (slope * normal).mean(-1, true);
    return is_titans() ? slope * static_cast<double>(read.size(3)) - common / spread : (slope - common) / spread;
}

at::Tensor TestTimeMixer::learn_ttt(const Tokens& in, Memory& memory) const {
    const std::int64_t count = in.key.size(2);
    const at::Tensor places = at::arange(memory.open + 1, memory.open + count + 1, in.rate.options());
    const at::Tensor rate = (in.rate / places).unsqueeze(3), error = this->error(in, memory.start);
    at::Tensor learned = pairs(in.query, in.key).matmul(error);
    if (memory.change.defined()) learned = learned + in.query.matmul(memory.change);
    const at::Tensor output = in.query.matmul(memory.start) - rate * learned;
    const at::Tensor change = in.key.transpose(2, 3).matmul(error);
    memory.change = memory.change.defined() ? memory.change + change : change;
    memory.open += count;
    if (memory.open == mini_batch_) memory = {memory.start - rate.narrow(2, count - 1, 1) * memory.change, {}, {}, 0};
    return output;
}

at::Tensor TestTimeMixer::learn_titans(const Tokens& in, Memory& memory) const {
    const std::int64_t count = in.key.size(2), last = count - 1;
    const at::Tensor kept = in.log_kept.cumsum(2), momentum = in.log_momentum.cumsum(2);
    const at::Tensor error = this->error(in, memory.start) * -2.0;
    // Remainder after token i of S as token j made it, and of W as S has changed it since.
    const at::Tensor of_momentum = between(momentum) * in.rate.unsqueeze(2);
    const at::Tensor of_kept = between(kept), of_map = of_kept.matmul(of_momentum);
    const at::Tensor all_kept = kept.exp().unsqueeze(3), all_momentum = momentum.exp().unsqueeze(3);
    at::Tensor output = in.query.matmul(memory.now) * all_kept + (pairs(in.query, in.key) * of_map).matmul(error);
    const auto taken_in = [&](const at::Tensor& shares) {
        return (in.key * shares.select(2, last).unsqueeze(3)).transpose(2, 3).matmul(error);
    };
    at::Tensor now = memory.now * all_kept.narrow(2, last, 1) + taken_in(of_map), change = taken_in(of_momentum);
    if (memory.change.defined()) {
        const at::Tensor moved = of_kept.matmul(all_momentum);
        output = output + in.query.matmul(memory.change) * moved;
        now = now + memory.change * moved.narrow(2, last, 1);
        change = change + memory.change * all_momentum.narrow(2, last, 1);
    }
    const bool closed = memory.open + count == mini_batch_;
    memory = {closed ? now : memory.start, change, now, closed ? 0 : memory.open + count};
    return output;
}

at::Tensor TestTimeMixer::learn(const Tokens& in, Memory& memory, const Cancellation* cancellation) const {
    const std::int64_t length = in.key.size(2), size = parts_.sizes().value_size;
    const at::Tensor gain = gain_.to(in.key.scalar_type()).unsqueeze(1);
    const at::Tensor offset = offset_.to(in.key.scalar_type()).unsqueeze(1);
    std::vector<at::Tensor> outputs;
    for (std::int64_t first = 0; first < length;) {
        if (cancellation) cancellation->check();
        const std::int64_t count = std::min(mini_batch_ - memory.open, length - first);
        const Tokens part = in.part(first, count);
        outputs.push_back(is_titans() ? learn_titans(part, memory) : learn_ttt(part, memory));
        first += count;
    }
    const at::Tensor output = at::cat(outputs, 2);
    return output + at::layer_norm(output, {size}, {}, {}, kEpsilon) * gain + offset;
}

at::Tensor TestTimeMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<Cache&>(*cache) : nullptr;
    auto heads = parts_.heads(normed, held ? &held->before : nullptr, context.cancellation);
    heads.query = context.pass(model::Point::query, heads.query);
    heads.key = context.pass(model::Point::key, heads.key);
    heads.value = context.pass(model::Point::value, heads.value);
    const Tokens in = tokens(heads, normed);
    Memory own = held && held->memory.start.defined() ? held->memory : fresh(normed.size(0), in.key.scalar_type());
    // Padding comes last, so the causal scan may ignore it.
    at::Tensor by_head = learn(in, own, context.cancellation).to(normed.scalar_type());
    if (held) held->memory = own;
    by_head = context.pass(model::Point::head_output, by_head);
    const at::Tensor normal = norm_(by_head.transpose(1, 2).contiguous()).flatten(2);
    const at::Tensor gate = parts_.gate(normed, context.cancellation);
    return gate.defined() ? normal * gate : normal;
}

std::unique_ptr<MixerCache> TestTimeMixer::new_cache() const {
    return std::make_unique<Cache>();
}

std::unique_ptr<Mixer> make_test_time(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<TestTimeMixer>(type, config);
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/shared/recurrence.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "core/base/error.h"
#include "core/mixers/shared/recurrence_input.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/shared/trained_recurrence.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/backend.h"

namespace headscope::mixers {
namespace {

constexpr std::int64_t kChannelPiece = 16;  // tokens, where a pair of them has a number for each of the key's

/// The type of states, gates and decays beside numbers of `type`.
at::ScalarType wide_type(at::ScalarType type) {
    return type == at::kDouble ? at::kDouble : at::kFloat;
}

/// [B, heads of `like`, L, size] where fewer heads have it.
at::Tensor for_heads(const at::Tensor& shared, std::int64_t heads) {
    return shared.size(1) == heads ? shared : shared.repeat_interleave(heads / shared.size(1), 1);
}

/// Zeros of a text's beginning into what a cache lacks.
void begin(RecurrentCache& cache, const Recurrence& what, const kernels::RecurrentRule& rule) {
    if (cache.now.defined()) return;
    const std::int64_t batch = what.value.size(0), heads = what.value.size(1), size = what.key.size(3);
    const auto options = what.value.options().dtype(wide_type(what.value.scalar_type()));
    cache.now = at::zeros({batch, heads, size, what.value.size(3)}, options);
    if (rule.chunk_size == 0) return;
    cache.start = at::zeros_like(cache.now);
    if (rule.decay != kernels::Decay::none)
        cache.decay = at::zeros({batch, heads, rule.decay == kernels::Decay::channel ? size : 1}, options);
}

/// [B, 1, L, 1], 1 for tokens that exist; undefined where all do.
at::Tensor existing(const std::vector<std::int64_t>& lengths, std::int64_t length, const at::TensorOptions& options) {
    if (lengths.empty()) return {};
    const auto batch = static_cast<std::int64_t>(lengths.size());
    const at::TensorOptions counts = options.dtype(at::kLong);
    const at::Tensor there = at::arange(length, counts) < at::tensor(lengths, counts).unsqueeze(1);
    return there.to(options.dtype()).view({batch, 1, length, 1});
}

/// Sums over the key's numbers of left_i right_j e^(G_i - G_j), [B, H, C, C], for j <= i (`strictly`: j < i), else 0.
/// `sums` [B, H, C, 1 or dk] or undefined.
at::Tensor pairs(const at::Tensor& left, const at::Tensor& right, const at::Tensor& sums, bool strictly) {
    const std::int64_t length = left.size(2), diagonal = strictly ? -1 : 0;
    if (!sums.defined()) return left.matmul(right.transpose(2, 3)).tril(diagonal);
    const at::Tensor below = at::ones({length, length}, left.options().dtype(at::kBool)).tril(diagonal);
    if (sums.size(3) == 1) {
        // Masked before the exponential: above the diagonal it could be infinite, and its gradient no number.
        const at::Tensor decay = (sums - sums.transpose(2, 3)).masked_fill(below.logical_not(), -1e4).exp();
        return left.matmul(right.transpose(2, 3)) * decay;
    }
    const at::Tensor apart =
        (sums.unsqueeze(3) - sums.unsqueeze(2)).masked_fill(below.logical_not().view({length, length, 1}), -1e4).exp();
    return (left.unsqueeze(3) * right.unsqueeze(2) * apart).sum(-1);
}

/// x of (1 + below) x = right; below [B, H, C, C] is strictly lower triangular.
at::Tensor solve_unit_lower(const at::Tensor& below, const at::Tensor& right) {
    const std::int64_t length = below.size(-1);
    const at::Tensor one = at::eye(length, below.options());
    if (below.is_cpu())
        return at::linalg_solve_triangular(below + one, right, /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
    // LibTorch's GPU library takes that from cuSOLVER, which is not fetched. The inverse of blocks twice as large is
    // that of their two diagonal blocks, X and Y, with -Y C X below the diagonal.
    const at::Tensor place = at::arange(length, below.options().dtype(at::kLong));
    at::Tensor inverse = one;
    for (std::int64_t block = 1; block < length; block *= 2) {
        const at::Tensor number = place.div(block, "floor"), left = number.unsqueeze(0), row = number.unsqueeze(1);
        const at::Tensor corner = (row - left).eq(1).logical_and(row.remainder(2).eq(1));
        const at::Tensor corners = below.masked_fill(corner.logical_not(), 0);
        inverse = inverse - inverse.matmul(corners.matmul(inverse));
    }
    return inverse.matmul(right);
}

struct PieceInput {
    at::Tensor query, key, value;  ///< [B, H, C, size]
    at::Tensor write;              ///< [B, H, C, 1] or undefined
    at::Tensor log_decay;          ///< [B, H, C, 1 or dk] or undefined
};

/// Reads and advances `state`; `start` and `before` (sum of g so far in the chunk) are read where the output does not
/// come from the piece's own tokens.
at::Tensor one_piece(const PieceInput& in, const kernels::RecurrentRule& rule, at::Tensor& state,
                     const at::Tensor& start, const at::Tensor& before) {
    const std::int64_t length = in.key.size(2);
    const at::Tensor sums = in.log_decay.defined() ? in.log_decay.cumsum(2) : at::Tensor();
    const at::Tensor grown = sums.defined() ? sums.exp() : at::Tensor();
    const auto decayed = [&](const at::Tensor& x) { return grown.defined() ? x * grown : x; };
    at::Tensor written = in.value;
    if (rule.delta) {
        written = written - decayed(in.key).matmul(state);
        if (in.write.defined()) written = written * in.write;
        at::Tensor system = pairs(in.key, in.key, sums, true);
        if (in.write.defined()) system = system * in.write;
        written = solve_unit_lower(system, written);
    } else if (in.write.defined()) {
        written = written * in.write;
    }
    at::Tensor output;
    if (rule.reads_own_chunk) {
        output = decayed(in.query).matmul(state) + pairs(in.query, in.key, sums, false).matmul(written);
    } else {
        const at::Tensor total = !sums.defined() ? at::Tensor() : before.defined() ? sums + before.unsqueeze(2) : sums;
        output = (total.defined() ? in.query * total.exp() : in.query).matmul(start);
    }
    at::Tensor left = in.key;
    if (sums.defined()) {
        const at::Tensor all = sums.narrow(2, length - 1, 1);
        left = left * (all - sums).exp();
        state = state * all.exp().transpose(2, 3);
    }
    state = state + left.transpose(2, 3).matmul(written);
    return output * rule.scale;
}

/// [B, L, H * dv], float32 and bfloat16.
at::Tensor by_kernel(const Recurrence& what, const kernels::RecurrentRule& rule, RecurrentCache* cache,
                     const Cancellation* cancellation) {
    const KernelInput own(what, rule, cancellation);
    const at::Tensor& v = own.value;
    const at::Tensor output = at::empty({v.size(0), v.size(2), v.size(1) * v.size(3)}, v.options());
    std::vector<at::Tensor> states;
    if (cache) states = {cache->now, cache->start, cache->decay};
    const KernelStates held(std::move(states));
    const kernels::RecurrentState state{held.floats(0), held.floats(1), held.floats(2)};
    try {
        kernels::recurrent_forward(own.input, target_of(as_heads(output, v.size(1))), state, nullptr);
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
    held.give_back();
    if (cache && rule.chunk_size > 0) cache->open = (rule.chunk_begin + v.size(2)) % rule.chunk_size;
    return model::on_device(output, what.value.device());
}

void measure_implicit(const Recurrence& what, const kernels::RecurrentRule& rule, const at::Tensor& by_head,
                      model::Probe::Implicit wanted, SiteIndex site, const StackContext& context) {
    const std::int64_t batch = what.value.size(0), heads = what.value.size(1), length = what.value.size(2);
    const KernelInput own(what, rule, context.cancellation);
    kernels::ImplicitStatistics statistics;
    at::Tensor weights;
    if (wanted == model::Probe::Implicit::weights)  // on the processor, where probes and kernels of a GPU have them
        weights = at::empty({batch, heads, length, length}, what.value.options().dtype(at::kFloat).device(at::kCPU));
    try {
        kernels::implicit_statistics(own.input, statistics,
                                     weights.defined() ? weights.mutable_data_ptr<float>() : nullptr);
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
    double deviation = 0;
    if (weights.defined()) {
        const at::ScalarType wide = wide_type(what.value.scalar_type());
        const at::Tensor made = weights.to(wide).matmul(model::on_processor(what.value).to(wide));
        at::Tensor apart = (made - model::on_processor(by_head).to(made.scalar_type())).abs();
        if (const at::Tensor there = existing(rule.length, length, apart.options()); there.defined())
            apart = apart * there;
        deviation = apart.max().item<double>();
    }
    context.probe->implicit(
        {site, context.sites->at(static_cast<std::size_t>(site.value)), statistics, weights, deviation});
}

}  // namespace

std::int64_t RecurrentCache::bytes() const {
    return bytes_of(now) + bytes_of(start) + bytes_of(decay);
}

RecurrentCache RecurrentCache::clone() const {
    return {copied(now), copied(start), copied(decay), open};
}

RecurrentCache RecurrentCache::chosen(const at::Tensor& sequences) const {
    return {of_sequences(now, sequences), of_sequences(start, sequences), of_sequences(decay, sequences), open};
}

at::Tensor recur_in_pieces(const Recurrence& what, RecurrentCache* cache, const Cancellation* cancellation) {
    const kernels::RecurrentRule rule = rule_of(what, cache ? cache->open : 0);
    const std::int64_t heads = what.value.size(1), length = what.value.size(2);
    const auto type = wide_type(what.value.scalar_type());
    RecurrentCache fresh;
    RecurrentCache& own = cache ? *cache : fresh;
    begin(own, what, rule);
    const auto wide = [type](const at::Tensor& x) { return x.defined() ? x.to(type) : x; };
    const auto column = [&](const at::Tensor& x) {
        return !x.defined() ? x : x.dim() == 3 ? wide(x).unsqueeze(3) : wide(x);
    };
    at::Tensor query = wide(for_heads(what.query, heads)), key = wide(for_heads(what.key, heads));
    at::Tensor value = wide(what.value), write = column(what.write), log_decay = column(what.log_decay);
    const at::Tensor there = existing(rule.length, length, value.options());
    if (there.defined()) {
        write = write.defined() ? write * there : there.expand({-1, heads, -1, -1});
        if (log_decay.defined()) log_decay = log_decay * there;
    }
    at::Tensor state = own.now, start = own.start, decay = own.decay;
    std::int64_t open = own.open, chunk = 0;
    std::vector<at::Tensor> outputs;
    for (std::int64_t first = 0; first < length;) {
        if (cancellation) cancellation->check();
        const std::int64_t most = rule.decay == kernels::Decay::channel ? kChannelPiece : kernels::kRecurrentPiece;
        std::int64_t count = std::min(most, length - first);
        if (rule.chunk_size > 0) count = std::min(count, rule.chunk_size - open);
        const auto part = [&](const at::Tensor& x) { return x.defined() ? x.narrow(2, first, count) : x; };
        const PieceInput in{part(query), part(key), part(value), part(write), part(log_decay)};
        outputs.push_back(one_piece(in, rule, state, start, decay));
        first += count;
        if (rule.chunk_size == 0) continue;
        if (decay.defined()) decay = decay + in.log_decay.sum(2);
        open += count;
        if (open < rule.chunk_size) continue;
        const at::Tensor old = decay.defined() && rule.decays_dropped ? start * decay.exp().unsqueeze(3) : start;
        state = old + wide(what.kept).select(2, chunk).unsqueeze(2).unsqueeze(3) * (state - old);
        start = state;
        if (decay.defined()) decay = at::zeros_like(decay);
        open = 0;
        ++chunk;
    }
    // At a chunk's end the two are one tensor: the kernel, which may go on from here, writes into each.
    if (cache) *cache = {state, start.is_same(state) ? start.clone() : start, decay, open};
    at::Tensor output = at::cat(outputs, 2);
    if (there.defined()) output = output * there;
    return output.to(what.value.scalar_type());
}

at::Tensor recur(const Recurrence& what, RecurrentCache* cache, SiteIndex site, const StackContext& context) {
    if (context.cancellation) context.cancellation->check();
    Recurrence own = what;
    if (context.lengths) own.rule.length = *context.lengths;
    const kernels::RecurrentRule rule = rule_of(own, cache ? cache->open : 0);
    const bool has_matrix = !own.direct.defined() || own.direct.numel() == own.value.size(1);
    const auto wanted =
        context.probe && has_matrix ? context.probe->implicit_request(site) : model::Probe::Implicit::nothing;
    if (wanted != model::Probe::Implicit::nothing && cache && cache->now.defined()) {
        throw Error(ErrorCode::unsupported, "implicit attention", "expected a text that is measured whole",
                    "found a cache, which holds a state and no tokens");
    }
    const std::int64_t heads = own.value.size(1);
    if (cache) begin(*cache, own, rule);
    at::Tensor output;
    if (!cache && recurrence_trains_fused(own))
        output = trained_recurrence(own, context.cancellation);
    else if (recurrence_recorded(own) || own.value.scalar_type() == at::kDouble)
        output = side_by_side(recur_in_pieces(own, cache, context.cancellation));
    else
        output = by_kernel(own, rule, cache, context.cancellation);
    if (own.direct.defined())
        output = output + side_by_side(own.value * own.direct.to(own.value.scalar_type()).view({1, heads, 1, -1}));
    const bool edits = context.edits(model::Point::head_output, site);
    if (wanted != model::Probe::Implicit::nothing || context.wants("head_output") || edits) {
        const at::Tensor by_head = as_heads(output, heads);
        context.announce("head_output", by_head);
        if (wanted != model::Probe::Implicit::nothing) measure_implicit(own, rule, by_head, wanted, site, context);
        if (edits) return side_by_side(context.edited(model::Point::head_output, by_head, site));
    }
    return output;
}

at::Tensor short_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor* before,
                             bool plain) {
    const std::int64_t length = x.size(1), taps = weight.size(1);
    const bool one_type =
        x.scalar_type() == weight.scalar_type() && (!bias.defined() || x.scalar_type() == bias.scalar_type()) &&
        (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && model::in_kernel_memory(x);
    const bool known = one_type && taps <= kernels::kMostTaps && x.numel() > 0;
    const bool records = model::recorded(x) || model::recorded(weight) || model::recorded(bias);
    if (known && records && !before) return model::trained_convolution(x, weight, bias, plain);
    const at::Tensor earlier =
        before && before->defined() ? *before : at::zeros({x.size(0), taps - 1, x.size(2)}, x.options());
    if (before)
        *before =
            at::cat({earlier, x.narrow(1, std::max<std::int64_t>(length - taps + 1, 0), std::min(length, taps - 1))}, 1)
                .narrow(1, std::min(length, taps - 1), taps - 1)
                .clone();
    if (known && !records) {
        const at::Tensor rows = x.contiguous(), own = weight.contiguous(), first = earlier.contiguous();
        const at::Tensor offset = bias.defined() ? bias.contiguous() : bias, y = at::empty(rows.sizes(), x.options());
        kernels::ShortConvolution work = model::convolution_of(rows, own, offset, plain);
        work.before = first.const_data_ptr();
        kernels::short_convolution(work, y.mutable_data_ptr(), model::kernel_device(rows));
        return y;
    }
    const at::Tensor padded = at::cat({earlier, x}, 1);
    at::Tensor sum = x * weight.select(1, taps - 1);
    for (std::int64_t tap = 0; tap + 1 < taps; ++tap) sum = sum + padded.narrow(1, tap, length) * weight.select(1, tap);
    if (bias.defined()) sum = sum + bias;
    return plain ? sum : at::silu(sum);
}

}  // namespace headscope::mixers

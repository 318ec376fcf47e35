// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>
#include <ATen/ops/zeros.h>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/types/standard.h"
#include "core/model/device.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Differential attention (Ye et al., arXiv 2410.05258) as transformers has it (ModelConfig::differential): softmax
/// attention of H heads, over values of twice a head's size; of its output the first half of the heads less lambda
/// times the second, an RMS norm of each without a gain, times a constant of the layer. Two sites: the softmax maps,
/// and what they make together, H / 2 heads with a signed implicit matrix. Memory of that one's statistics: a few rows.
class DifferentialMixer final : public Mixer {
public:
    DifferentialMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kStandard; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// [], float32 at least.
    at::Tensor factor() const;

    kernels::ScoreRule rule_;
    Projections maps_;
    double first_factor_;                           ///< lambda where nothing is learned
    at::Tensor query_1_, key_1_, query_2_, key_2_;  ///< [size], whose products make lambda
    model::Norm norm_;
};

namespace {

/// Numbers of the difference's rows that are in memory at once.
constexpr std::int64_t kNumbersAtOnce = std::int64_t{1} << 21;

/// The first half of the heads (dimension `of_heads`) less `factor` times the second.
at::Tensor difference(const at::Tensor& all, const at::Tensor& factor, std::int64_t of_heads) {
    const std::int64_t half = all.size(of_heads) / 2;
    return all.narrow(of_heads, 0, half) - factor.to(all.scalar_type()) * all.narrow(of_heads, half, half);
}

/// The signed matrix of the difference, a few rows at a time: float64 sums, and what the probe asks for.
struct DifferenceRows {
    const at::Tensor &query, &key, &value;  ///< [B, H or G, L, size], value [B, G, L, dv]
    const kernels::ScoreRule& rule;
    at::Tensor factor;

    void measure(const at::Tensor& by_head, model::Probe::Implicit wanted, SiteIndex site,
                 const StackContext& context) const {
        const std::int64_t batch = query.size(0), heads = query.size(1) / 2, length = query.size(2);
        const at::Tensor v = values().to(at::kDouble);
        const at::Tensor keys = at_least_float(key).repeat_interleave(query.size(1) / key.size(1), 1).transpose(2, 3);
        const bool keeps = wanted == model::Probe::Implicit::weights;
        at::Tensor weights;
        if (keeps) weights = at::empty({batch, heads, length, length}, at::kFloat);  // on the processor
        at::Tensor entropy = at::zeros({batch, heads}, v.options()), squares = entropy.clone(), rows = entropy.clone();
        double deviation = 0;
        const std::int64_t step = std::max<std::int64_t>(1, kNumbersAtOnce / (batch * heads * length));
        for (std::int64_t first = 0; first < length; first += step) {
            if (context.cancellation) context.cancellation->check();
            const std::int64_t count = std::min(step, length - first);
            const at::Tensor there = existing(first, count);
            const at::Tensor part = difference(weights_of(keys, first, count), factor, 1).to(at::kDouble) * there;
            const at::Tensor sizes = part.abs(), total = sizes.sum(-1, true);
            const at::Tensor shares = sizes / at::where(total > 0, total, at::ones({}, total.options()));
            entropy = entropy - at::xlogy(shares, shares).sum({2, 3});
            squares = squares + (shares * shares).sum({2, 3});
            rows = rows + (total > 0).sum({2, 3});
            const at::Tensor apart = (part.matmul(v) - by_head.narrow(2, first, count).to(at::kDouble)).abs() * there;
            deviation = std::max(deviation, apart.max().item<double>());
            if (keeps) weights.narrow(2, first, count).copy_(part);
        }
        kernels::ImplicitStatistics statistics;
        const auto list = [](const at::Tensor& numbers) {
            const at::Tensor flat = model::on_processor(numbers).contiguous();
            return std::vector<double>(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
        };
        statistics.entropy = list(entropy);
        statistics.entropy_row_mean = list(entropy / rows.clamp_min(1));
        statistics.concentration = list(squares.sqrt());
        context.probe->implicit({site, context.sites->at(static_cast<std::size_t>(site.value)), statistics, weights,
                                 keeps ? deviation : 0});
    }

private:
    /// The softmax maps' rows, [B, H, count, L]; `keys` of every head, [B, H, dk, L].
    at::Tensor weights_of(const at::Tensor& keys, std::int64_t first, std::int64_t count) const {
        const std::int64_t length = query.size(2);
        const at::Tensor scores = at_least_float(query.narrow(2, first, count)).matmul(keys) * rule.scale;
        const at::TensorOptions integers = query.options().dtype(at::kLong);
        const at::Tensor j = at::arange(length, integers).view({1, 1, 1, length});
        at::Tensor hidden = at::zeros({1, 1, count, length}, query.options().dtype(at::kBool));
        if (rule.causal) hidden = j > at::arange(first, first + count, integers).view({1, 1, count, 1});
        if (!rule.key_length.empty())
            hidden = hidden.logical_or(j >= at::tensor(rule.key_length, integers).view({-1, 1, 1, 1}));
        return at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    }
    /// [B, H / 2, L, dv], what each head of the difference reads.
    at::Tensor values() const {
        const std::int64_t groups = value.size(1) / 2;
        return value.narrow(1, 0, groups).repeat_interleave(query.size(1) / 2 / groups, 1);
    }
    /// [B or 1, 1, count, 1], 0 for rows beyond a text's end.
    at::Tensor existing(std::int64_t first, std::int64_t count) const {
        if (rule.query_length.empty()) return at::ones({1, 1, count, 1}, query.options().dtype(at::kDouble));
        const at::TensorOptions integers = query.options().dtype(at::kLong);
        const at::Tensor lengths = at::tensor(rule.query_length, integers).view({-1, 1, 1, 1});
        return (at::arange(first, first + count, integers).view({1, 1, count, 1}) < lengths).to(at::kDouble);
    }
};

}  // namespace

DifferentialMixer::DifferentialMixer(const model::ModelConfig& config, std::int64_t layer)
    : maps_(config), first_factor_(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer))) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
    rule_.causal = config.causal;
    norm_.kind = model::NormKind::rms;
    norm_.epsilon = config.norm_epsilon;
    norm_.affine = false;
}

void DifferentialMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    maps_.declare(plan, names);
    const model::Dimension size{maps_.head_size(), plan.keys().head_size};
    const std::pair<at::Tensor*, const char*> parts[] = {
        {&query_1_, "lambda_q1"}, {&key_1_, "lambda_k1"}, {&query_2_, "lambda_q2"}, {&key_2_, "lambda_k2"}};
    for (const auto& [into, name] : parts)
        plan.want_number(into, names.layer_stem + "self_attn." + name, {size}, 0.1, model::Initial::drawn);
}

std::vector<Site> DifferentialMixer::sites() const {
    Site maps = maps_.site(rule_.causal);
    maps.value_size *= 2;
    maps.branch = "softmax";
    Site made = maps;
    made.branch = "difference";
    made.heads /= 2;
    made.key_value_heads /= 2;
    made.has_matrix = false;
    made.has_implicit = true;
    return {maps, made};
}

at::Tensor DifferentialMixer::factor() const {
    const auto product = [](const at::Tensor& a, const at::Tensor& b) { return at_least_float(a * b).sum().exp(); };
    return product(query_1_, key_1_) - product(query_2_, key_2_) + first_factor_;
}

at::Tensor DifferentialMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const std::int64_t heads = maps_.query_heads(), groups = maps_.key_value_heads(), size = maps_.head_size();
    const at::Tensor all = maps_.heads(normed, context.cancellation);
    auto [query_key, values] = model::split_heads(all, heads + groups);
    at::Tensor value = values.transpose(1, 2);
    const auto [queries, keys] = model::split_heads(announce_and_rotate(maps_, query_key, value, context), heads);
    at::Tensor key = keys.transpose(1, 2);
    if (cache) join_cache(maps_, query_key, key, value, context, *cache);
    // Both halves of the values side by side, once for each half of the keys' heads.
    const at::Tensor wide = at::cat({value.narrow(1, 0, groups / 2), value.narrow(1, groups / 2, groups / 2)}, 3);
    const at::Tensor twice = at::cat({wide, wide}, 1);
    const at::Tensor query = queries.transpose(1, 2);

    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    StackContext own = context;
    own.output_projection = nullptr;  // difference and norm lie between
    const at::Tensor output = attend(query, key, twice, rule, context.site, own).unflatten(2, {heads, 2 * size});
    at::Tensor made = difference(output, factor(), 2);
    const SiteIndex site(context.site.value + 1);
    const auto wanted = context.probe ? context.probe->implicit_request(site) : model::Probe::Implicit::nothing;
    if (wanted != model::Probe::Implicit::nothing) {
        if (context.first_position > 0) {
            throw Error(ErrorCode::unsupported, "implicit attention", "expected a text that is measured whole",
                        "found one whose beginning is in a cache");
        }
        DifferenceRows{query, key, twice, rule, factor()}.measure(made.transpose(1, 2), wanted, site, context);
    }
    if (context.edits(model::Point::head_output, site))
        made = context.edited(model::Point::head_output, made.transpose(1, 2), site).transpose(1, 2);
    return norm_(made).flatten(2) * (1 - first_factor_);
}

std::unique_ptr<MixerCache> DifferentialMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_differential(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<DifferentialMixer>(config, layer);
}

}  // namespace headscope::mixers

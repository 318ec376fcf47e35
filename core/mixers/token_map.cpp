// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/no_cache.h"
#include "core/mixers/types/token_map.h"
#include "core/model/blocks.h"
#include "core/model/device.h"
#include "core/model/load/tensor_plan.h"
#include "kernels/recurrent.h"

namespace headscope::mixers {

/// o = M V with V = W x of each token and M the leading L x L block of a learned [L_max, L_max]; no biases, no output
/// projection. Its site is one head without an attention matrix, whose implicit matrix is that block.
class TokenMapMixer final : public Mixer {
public:
    TokenMapMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kTokenMap; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return hidden_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t hidden_;
    at::Tensor tokens_;     ///< [L_max, L_max], a row for each output token
    model::Linear values_;  ///< [d, d]
};

namespace {

constexpr double kNothing = 0x1p-126;  ///< a row of a smaller sum adds nothing

/// [B, L, 1], true for tokens that exist; undefined where all do.
at::Tensor existing(const std::vector<std::int64_t>* lengths, const at::Tensor& normed) {
    if (!lengths) return {};
    const at::TensorOptions integers = normed.options().dtype(at::kLong);
    return (at::arange(normed.size(1), integers) < at::tensor(*lengths, integers).unsqueeze(1)).unsqueeze(2);
}

std::vector<double> numbers(const at::Tensor& x) {
    const at::Tensor flat = model::on_processor(x).contiguous();
    return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// Statistics of |A| [B, L, L] divided by row sums, in float64.
kernels::ImplicitStatistics statistics_of(const at::Tensor& matrices) {
    const at::Tensor sizes = matrices.to(at::kDouble).abs(), sums = sizes.sum(2, true);
    const at::Tensor counted = sums.ge(kNothing);
    const at::Tensor shares = at::where(counted, sizes / sums, 0.0);
    const at::Tensor terms = at::where(shares > 0, shares * shares.log(), 0.0);
    const at::Tensor entropy = -terms.sum(at::IntArrayRef{1, 2});
    const at::Tensor rows = counted.to(at::kDouble).sum(at::IntArrayRef{1, 2});
    return {numbers(entropy), numbers(entropy / rows), numbers(shares.square().sum(at::IntArrayRef{1, 2}).sqrt())};
}

}  // namespace

TokenMapMixer::TokenMapMixer(const model::ModelConfig& config, std::int64_t) : hidden_(config.hidden) {}

void TokenMapMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const std::string stem = names.layer_stem + "self_attn.";
    const model::Dimension positions{plan.config().max_positions, plan.keys().positions};
    const model::Dimension hidden{hidden_, plan.keys().hidden};
    plan.want(&tokens_, {stem + "token_proj.weight"}, {positions, positions});
    values_.declare(plan, stem + "hidden_proj", hidden, hidden, false);
}

std::vector<Site> TokenMapMixer::sites() const {
    Site site;
    site.heads = site.key_value_heads = 1;
    site.key_size = site.value_size = static_cast<std::int32_t>(hidden_);
    site.causal = false;
    site.has_matrix = type().has_matrix;
    site.has_implicit = true;
    return {site};
}

at::Tensor TokenMapMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache*) const {
    if (context.cancellation) context.cancellation->check();
    const std::int64_t length = normed.size(1);
    const at::Tensor block = tokens_.narrow(0, 0, length).narrow(1, 0, length);
    const at::Tensor there = existing(context.lengths, normed);
    at::Tensor value = values_(normed, context.cancellation);
    if (there.defined()) value = value.masked_fill(there.logical_not(), 0);
    value = context.pass(model::Point::value, value.unsqueeze(1)).squeeze(1);
    const at::Tensor output = block.matmul(value);
    context.announce("head_output", output.unsqueeze(1));
    const auto wanted = context.probe ? context.probe->implicit_request(context.site) : model::Probe::Implicit::nothing;
    if (wanted != model::Probe::Implicit::nothing) {
        at::Tensor matrices = block.unsqueeze(0).expand({normed.size(0), length, length});
        at::Tensor apart = (matrices.to(at::kDouble).matmul(value.to(at::kDouble)) - output.to(at::kDouble)).abs();
        if (there.defined()) {
            matrices = matrices.masked_fill(there.logical_and(there.transpose(1, 2)).logical_not(), 0);
            apart = apart.masked_fill(there.logical_not(), 0);
        }
        at::Tensor weights;
        if (wanted == model::Probe::Implicit::weights) weights = matrices.to(at::kFloat).contiguous().unsqueeze(1);
        context.probe->implicit({context.site, context.sites->at(static_cast<std::size_t>(context.site.value)),
                                 statistics_of(matrices), weights, apart.max().item<double>()});
    }
    return context.edited(model::Point::head_output, output.unsqueeze(1)).squeeze(1);
}

std::unique_ptr<MixerCache> TokenMapMixer::new_cache() const {
    return std::make_unique<NoCache>();
}

std::unique_ptr<Mixer> make_token_map(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<TokenMapMixer>(config, layer);
}

}  // namespace headscope::mixers

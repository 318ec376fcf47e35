// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <span>

#include <ATen/ops/cat.h>
#include <ATen/ops/silu.h>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/shared/running_attention.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/types/non_approximate.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/backend.h"

namespace headscope::mixers {

/// Deconstructing Attention's Non-approximate: q = SiLU(x W^Q), and a key's one score is that of its own position,
/// s_j = q_j . k_j / sqrt(d_h), for all queries. Linear in the length in everything: training, reading, decoding from a
/// numerator, a denominator and a maximum a head, and measuring. Rotary positions cancel and are left out.
///
/// Its site's query and key are those of PickedScores: one number a head.
class NonApproximateMixer final : public Mixer {
public:
    NonApproximateMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kNonApproximate; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    Projections maps_;
    double scale_;
};

namespace {

kernels::Statistics measure(const RunningCall& call, const at::Tensor& scores,
                            const kernels::StatisticsRequest& request) {
    const at::Tensor single = model::on_processor(scores).to(at::kFloat).contiguous();
    kernels::RunningInput input;
    input.query = view_of(single.unsqueeze(3));
    if (call.lengths) input.lengths = *call.lengths;
    if (call.cancellation) input.cancel = call.cancellation->flag();
    kernels::Statistics statistics;
    try {
        kernels::running_statistics(input,
                                    std::span(single.const_data_ptr<float>(), static_cast<std::size_t>(single.numel())),
                                    request, statistics);
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    }
    return statistics;
}

}  // namespace

NonApproximateMixer::NonApproximateMixer(const model::ModelConfig& config, std::int64_t)
    : maps_(config), scale_(1.0 / std::sqrt(static_cast<double>(config.head_size))) {}

std::vector<Site> NonApproximateMixer::sites() const {
    Site site = maps_.site(true);
    site.key_size = site.heads / site.key_value_heads;
    return {site};
}

at::Tensor NonApproximateMixer::forward(const at::Tensor& normed, const StackContext& context,
                                        MixerCache* cache) const {
    const at::Tensor all = maps_.heads(normed, context.cancellation);
    const at::Tensor query_key = maps_.with_norms(at::cat(
        {at::silu(all.narrow(2, 0, maps_.query_heads())), all.narrow(2, maps_.query_heads(), maps_.key_value_heads())},
        2));
    RunningCall call;
    call.query = context.pass(model::Point::query, maps_.query_of(query_key));
    call.key = context.pass(model::Point::key, maps_.key_of(query_key));
    call.value = context.pass(model::Point::value, maps_.value_of(all));
    call.scale = scale_;
    call.lengths = context.lengths;
    call.cancellation = context.cancellation;

    auto* held = cache ? &dynamic_cast<RunningCache&>(*cache) : nullptr;
    const kernels::StatisticsRequest* request = context.probe ? context.probe->request(context.site) : nullptr;
    if (held && request) {
        throw Error(ErrorCode::unsupported, "non_approximate", "expected a text that is measured whole",
                    "found a cache, which holds no scores");
    }
    kernels::ScoreRule rule;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    if (request) {
        at::Tensor scores;
        const at::Tensor output = call.attend(nullptr, &scores);
        const kernels::Statistics statistics = measure(call, scores, *request);
        const PickedScores picked = picked_scores(scores, maps_.key_value_heads());
        return finish_attention(output, {picked.query, picked.key, call.value, rule}, &statistics, context.site,
                                context);
    }
    const bool recorded = model::recorded(call.query) || model::recorded(call.key) || model::recorded(call.value);
    const at::Tensor output = recorded ? call.train() : call.attend(held);
    return finish_attention(output, {call.query, call.key, call.value, rule}, nullptr, context.site, context);
}

std::unique_ptr<MixerCache> NonApproximateMixer::new_cache() const {
    return std::make_unique<RunningCache>();
}

std::unique_ptr<Mixer> make_non_approximate(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<NonApproximateMixer>(config, layer);
}

}  // namespace headscope::mixers

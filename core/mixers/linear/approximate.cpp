// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/shared/taylor_attention.h"
#include "core/mixers/types/approximate.h"
#include "core/model/training_ops.h"
#include "kernels/score_rule.h"
#include "kernels/taylor_state.h"

namespace headscope::mixers {

/// Deconstructing Attention's Approximate: t(s) = 1 + s + s^2 / 2 in place of the exponential
/// (kApproximate). Short texts, training and whatever is measured go pair by pair through
/// attend(); long ones and everything with a cache in linear time, from a state of constant size.
class ApproximateMixer final : public Mixer {
public:
    ApproximateMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kApproximate; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    /// True if attend() applies: a probe or autograd records, or the text is short.
    bool by_pairs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const StackContext& context) const;

    Projections maps_;
    kernels::ScoreRule rule_;
};

namespace {

kernels::Normaliser normaliser_of(const MixerOptions& options) {
    const bool per_order = options.get<std::string>(kApproximate, "normalisation") == "per_order";
    if (options.get<std::string>(kApproximate, "second_order") == "diagonal")
        return per_order ? kernels::Normaliser::taylor_diagonal_per_order : kernels::Normaliser::taylor_diagonal;
    return per_order ? kernels::Normaliser::taylor_per_order : kernels::Normaliser::taylor;
}

}  // namespace

ApproximateMixer::ApproximateMixer(const model::ModelConfig& config, std::int64_t) : maps_(config) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
    rule_.normaliser = normaliser_of(config.mixer_options);
}

bool ApproximateMixer::by_pairs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                const StackContext& context) const {
    if (model::recorded(query) || model::recorded(key) || model::recorded(value)) return true;
    if (context.probe != nullptr && context.probe->request(context.site) != nullptr) return true;
    if (context.edits(model::Point::scores) || context.edits(model::Point::pattern)) return true;
    return !kernels::taylor_prefers_state(rule_.normaliser, query.size(2), query.size(1), key.size(1), key.size(3),
                                          value.size(3));
}

at::Tensor ApproximateMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const at::Tensor all = maps_.heads(normed, context.cancellation);
    at::Tensor query_key = maps_.with_norms(all.narrow(2, 0, maps_.query_heads() + maps_.key_value_heads()));
    at::Tensor value = maps_.value_of(all);
    const at::Tensor rotated = announce_and_rotate(maps_, query_key, value, context);
    const at::Tensor query = maps_.query_of(rotated), key = maps_.key_of(rotated);
    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    if (!cache && by_pairs(query, key, value, context)) return attend(query, key, value, rule, context.site, context);

    auto* held = cache ? &dynamic_cast<TaylorCache&>(*cache) : nullptr;
    if (held && context.history_rotation) {
        throw Error(ErrorCode::unsupported, "approximate",
                    "expected rotary positions whose angles do not depend on the text's length: a state cannot be "
                    "rotated again",
                    "found ones that do");
    }
    if (held && context.probe && context.probe->request(context.site)) {
        throw Error(ErrorCode::unsupported, "approximate", "expected a text that is measured whole",
                    "found a cache, which holds no keys");
    }
    const at::Tensor output = taylor_attention(query, key, value, rule, held, context.cancellation);
    return finish_attention(output, {query, key, value, rule}, nullptr, context.site, context);
}

std::unique_ptr<MixerCache> ApproximateMixer::new_cache() const {
    return std::make_unique<TaylorCache>();
}

std::unique_ptr<Mixer> make_approximate(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<ApproximateMixer>(config, layer);
}

}  // namespace headscope::mixers

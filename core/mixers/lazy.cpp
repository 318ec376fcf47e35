// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/shared/slopes.h"
#include "core/mixers/types/alibi.h"
#include "core/mixers/types/lazy.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"
#include "kernels/normaliser.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Lazy Attention: scores with a learned bias of each head for distances below the window, then Elastic-Softmax, whose
/// offset each head learns: a row's weights are max(p + tau / i, 0), i keys being visible. Neither takes weight decay.
class LazyMixer final : public Mixer {
public:
    LazyMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kLazy; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    std::optional<HeadMaps> head_maps() const override { return maps_.head_maps(); }

private:
    Projections maps_;
    kernels::ScoreRule rule_;
    std::int64_t window_ = 0;  ///< 0: no bias
    bool elastic_, learns_offset_;
    bool has_slopes_ = false, learns_slopes_ = false;  ///< ALiBi's, besides the bias
    double first_offset_;
    at::Tensor bias_;    ///< [heads, window], by distance from 0 on
    at::Tensor offset_;  ///< [heads]
    at::Tensor slopes_;  ///< [heads], if they are learned
};

namespace {

template <class T>
T lazy_option(const model::ModelConfig& config, const char* key) {
    return config.mixer_options.get<T>(kLazy, key);
}

}  // namespace

LazyMixer::LazyMixer(const model::ModelConfig& config, std::int64_t)
    : maps_(config), first_offset_(lazy_option<double>(config, "offset_init")) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
    rule_.normaliser = *kernels::find_normaliser(lazy_option<std::string>(config, "normaliser"));
    const auto offset = lazy_option<std::string>(config, "offset");
    elastic_ = kernels::traits_of(rule_.normaliser).takes_offsets();
    learns_offset_ = elastic_ && offset != "fixed";
    if (offset == "constant") rule_.offset_form = kernels::OffsetForm::constant;
    if (lazy_option<bool>(config, "distance_bias")) window_ = lazy_option<std::int64_t>(config, "window");
    const auto slopes = lazy_option<std::string>(config, "slopes");
    has_slopes_ = slopes != "none";
    learns_slopes_ = slopes == "trained";
    rule_.beyond_table = kernels::BeyondTable::zero;
}

std::vector<Site> LazyMixer::sites() const {
    Site site = maps_.site(true);
    site.bias_length = static_cast<std::int32_t>(window_);
    site.has_offsets = elastic_;
    site.has_slopes = has_slopes_;
    return {site};
}

void LazyMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    maps_.declare(plan, names);
    const std::string stem = names.layer_stem + "self_attn.";
    const model::Dimension heads{maps_.query_heads(), plan.keys().heads};
    if (window_ > 0) {
        plan.want(&bias_, {stem + "distance_bias"}, {heads, {window_, "lazy.window"}}, model::Initial::bias);
        plan.keep_exact();
    }
    if (learns_slopes_) {
        plan.want(&slopes_, {stem + "slopes"}, {heads}, model::Initial::slopes);
        plan.keep_exact();
    }
    if (learns_offset_) {
        plan.want_number(&offset_, stem + "offset", {heads}, first_offset_, model::Initial::number);
        plan.keep_exact();
    }
}

at::Tensor LazyMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const at::Tensor all = maps_.heads(normed, context.cancellation);
    const auto [both, values] = model::split_heads(all, maps_.query_heads() + maps_.key_value_heads());
    at::Tensor query_key = maps_.with_norms(both);
    at::Tensor value = maps_.clipped(values).transpose(1, 2);
    const auto [queries, keys] =
        model::split_heads(announce_and_rotate(maps_, query_key, value, context), maps_.query_heads());
    at::Tensor key = keys.transpose(1, 2);
    if (cache) join_cache(maps_, query_key, key, value, context, *cache);

    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    RuleTensors tensors;
    if (learns_slopes_)
        set_trained_slopes(slopes_, bias_, key.size(2), rule, tensors);
    else if (window_ > 0)
        set_distance_bias(bias_, rule, tensors);
    if (has_slopes_ && !learns_slopes_) rule.slopes = alibi_slopes(maps_.query_heads(), 1);
    if (learns_offset_) {
        tensors.offsets = offset_;
        rule.offsets = rule_numbers(offset_);
    } else if (elastic_) {
        rule.offsets.assign(static_cast<std::size_t>(maps_.query_heads()), -1.0F);
    }
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return attend(queries.transpose(1, 2), key, value, rule, context.site, context, tensors);
}

std::unique_ptr<MixerCache> LazyMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_lazy(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<LazyMixer>(config, layer);
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/projections.h"
#include "core/model/training_forward.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// Shared by RndEmbQK and FixedSeqQK: softmax attention whose queries and keys come from a guide stream, the same for
/// every text, and whose values come from the text. The stack runs the guide (StackContext::guide). Generation computes
/// no query and no key, and caches only values.
class GuidedMixer final : public Mixer {
public:
    GuidedMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    GuideMaps guide_maps(const at::Tensor& normed, const StackContext& context) const override;
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    at::Tensor attend_together(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const kernels::ScoreRule& rule, const StackContext& context) const;

    const MixerType& type_;
    Projections maps_;
    kernels::ScoreRule rule_;
};

GuidedMixer::GuidedMixer(const MixerType& type, const model::ModelConfig& config) : type_(type), maps_(config) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
}

GuideMaps GuidedMixer::guide_maps(const at::Tensor& normed, const StackContext& context) const {
    GuideMaps maps;
    maps.query_key = maps_.with_norms(maps_.query_key(normed, context.cancellation));
    maps.rotated = context.rotary ? context.rotary->rotate(maps.query_key, *context.rotation) : maps.query_key;
    return maps;
}

at::Tensor GuidedMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const std::int64_t batch = normed.size(0), held = context.first_position, length = normed.size(1);
    if (!context.guide || context.guide->rotated.size(1) < held + length) {
        throw Error(ErrorCode::usage, name(), "expected a guide as long as the text", "found none");
    }
    at::Tensor value = maps_.value(normed, context.cancellation);
    const auto of_texts = [&](const at::Tensor& heads) {
        return heads.expand({batch, heads.size(1), heads.size(2), heads.size(3)});
    };
    const auto rows = [&](const at::Tensor& maps) { return maps.narrow(1, held, length); };
    context.announce("query", of_texts(maps_.query_of(rows(context.guide->query_key))));
    context.announce("key", of_texts(maps_.key_of(rows(context.guide->query_key))));
    value = context.pass(model::Point::value, value);
    const at::Tensor query = maps_.query_of(rows(context.guide->rotated));
    if (context.rotary) {
        context.announce("query_rotated", of_texts(query));
        context.announce("key_rotated", of_texts(maps_.key_of(rows(context.guide->rotated))));
    }
    if (cache) {
        auto& values = dynamic_cast<KeyValueCache&>(*cache);
        values.append(value.narrow(3, 0, 0), value);
        value = values.value();
    }
    const at::Tensor key = maps_.key_of(context.guide->rotated.narrow(1, 0, held + length));
    kernels::ScoreRule rule = rule_;
    rule.query_offset = held;
    const bool measured = context.probe && context.probe->request(context.site);
    const bool drops = context.training && context.training->attention_dropout > 0;  // each text's own weights
    if (batch > 1 && !measured && !drops && !context.lengths && !context.editor && !context.wants("head_output"))
        return attend_together(query, key, value, rule, context);
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return attend(of_texts(query), of_texts(key), value, rule, context.site, context);
}

/// The weights are the same for all texts: they are made once, for values that lie side by side.
at::Tensor GuidedMixer::attend_together(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                        const kernels::ScoreRule& rule, const StackContext& context) const {
    const std::int64_t batch = value.size(0), size = value.size(3);
    const at::Tensor wide = value.permute({1, 2, 0, 3}).flatten(2).unsqueeze(0);  // [1, G, L, B * size]
    const at::Tensor output = attend(query, key, wide, rule, context.site, context);
    return output.squeeze(0).unflatten(1, {maps_.query_heads(), batch, size}).permute({2, 0, 1, 3}).flatten(2);
}

std::unique_ptr<MixerCache> GuidedMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_guided(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<GuidedMixer>(type, config);
}

}  // namespace headscope::mixers

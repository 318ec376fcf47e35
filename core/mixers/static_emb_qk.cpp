// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/static_emb_qk.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// StaticEmbQK (Deconstructing Attention, arXiv 2510.11602): softmax attention whose queries and keys come from the
/// tokens' embeddings in every layer, through the layer's own input norm and maps; values from the layer's input.
class StaticEmbeddingMixer final : public Mixer {
public:
    StaticEmbeddingMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kStaticEmbedding; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override { return {maps_.site(true)}; }
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    Projections maps_;
    kernels::ScoreRule rule_;
};

StaticEmbeddingMixer::StaticEmbeddingMixer(const model::ModelConfig& config, std::int64_t) : maps_(config) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
}

at::Tensor StaticEmbeddingMixer::forward(const at::Tensor& normed, const StackContext& context,
                                         MixerCache* cache) const {
    at::Tensor query_key = maps_.with_norms(maps_.query_key(context.input_embedding, context.cancellation));
    at::Tensor value = maps_.value(normed, context.cancellation);
    const at::Tensor rotated = announce_and_rotate(maps_, query_key, value, context);
    at::Tensor key = maps_.key_of(rotated);
    if (cache) {
        auto& held = dynamic_cast<KeyValueCache&>(*cache);
        // Angles that depend on the text's length are reapplied to the whole history.
        held.append(context.history_rotation ? maps_.key_of(query_key) : key, value);
        key = held.key();
        if (context.history_rotation)
            key = context.rotary->rotate(key.transpose(1, 2), *context.history_rotation).transpose(1, 2);
        value = held.value();
    }
    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    return attend(maps_.query_of(rotated), key, value, rule, context.site, context);
}

std::unique_ptr<MixerCache> StaticEmbeddingMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_static_embedding(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<StaticEmbeddingMixer>(config, layer);
}

}  // namespace headscope::mixers

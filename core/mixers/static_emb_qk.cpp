// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/static_emb_qk.h"

#include <cmath>

#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"

namespace headscope::mixers {

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

}  // namespace headscope::mixers

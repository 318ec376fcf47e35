// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>

#include "core/base/error.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/attend.h"
#include "core/mixers/shared/key_value_cache.h"
#include "core/mixers/shared/projections.h"
#include "core/mixers/types/streaming_llm.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/score_rule.h"

namespace headscope::mixers {

/// StreamingLLM: a causal window and the text's first keys beside it. Its cache forgets what no later query sees.
///
/// Positions within a cache change distances to the first keys alone: for query i they are min(i, first + window - 1) -
/// j instead of i - j. So a query enters the scores twice, turned by its own position and by that one, and a key is in
/// one half of a head's numbers or in the other: heads have twice their size there.
class StreamingMixer final : public Mixer {
public:
    StreamingMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kStreamingLlm; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override { maps_.declare(plan, names); }
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return maps_.output_size(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    std::optional<HeadMaps> head_maps() const override { return maps_.head_maps(); }

private:
    Projections maps_;
    kernels::ScoreRule rule_;
    std::int64_t first_, window_;
    bool by_cache_;  ///< positions are those within the cache
};

namespace {

/// Rotary table of this call's tokens, positions clamped at `most`.
model::RotaryTable bounded(const StackContext& context, std::int64_t most) {
    const model::RotaryTable& own = *context.rotation;
    const std::int64_t first = context.first_position;
    const at::Tensor beyond =
        at::arange(first, first + own.cosine.size(0), own.cosine.options().dtype(at::kLong)).unsqueeze(1) > most;
    const model::RotaryTable last = context.rotary->table(most, 1, own.cosine.scalar_type());
    const auto clamped = [&](const at::Tensor& at_most, const at::Tensor& here) {
        return at::where(beyond, model::on_device(at_most, here.device()), here);
    };
    return {clamped(last.cosine, own.cosine), clamped(last.sine, own.sine)};
}

}  // namespace

StreamingMixer::StreamingMixer(const model::ModelConfig& config, std::int64_t)
    : maps_(config),
      first_(config.mixer_options.get<std::int64_t>(kStreamingLlm, "first")),
      window_(config.mixer_options.get<std::int64_t>(kStreamingLlm, "window")),
      by_cache_(config.mixer_options.get<std::string>(kStreamingLlm, "positions") == "cache" &&
                config.positions == model::PositionKind::rotary) {
    rule_.scale = 1.0 / std::sqrt(static_cast<double>(config.head_size));
    rule_.window_left = window_ - 1;
    rule_.first_keys = first_;
    if (by_cache_ && model::Rotary(config.rope, config.head_size, config.max_positions).depends_on_length()) {
        throw Error(ErrorCode::unsupported, "mixers.streaming_llm.positions",
                    "expected text, or rotary positions that do not depend on the text's length",
                    "found " + config.rope.type);
    }
}

std::vector<Site> StreamingMixer::sites() const {
    Site site = maps_.site(true);
    if (by_cache_) site.key_size *= 2;
    return {site};
}

at::Tensor StreamingMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    const at::Tensor all = maps_.heads(normed, context.cancellation);
    const auto [both, values] = model::split_heads(all, maps_.query_heads() + maps_.key_value_heads());
    at::Tensor query_key = maps_.with_norms(both);
    at::Tensor value = maps_.clipped(values).transpose(1, 2);
    const auto [queries, keys] =
        model::split_heads(announce_and_rotate(maps_, query_key, value, context), maps_.query_heads());
    at::Tensor query = queries.transpose(1, 2), key = keys.transpose(1, 2);
    kernels::ScoreRule rule = rule_;
    rule.query_offset = context.first_position;
    auto* held = dynamic_cast<KeyValueCache*>(cache);
    if (held) {
        join_cache(maps_, query_key, key, value, context, *held);
        // Evicted keys lie between the first keys and the window; all others move closer by their number.
        rule.query_offset -= held->forgotten();
        if (held->forgotten() > 0 && (context.edits(model::Point::scores) || context.edits(model::Point::pattern)))
            throw Error(ErrorCode::unsupported, "layer " + std::to_string(context.layer.value),
                        "expected no edits of scores and pattern where the cache has dropped keys", "found some");
    }
    if (by_cache_) {
        const at::Tensor near =
            context.rotary->rotate(query_key.narrow(2, 0, maps_.query_heads()), bounded(context, first_ + window_ - 1));
        query = at::cat({query, near.transpose(1, 2)}, 3);
        const at::Tensor early = (at::arange(key.size(2), key.options().dtype(at::kLong)) < first_).unsqueeze(1);
        key = at::cat({key.masked_fill(early, 0), key.masked_fill(early.logical_not(), 0)}, 3);
    }
    if (context.lengths) rule.query_length = rule.key_length = *context.lengths;
    const at::Tensor output = attend(query, key, value, rule, context.site, context);
    // Angles that depend on the text's length are recomputed for the whole text.
    if (held && !context.history_rotation) held->keep(first_, window_ - 1);
    return output;
}

std::unique_ptr<MixerCache> StreamingMixer::new_cache() const {
    return std::make_unique<KeyValueCache>();
}

std::unique_ptr<Mixer> make_streaming(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<StreamingMixer>(config, layer);
}

}  // namespace headscope::mixers

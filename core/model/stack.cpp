// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/stack.h"

#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/cache.h"
#include "core/model/check_batch.h"

namespace headscope::model {
namespace {

constexpr LayerIndex kNoLayer{-1};

void announce(Probe* probe, std::string_view name, LayerIndex layer, const at::Tensor& value) {
    if (probe && probe->wants(name, layer)) probe->announce(name, layer, value);
}

void check_cache(const Cache& cache, const ModelConfig& config, const Batch& batch) {
    if (!config.causal) throw Error(ErrorCode::usage, "cache", "expected a causal model", "found an encoder");
    if (cache.spoiled()) {
        throw Error(ErrorCode::usage, "cache", "expected one whose passes all ended",
                    "found one that was stopped within");
    }
    if (!batch.lengths.empty()) {
        throw Error(ErrorCode::usage, "cache", "expected sequences of equal length", "found a padded batch");
    }
    if (cache.batch() != 0 && cache.batch() != batch.ids.size(0)) {
        throw Error(ErrorCode::usage, "cache", "expected " + std::to_string(cache.batch()) + " sequences, as it holds",
                    "found " + std::to_string(batch.ids.size(0)));
    }
}

struct SpoilUnlessDone {
    Cache* cache;
    ~SpoilUnlessDone() {
        if (cache) cache->spoil();
    }
};

bool padded(const Batch& batch) {
    for (const std::int64_t length : batch.lengths) {
        if (length != batch.ids.size(1)) return true;
    }
    return false;
}

}  // namespace

at::Tensor Stack::forward(const Batch& batch, const ForwardOptions& options) {
    try {
        const c10::InferenceMode inference;
        check_batch(batch, config_, options.cache ? options.cache->length() : 0, options.beyond_positions);
        if (options.cache) check_cache(*options.cache, config_, batch);
        SpoilUnlessDone guard{options.cache};
        at::Tensor hidden = run(batch, options);
        guard.cache = nullptr;
        return hidden;
    } catch (...) {
        throw current_error("model");
    }
}

at::Tensor Stack::run(const Batch& batch, const ForwardOptions& options) {
    const std::int64_t held = options.cache ? options.cache->length() : 0;
    const std::int64_t length = batch.ids.size(1);

    mixers::StackContext context;
    context.sites = &sites_;
    context.first_position = held;
    context.lengths = padded(batch) ? &batch.lengths : nullptr;
    context.probe = options.probe;
    context.cancellation = options.cancellation;
    RotaryTable rotation, history;
    if (rotary_) {
        const at::ScalarType type = embedding_.tokens.scalar_type();
        rotation = rotary_->table(held, length, type);
        context.rotary = &*rotary_;
        context.rotation = &rotation;
        if (options.cache && rotary_->depends_on_length()) {
            history = rotary_->table(0, held + length, type);
            context.history_rotation = &history;
        }
    }

    at::Tensor hidden = embedding_(batch, held);
    context.input_embedding = hidden;
    announce(options.probe, "embedding", kNoLayer, hidden);
    for (std::size_t number = 0; number < layers_.size(); ++number) {
        if (options.cancellation) options.cancellation->check();
        if (options.skip_layers.count(static_cast<int>(number)) == 0) {
            context.layer = LayerIndex(static_cast<std::int64_t>(number));
            context.site = SiteIndex(layers_[number].first_site);
            hidden =
                run_layer(layers_[number], hidden, context, options.cache ? &options.cache->layer(number) : nullptr);
            announce(options.probe, "hidden", context.layer, hidden);
        }
        if (options.after_layer) options.after_layer(static_cast<int>(number));
    }
    if (options.cache) options.cache->advance(batch.ids.size(0), length);
    hidden = final_norm_(hidden);
    announce(options.probe, "final_norm", kNoLayer, hidden);
    return hidden;
}

at::Tensor Stack::run_layer(const Layer& layer, const at::Tensor& hidden, const mixers::StackContext& context,
                            mixers::MixerCache* cache) const {
    const bool pre_norm = config_.pre_norm;
    const auto add = [pre_norm](const at::Tensor& residual, const at::Tensor& update, const Norm& norm) {
        const at::Tensor sum = residual + update;
        return pre_norm ? sum : norm(sum);
    };
    const at::Tensor read = pre_norm ? layer.input_norm(hidden) : hidden;
    context.announce("input_norm", read);
    const at::Tensor attention = layer.output(layer.mixer->forward(read, context, cache), context.cancellation);
    context.announce("attention_output", attention);
    const at::Tensor middle = add(hidden, attention, layer.input_norm);

    if (context.cancellation) context.cancellation->check();
    const at::Tensor update =
        layer.feed_forward(pre_norm ? layer.feed_forward_norm(middle) : middle, context.cancellation);
    context.announce("feed_forward_output", update);
    return add(middle, update, layer.feed_forward_norm);
}

at::Tensor Stack::logits(const at::Tensor& hidden_rows, Probe* probe) {
    if (!head_.there) {
        throw Error(ErrorCode::usage, escaped(config_.name), "expected a model with a head for the vocabulary",
                    "found none in the file");
    }
    try {
        const c10::InferenceMode inference;
        at::Tensor rows = head_(hidden_rows);
        announce(probe, "logits", kNoLayer, rows);
        return rows;
    } catch (...) {
        throw current_error("logits");
    }
}

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/stack.h"

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
    mixers::StackContext context;
    context.sites = &sites_;
    context.lengths = padded(batch) ? &batch.lengths : nullptr;
    context.probe = options.probe;
    context.cancellation = options.cancellation;
    const at::Tensor hidden = text_.run(batch, options, context);
    if (options.cache) options.cache->advance(batch.ids.size(0), batch.ids.size(1));
    return hidden;
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

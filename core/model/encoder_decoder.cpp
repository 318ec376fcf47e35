// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/encoder_decoder.h"

#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/cache.h"
#include "core/model/check_batch.h"
#include "core/model/head_logits.h"
#include "core/model/tensor_plan.h"

namespace headscope::model {

EncoderDecoder::EncoderDecoder(Blueprint blueprint, const checkpoint::Checkpoint& file,
                               std::optional<checkpoint::LoadAs> precision, Progress* progress,
                               const Cancellation* cancellation)
    : config_(std::move(blueprint.config)) {
    TensorPlan plan(file);
    for (const std::string& note : blueprint.notes) plan.note(note);
    plan.begin_tower(*config_.encoder, *blueprint.encoder_names);
    encoder_.declare(plan, *blueprint.encoder_names, {0, "encoder", "tokens", "tokens"}, sites_);
    plan.begin_tower(config_, blueprint.names);
    decoder_.declare(plan, blueprint.names, {config_.encoder->layers, "decoder", "target", "tokens"}, sites_);
    head_.declare(plan, blueprint.names);
    report_ = plan.check();
    parameters_ = plan.elements();
    if (!precision) return;
    plan.load(choose_precision(file, *precision), progress, cancellation);
    if (head_.there && !head_.vocabulary.weight.defined()) head_.vocabulary.weight = decoder_.embedding().tokens;
}

std::vector<std::string> EncoderDecoder::mixers() const {
    std::vector<std::string> names;
    encoder_.add_mixers(names);
    decoder_.add_mixers(names);
    return names;
}

std::unique_ptr<Cache> EncoderDecoder::new_cache() const {
    std::vector<std::unique_ptr<mixers::MixerCache>> caches;
    decoder_.add_caches(caches);
    return std::make_unique<Cache>(std::move(caches));
}

at::Tensor EncoderDecoder::forward(const Batch& batch, const ForwardOptions& options) {
    try {
        const c10::InferenceMode inference;
        check_batch(batch, config_, options.cache ? options.cache->length() : 0, options.beyond_positions);
        if (options.cache) check_cache(*options.cache, config_, batch);
        check_switched_off(options.switched_off, sites_, options.cache != nullptr);
        CachePass pass(options.cache);
        at::Tensor hidden = run(batch, options);
        pass.done(batch.target.size(0), batch.target.size(1));
        return hidden;
    } catch (...) {
        throw current_error("model");
    }
}

at::Tensor EncoderDecoder::run(const Batch& batch, const ForwardOptions& options) {
    mixers::StackContext context;
    context.sites = &sites_;
    context.switched_off = options.switched_off.empty() ? nullptr : &options.switched_off;
    context.probe = options.probe;
    context.cancellation = options.cancellation;
    at::Tensor memory;
    if (!options.cache || options.cache->length() == 0) {
        ForwardOptions encode = options;
        encode.cache = nullptr;
        mixers::StackContext source = context;
        source.lengths = batch.padded() ? &batch.lengths : nullptr;
        memory = encoder_.run(batch, encode, source);
    }
    context.memory = memory;
    context.memory_lengths = batch.padded() ? &batch.lengths : nullptr;
    context.lengths = batch.target_padded() ? &batch.target_lengths : nullptr;
    return decoder_.run({batch.target, batch.target_lengths, {}}, options, context);
}

at::Tensor EncoderDecoder::logits(const at::Tensor& hidden_rows, Probe* probe) {
    return head_logits(head_, config_, hidden_rows, probe);
}

}  // namespace headscope::model

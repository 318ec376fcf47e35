// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/towers/stack.h"

#include <deque>
#include <map>
#include <set>

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/heads/head_logits.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/towers/cache.h"
#include "core/model/towers/check_batch.h"
#include "core/model/towers/moved_passes.h"

namespace headscope::model {

Stack::Stack(Blueprint blueprint, const checkpoint::Checkpoint& file, std::optional<checkpoint::LoadAs> precision,
             Residence residence, Progress* progress, const Cancellation* cancellation)
    : Stack(std::move(blueprint), TensorPlan(file), [&](TensorPlan& plan) {
          if (!precision) return;
          const checkpoint::LoadAs as = choose_precision(file, *precision);
          if (residence == Residence::float32) return plan.load(as, progress, cancellation);
          weights_ =
              std::make_unique<LayerWeights>(plan, file.shared_from_this(), as, residence, progress, cancellation);
          last_.set_weights(weights_.get());
          if (encoder_) encoder_->set_weights(weights_.get());
      }) {}

Stack::Stack(Blueprint blueprint, TensorPlan plan, const std::function<void(TensorPlan&)>& fill)
    : config_(std::move(blueprint.config)) {
    for (const std::string& note : blueprint.notes) plan.note(note);
    TowerPlace place;
    if (config_.encoder) {
        plan.begin_tower(*config_.encoder, *blueprint.encoder_names);
        encoder_.emplace().declare(plan, *blueprint.encoder_names, {0, "encoder", "tokens", "tokens"}, sites_);
        place = {config_.encoder->layers, "decoder", "target", "tokens"};
    }
    plan.begin_tower(config_, blueprint.names);
    last_.declare(plan, blueprint.names, place, sites_);
    head_.declare(plan, blueprint.names);
    report_ = plan.check();
    parameters_ = plan.elements();
    sizes_ = plan.sizes();
    attention_parameters_ = plan.weights(TensorPlan::Part::attention);
    embedding_parameters_ = plan.weights(TensorPlan::Part::embedding);
    // Per-word tables count, special tokens' own rows do not.
    if (!config_.hashed.is_table() && config_.hashed.kind != tokenizer::EmbeddingKind::emb)
        embedding_parameters_ -= tokenizer::kSpecialTokens * config_.hidden;
    fill(plan);
    report_.not_finite = weights_ ? weights_->not_finite() : plan.report().not_finite;
    std::set<at::Tensor*> places;
    for (const TensorPlan::Want& want : plan.wants())
        if (want.into && places.insert(want.into).second) tensors_.push_back(want.into);
    has_tied_head_ = head_.there && !head_.vocabulary.weight.defined() && !head_.stored;
    tie_head();
}

void Stack::tie_head() {
    if (!has_tied_head_) return;
    head_.vocabulary.weight = last_.embedding().tokens;
    head_.stored = last_.embedding().stored;
}

void Stack::to(const at::Device& device) {
    if (device == device_) return;
    std::map<const c10::TensorImpl*, at::Tensor> moved;  // tensors that several places share stay one
    to(device, [&](const at::Tensor& tensor) {
        if (tensor.requires_grad())
            throw Error(ErrorCode::usage, "device", "expected a model that is not trained", "found one of a Trainable");
        const auto [found, is_new] = moved.emplace(tensor.unsafeGetTensorImpl(), at::Tensor());
        if (is_new) found->second = tensor.to(device);
        return found->second;
    });
}

void Stack::to(const at::Device& device, const std::function<at::Tensor(const at::Tensor&)>& counterpart) {
    try {
        std::vector<at::Tensor> moved;
        for (const at::Tensor* tensor : tensors_) moved.push_back(tensor->defined() ? counterpart(*tensor) : *tensor);
        for (std::size_t i = 0; i < moved.size(); ++i) *tensors_[i] = moved[i];
    } catch (...) {
        throw current_error("device");
    }
    tie_head();
    device_ = device;
    if (weights_) weights_->set_device(device);
    last_.set_device(device);
    if (encoder_) encoder_->set_device(device);
}

std::vector<std::string> Stack::mixers() const {
    std::vector<std::string> names;
    if (encoder_) encoder_->add_mixers(names);
    last_.add_mixers(names);
    return names;
}

std::unique_ptr<Cache> Stack::new_cache() const {
    std::vector<std::unique_ptr<mixers::MixerCache>> caches;
    last_.add_caches(caches);
    return std::make_unique<Cache>(std::move(caches));
}

at::Tensor Stack::forward(const Batch& batch, const ForwardOptions& options) {
    return on_processor(forward_on_device(batch, options));
}

at::Tensor Stack::forward_on_device(const Batch& batch, const ForwardOptions& options) {
    WaitingTensors waiting;
    std::vector<WaitingTensors::Slot> hidden = run({{&batch, options}}, waiting);
    return waiting.take(hidden.front());
}

void Stack::forward_each(const std::vector<Pass>& passes, const WaitingPlace& place, const Finished& finished) {
    // One pass waits for no other.
    WaitingTensors waiting(passes.size() > 1 ? place : WaitingPlace());
    std::vector<WaitingTensors::Slot> hidden = run(passes, waiting);
    for (std::size_t i = 0; i < hidden.size(); ++i) finished(i, on_processor(waiting.take(hidden[i])));
}

std::vector<WaitingTensors::Slot> Stack::run(const std::vector<Pass>& passes, WaitingTensors& waiting) {
    try {
        std::optional<c10::InferenceMode> inference;
        const bool trains = !passes.empty() && passes.front().options.training;
        if (!trains) inference.emplace();
        const at::AutoGradMode recording(trains);
        for (const auto& [batch, options] : passes) {
            check_batch(*batch, config_, options.cache ? options.cache->length() : 0, options.beyond_positions);
            if (options.cache) check_cache(*options.cache, config_, *batch);
            check_segments(options.segments, config_);
            check_only_position(options, *batch);
        }
        for (const auto& [batch, options] : passes) {
            if (!options.editor) continue;
            const bool continues = options.cache && options.cache->length() > 0;
            options.editor->begin({options.cache != nullptr, continues, &options.skip_layers});
        }
        std::deque<CachePass> caches;
        for (const auto& [batch, options] : passes) caches.emplace_back(options.cache);
        if (weights_) weights_->release_tables();
        std::vector<WaitingTensors::Slot> hidden = run_towers(passes, waiting);
        if (weights_) {
            weights_->release();
            report_.not_finite = weights_->not_finite();
        }
        for (const auto& [batch, options] : passes)
            if (options.editor) options.editor->end();
        for (std::size_t i = 0; i < passes.size(); ++i) {
            const at::Tensor& read = encoder_ ? passes[i].batch->target : passes[i].batch->ids;
            caches[i].done(read.size(0), read.size(1));
        }
        return hidden;
    } catch (...) {
        throw current_error("model");
    }
}

std::vector<WaitingTensors::Slot> Stack::run_towers(const std::vector<Pass>& given, WaitingTensors& waiting) {
    const MovedPasses moved(given, device_);
    const std::vector<Pass>& passes = moved.passes();
    std::vector<Tower::Start> starts;
    for (const auto& [batch, options] : passes) {
        mixers::StackContext context;
        context.sites = &sites_;
        context.editor = options.editor;
        context.probe = options.probe;
        context.cancellation = options.cancellation;
        context.segments = &options.segments;
        context.lengths = batch->padded() ? &batch->lengths : nullptr;
        starts.push_back({batch, &options, context, nullptr});
    }
    if (!encoder_) return last_.run(starts, waiting);

    std::vector<ForwardOptions> encode;  // of those whose encoder runs
    std::vector<Tower::Start> sources;
    std::vector<std::size_t> reading;
    encode.reserve(passes.size());
    for (std::size_t i = 0; i < passes.size(); ++i) {
        const Cache* cache = passes[i].options.cache;
        if (cache && cache->length() > 0) continue;
        encode.push_back(passes[i].options);
        encode.back().cache = nullptr;
        sources.push_back({passes[i].batch, &encode.back(), starts[i].context, nullptr});
        reading.push_back(i);
    }
    const std::vector<WaitingTensors::Slot> memory = encoder_->run(sources, waiting);
    for (std::size_t i = 0; i < reading.size(); ++i) starts[reading[i]].memory = &memory[i];
    std::vector<Batch> targets(passes.size());
    for (std::size_t i = 0; i < passes.size(); ++i) {
        const Batch& batch = *passes[i].batch;
        mixers::StackContext& context = starts[i].context;
        context.memory_lengths = context.lengths;
        context.lengths = batch.target_padded() ? &batch.target_lengths : nullptr;
        targets[i].ids = batch.target;
        targets[i].lengths = batch.target_lengths;
        starts[i].batch = &targets[i];
    }
    return last_.run(starts, waiting);
}

at::Tensor Stack::logits(const at::Tensor& hidden_rows, Probe* probe) {
    return on_processor(logits_on_device(hidden_rows, probe));
}

at::Tensor Stack::logits_on_device(const at::Tensor& hidden_rows, Probe* probe) {
    return head_logits(head_, config_, on_device(hidden_rows, device_), probe);
}

}  // namespace headscope::model

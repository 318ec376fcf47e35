// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/stack.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/cache.h"
#include "core/model/check_batch.h"
#include "core/model/head_logits.h"
#include "core/model/tensor_plan.h"

namespace headscope::model {

Stack::Stack(Blueprint blueprint, const checkpoint::Checkpoint& file, std::optional<checkpoint::LoadAs> precision,
             Progress* progress, const Cancellation* cancellation)
    : Stack(std::move(blueprint), TensorPlan(file), [&](TensorPlan& plan) {
          if (precision) plan.load(choose_precision(file, *precision), progress, cancellation);
      }) {}

Stack::Stack(Blueprint blueprint, TensorPlan plan, const std::function<void(TensorPlan&)>& fill)
    : config_(std::move(blueprint.config)) {
    for (const std::string& note : blueprint.notes) plan.note(note);
    plan.begin_tower(config_, blueprint.names);
    text_.declare(plan, blueprint.names, {}, sites_);
    head_.declare(plan, blueprint.names);
    report_ = plan.check();
    parameters_ = plan.elements();
    fill(plan);
    if (head_.there && !head_.vocabulary.weight.defined()) head_.vocabulary.weight = text_.embedding().tokens;
}

std::vector<std::string> Stack::mixers() const {
    std::vector<std::string> names;
    text_.add_mixers(names);
    return names;
}

std::unique_ptr<Cache> Stack::new_cache() const {
    std::vector<std::unique_ptr<mixers::MixerCache>> caches;
    text_.add_caches(caches);
    return std::make_unique<Cache>(std::move(caches));
}

at::Tensor Stack::forward(const Batch& batch, const ForwardOptions& options) {
    try {
        std::optional<c10::InferenceMode> inference;
        if (!options.training) inference.emplace();
        const at::AutoGradMode recording(options.training != nullptr);
        check_batch(batch, config_, options.cache ? options.cache->length() : 0, options.beyond_positions);
        if (options.cache) check_cache(*options.cache, config_, batch);
        check_switched_off(options.switched_off, sites_, options.cache != nullptr);
        CachePass pass(options.cache);
        mixers::StackContext context;
        context.sites = &sites_;
        context.lengths = batch.padded() ? &batch.lengths : nullptr;
        context.switched_off = options.switched_off.empty() ? nullptr : &options.switched_off;
        context.probe = options.probe;
        context.cancellation = options.cancellation;
        at::Tensor hidden = text_.run(batch, options, context);
        pass.done(batch.ids.size(0), batch.ids.size(1));
        return hidden;
    } catch (...) {
        throw current_error("model");
    }
}

at::Tensor Stack::logits(const at::Tensor& hidden_rows, Probe* probe) {
    return head_logits(head_, config_, hidden_rows, probe);
}

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/gated_deltanet.h"

#include <cmath>

#include <ATen/TensorOperators.h>

#include "core/mixers/shared/recurrence.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/model/tensor_plan.h"

namespace headscope::mixers {
namespace {

class DeltaCache final : public MixerCache {
public:
    std::int64_t bytes() const override {
        return state.bytes() + (before.defined() ? static_cast<std::int64_t>(before.nbytes()) : 0);
    }
    std::unique_ptr<MixerCache> clone() const override {
        auto copy = std::make_unique<DeltaCache>();
        copy->state = state.clone();
        if (before.defined()) copy->before = before.clone();
        return copy;
    }

    RecurrentCache state;
    at::Tensor before;  ///< the convolution's last inputs
};

}  // namespace

GatedDeltaMixer::GatedDeltaMixer(const MixerType& type, const model::ModelConfig& config)
    : type_(&type),
      parts_(DeltaSizes(type, config), &type == &kGatedDeltaNet, config.mixer_options.get<bool>(type, "use_gate"),
             config.mixer_options.get<bool>(type, kNegativeEigenvalue.key)) {}

void GatedDeltaMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    norm_.declare(plan, names.layer_stem + own.stem + own.norm, {parts_.sizes().value_size, "head_dim * expand_v"},
                  false);
}

at::Tensor GatedDeltaMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    const auto heads = parts_.heads(normed, held ? &held->before : nullptr, context.cancellation);
    context.announce("query", heads.query);
    context.announce("key", heads.key);
    context.announce("value", heads.value);
    Recurrence what;
    what.query = unit_length(heads.query);
    what.key = unit_length(heads.key);
    what.value = heads.value;
    what.write = parts_.write(normed);
    what.log_decay = parts_.log_decay(normed);
    what.rule.scale = 1.0 / std::sqrt(static_cast<double>(parts_.sizes().key_size));
    StackContext own = context;
    own.output_projection = nullptr;  // the norm lies between
    const at::Tensor output = recur(what, held ? &held->state : nullptr, context.site, own);
    const at::Tensor normal = norm_(output.unflatten(2, {parts_.sizes().heads, parts_.sizes().value_size})).flatten(2);
    const at::Tensor gate = parts_.gate(normed, context.cancellation);
    return gate.defined() ? normal * gate : normal;
}

std::unique_ptr<MixerCache> GatedDeltaMixer::new_cache() const {
    return std::make_unique<DeltaCache>();
}

}  // namespace headscope::mixers

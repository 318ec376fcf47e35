// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/relu.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/types/gated_deltanet.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// Gated DeltaNet (kGatedDeltaNet) and, without decay, DeltaNet (kDeltaNet), in the conventions of
/// flash-linear-attention: unit queries and keys (DeltaNet: or what its options say), an RMS norm of each head's output
/// times the gate. Linear time, a cache of constant size.
class GatedDeltaMixer final : public Mixer {
public:
    GatedDeltaMixer(const MixerType& type, const model::ModelConfig& config);

    const MixerType& type() const override { return *type_; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override { return {parts_.site()}; }
    std::int64_t output_size() const override { return parts_.sizes().value_rows(); }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    const MixerType* type_;
    std::string activation_, unit_;  ///< DeltaNet's qk_activation and qk_norm
    DeltaParts parts_;
    model::Norm norm_;  ///< of each head's output
};

namespace {

/// DeltaNet's option; Gated DeltaNet has no other than `usual`.
std::string said(const MixerType& type, const model::ModelConfig& config, const char* key, const char* usual) {
    return &type == &kDeltaNet ? config.mixer_options.get<std::string>(type, key) : usual;
}

at::Tensor activated(const at::Tensor& x, const std::string& name) {
    if (name == "relu") return at::relu(x);
    if (name == "elu") return at::elu(x) + 1;
    return x;  // silu: it came with the convolution
}

at::Tensor over_sum(const at::Tensor& x) {
    return x / x.sum(-1, true);
}

}  // namespace

GatedDeltaMixer::GatedDeltaMixer(const MixerType& type, const model::ModelConfig& config)
    : type_(&type),
      activation_(said(type, config, "qk_activation", "silu")),
      unit_(said(type, config, "qk_norm", "l2")),
      parts_(DeltaSizes(type, config), &type == &kGatedDeltaNet, config.mixer_options.get<bool>(type, "use_gate"),
             config.mixer_options.get<bool>(type, kNegativeEigenvalue.name),
             activation_ == "silu" ? DeltaActivation::all : DeltaActivation::value,
             &type == &kGatedDeltaNet || config.mixer_options.get<bool>(type, "use_beta"),
             &type == &kGatedDeltaNet && config.sigmoid_gate) {}

void GatedDeltaMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    parts_.declare(plan, names);
    const model::RecurrentNames& own = names.in_layer.recurrent;
    norm_.declare_recurrent(plan, names.layer_stem + own.stem + own.norm,
                            {parts_.sizes().value_size, own.keys.value_size});
}

at::Tensor GatedDeltaMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    auto heads = parts_.heads(normed, held ? &held->before : nullptr, context.cancellation);
    heads.query = context.pass(model::Point::query, heads.query);
    heads.key = context.pass(model::Point::key, heads.key);
    heads.value = context.pass(model::Point::value, heads.value);
    Recurrence what;
    const auto unit = unit_ == "sum" ? over_sum : unit_length;
    what.query = unit(activated(heads.query, activation_));
    what.key = unit(activated(heads.key, activation_));
    what.value = heads.value;
    const DeltaParts::Rates rates = parts_.rates(normed);
    what.write = rates.write;
    what.log_decay = rates.log_decay;
    what.rule.scale = 1.0 / std::sqrt(static_cast<double>(parts_.sizes().key_size));
    StackContext own = context;
    own.output_projection = nullptr;  // the norm lies between
    const at::Tensor output = recur(what, held ? &held->state : nullptr, context.site, own);
    const at::Tensor normal = norm_(output.unflatten(2, {parts_.sizes().heads, parts_.sizes().value_size})).flatten(2);
    const at::Tensor gate = parts_.gate(normed, context.cancellation, heads.gate);
    return gate.defined() ? normal * gate : normal;
}

std::unique_ptr<MixerCache> GatedDeltaMixer::new_cache() const {
    return std::make_unique<DeltaCache>();
}

std::unique_ptr<Mixer> make_gated_delta(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<GatedDeltaMixer>(type, config);
}

}  // namespace headscope::mixers

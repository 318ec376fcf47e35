// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/TensorOperators.h>

#include "core/mixers/factories.h"
#include "core/mixers/linear/mamba2.h"
#include "core/mixers/mixer.h"
#include "core/mixers/standard.h"
#include "core/mixers/types/side_by_side.h"
#include "core/model/blocks.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// Falcon-H1's: softmax attention and Mamba2 of the same input, each with an output projection of its own and factors
/// before and behind it (ModelConfig::branch_factors), added. Two sites: branch "softmax", then "linear". What both
/// announce under one name comes twice, the softmax's first.
class SideBySideMixer final : public Mixer {
public:
    SideBySideMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kSideBySide; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return hidden_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;
    /// The softmax attention's, with its factors.
    std::optional<HeadMaps> head_maps() const override;

private:
    StandardMixer attention_;
    Mamba2Mixer state_;
    model::Linear attention_output_, state_output_;
    model::BranchFactors factors_;
    std::int64_t hidden_;
};

namespace {

struct TwoCaches final : MixerCache {
    TwoCaches(std::unique_ptr<MixerCache> of_attention, std::unique_ptr<MixerCache> of_state)
        : attention(std::move(of_attention)), state(std::move(of_state)) {}
    std::int64_t bytes() const override { return attention->bytes() + state->bytes(); }
    std::unique_ptr<MixerCache> clone() const override {
        return std::make_unique<TwoCaches>(attention->clone(), state->clone());
    }
    std::unique_ptr<MixerCache> chosen(const at::Tensor& sequences) const override {
        return std::make_unique<TwoCaches>(attention->chosen(sequences), state->chosen(sequences));
    }

    std::unique_ptr<MixerCache> attention, state;
};

at::Tensor times(const at::Tensor& x, double factor) {
    return factor == 1 ? x : x * factor;
}

}  // namespace

SideBySideMixer::SideBySideMixer(const model::ModelConfig& config, std::int64_t layer)
    : attention_(kStandard, config, layer), state_(config), factors_(config.branch_factors), hidden_(config.hidden) {}

void SideBySideMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::ModelConfig& config = plan.config();
    const model::SizeKeys& keys = plan.keys();
    const model::Dimension hidden{hidden_, keys.hidden};
    attention_.declare(plan, names);
    attention_output_.declare(plan, names.layer_stem + "self_attn.o_proj", hidden,
                              {attention_.output_size(), keys.heads + " * " + keys.head_size}, config.output_bias);
    state_.declare(plan, names);
    state_output_.declare(plan, names.layer_stem + names.in_layer.recurrent.stem + "out_proj", hidden,
                          {state_.output_size(), names.in_layer.recurrent.keys.inner},
                          config.branch_factors.state_bias);
}

std::vector<Site> SideBySideMixer::sites() const {
    Site softmax = attention_.sites().front(), linear = state_.sites().front();
    softmax.branch = "softmax";
    linear.branch = "linear";
    return {softmax, linear};
}

at::Tensor SideBySideMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<TwoCaches&>(*cache) : nullptr;
    StackContext own = context;
    own.output_projection = &attention_output_.weight;
    const at::Tensor attended =
        attention_.forward(times(normed, factors_.attention_in), own, held ? held->attention.get() : nullptr);
    const at::Tensor first = times(attention_output_(attended, context.cancellation), factors_.attention_out);
    own.site = SiteIndex(context.site.value + 1);
    const at::Tensor kept = state_.forward(times(normed, factors_.state_in), own, held ? held->state.get() : nullptr);
    return first + times(state_output_(kept, context.cancellation), factors_.state_out);
}

std::optional<HeadMaps> SideBySideMixer::head_maps() const {
    std::optional<HeadMaps> maps = attention_.head_maps();
    for (at::Tensor* map : {&maps->query, &maps->key, &maps->value}) *map = times(*map, factors_.attention_in);
    maps->output = times(attention_output_.weight, factors_.attention_out);
    return maps;
}

std::unique_ptr<MixerCache> SideBySideMixer::new_cache() const {
    return std::make_unique<TwoCaches>(attention_.new_cache(), state_.new_cache());
}

std::unique_ptr<Mixer> make_side_by_side(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<SideBySideMixer>(config, layer);
}

}  // namespace headscope::mixers

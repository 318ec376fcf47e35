// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>

#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/delta_parts.h"
#include "core/mixers/shared/recurrence.h"
#include "core/mixers/types/selective_scan.h"
#include "core/model/blocks.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"

namespace headscope::mixers {

/// Mamba with norms of its step, key and query, as Jamba has it (ModelConfig::selective_scan): a recurrence of as many
/// heads as there are channels, of one number each. Its site has no matrix and one head of all channels: an implicit
/// matrix would be one of each channel. Memory of what decays: of a few tokens.
class SelectiveScanMixer final : public Mixer {
public:
    SelectiveScanMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kSelectiveScan; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return choices_.channels; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    model::SelectiveScanConfig choices_;
    model::Linear input_;               ///< rows of x, then of the gate
    at::Tensor taps_, taps_bias_;       ///< [channels, 1, taps], [channels] or undefined
    model::Linear of_channels_, step_;  ///< to rank + 2 state sizes; from rank to channels
    model::Norm step_norm_, key_norm_, query_norm_;
    at::Tensor rate_log_, direct_;  ///< [channels, state size], [channels]
};

namespace {

constexpr std::int64_t kTokensAtOnce = 64;  // whose decays, one for each number of the state, are in memory

}  // namespace

SelectiveScanMixer::SelectiveScanMixer(const model::ModelConfig& config, std::int64_t)
    : choices_(config.selective_scan) {}

void SelectiveScanMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const std::string stem = names.layer_stem + names.in_layer.recurrent.stem;
    const model::Dimension hidden{plan.config().hidden, plan.keys().hidden};
    const model::Dimension channels{choices_.channels, "mamba_expand * " + hidden.keys};
    const model::Dimension state{choices_.state_size, "mamba_d_state"}, rank{choices_.rank, "mamba_dt_rank"};
    input_.declare(plan, stem + "in_proj", {2 * channels.size, "2 * " + channels.keys}, hidden, choices_.input_bias);
    plan.want(&taps_, {stem + "conv1d.weight"}, {channels, {1, "one"}, {choices_.taps, "mamba_d_conv"}});
    if (choices_.taps_bias) plan.want(&taps_bias_, {stem + "conv1d.bias"}, {channels});
    of_channels_.declare(plan, stem + "x_proj", {rank.size + 2 * state.size, rank.keys + " + 2 * " + state.keys},
                         channels, false);
    plan.want(&step_.weight, {stem + "dt_proj.weight"}, {channels, rank});
    plan.want(&step_.bias, {stem + "dt_proj.bias"}, {channels}, model::Initial::step_bias);
    step_norm_.declare_recurrent(plan, stem + "dt_layernorm", rank);
    key_norm_.declare_recurrent(plan, stem + "b_layernorm", state);
    query_norm_.declare_recurrent(plan, stem + "c_layernorm", state);
    plan.want(&rate_log_, {stem + "A_log"}, {channels, state}, model::Initial::rate_log_from_1);
    plan.want_number(&direct_, stem + "D", {channels}, 1.0, model::Initial::number);
}

std::vector<Site> SelectiveScanMixer::sites() const {
    Site site;
    site.heads = site.key_value_heads = 1;
    site.key_size = static_cast<std::int32_t>(choices_.state_size);
    site.value_size = static_cast<std::int32_t>(choices_.channels);
    site.has_matrix = type().has_matrix;
    return {site};
}

at::Tensor SelectiveScanMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const {
    auto* held = cache ? &dynamic_cast<DeltaCache&>(*cache) : nullptr;
    const auto [before, gate] = model::split_heads(input_(normed, context.cancellation), choices_.channels);
    const at::Tensor x = short_convolution(before, taps_.select(1, 0), taps_bias_, held ? &held->before : nullptr);
    const auto [step, others] = model::split_heads(of_channels_(x, context.cancellation), choices_.rank);
    const auto [b, c] = model::split_heads(others, choices_.state_size);
    const model::Linear map{step_.weight, {}};
    const at::Tensor dt =
        at::softplus(at_least_float(map(step_norm_(step), context.cancellation)) + at_least_float(step_.bias));
    const at::Tensor key = key_norm_(b).unsqueeze(1), query = query_norm_(c).unsqueeze(1);
    const at::Tensor rate = -at_least_float(rate_log_).exp();

    // Mamba has no heads to probe. Padding comes last, so a causal scan may ignore it.
    StackContext own = context;
    own.probe = nullptr;
    own.lengths = nullptr;
    own.editor = nullptr;
    RecurrentCache fresh;
    std::vector<at::Tensor> outputs;
    for (std::int64_t first = 0; first < x.size(1); first += kTokensAtOnce) {
        const std::int64_t count = std::min(kTokensAtOnce, x.size(1) - first);
        const at::Tensor steps = dt.narrow(1, first, count).transpose(1, 2);
        Recurrence what;
        what.query = query.narrow(2, first, count);
        what.key = key.narrow(2, first, count);
        what.value = x.narrow(1, first, count).transpose(1, 2).unsqueeze(3);
        what.write = steps;
        what.log_decay = steps.unsqueeze(3) * rate.unsqueeze(1);
        what.rule.delta = false;
        what.direct = direct_;
        outputs.push_back(recur(what, held ? &held->state : &fresh, context.site, own));
    }
    return at::cat(outputs, 1) * at::silu(gate);
}

std::unique_ptr<MixerCache> SelectiveScanMixer::new_cache() const {
    return std::make_unique<DeltaCache>();
}

std::unique_ptr<Mixer> make_selective_scan(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<SelectiveScanMixer>(config, layer);
}

}  // namespace headscope::mixers

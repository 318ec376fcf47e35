// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/types/mlp.h"
#include "core/mixers/factories.h"
#include "core/mixers/mixer.h"
#include "core/mixers/shared/no_cache.h"
#include "core/model/blocks.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::mixers {

/// No token mixing (Deconstructing Attention, arXiv 2510.11602): down(SiLU(gate x) * up x) of each token for itself,
/// three maps instead of those of query, key and value. Its site has no matrix.
class MlpMixer final : public Mixer {
public:
    MlpMixer(const model::ModelConfig& config, std::int64_t layer);

    const MixerType& type() const override { return kMlp; }
    void declare(model::TensorPlan& plan, const model::TensorNames& names) override;
    std::vector<Site> sites() const override;
    std::int64_t output_size() const override { return heads_ * head_size_; }
    at::Tensor forward(const at::Tensor& normed, const StackContext& context, MixerCache* cache) const override;
    std::unique_ptr<MixerCache> new_cache() const override;

private:
    std::int64_t heads_, head_size_;
    model::FeedForward maps_;
};

namespace {

// In place of query, key and value.
constexpr const char *kGate = "self_attn.gate_proj", *kUp = "self_attn.up_proj", *kDown = "self_attn.down_proj";

}  // namespace

MlpMixer::MlpMixer(const model::ModelConfig& config, std::int64_t)
    : heads_(config.heads), head_size_(config.head_size) {}

void MlpMixer::declare(model::TensorPlan& plan, const model::TensorNames& names) {
    const model::SizeKeys& keys = plan.keys();
    const model::Dimension hidden{plan.config().hidden, keys.hidden};
    const model::Dimension inner{output_size(), keys.heads + " * " + keys.head_size};
    maps_.activation = model::Activation::silu;
    maps_.gated = true;
    plan.want_rows(&maps_.up.weight, names.layer_stem + kGate + ".weight", {inner, hidden}, 0, 2 * inner.size);
    plan.want_rows(&maps_.up.weight, names.layer_stem + kUp + ".weight", {inner, hidden}, inner.size, 2 * inner.size);
    maps_.down.declare(plan, names.layer_stem + kDown, inner, inner, false);
}

std::vector<Site> MlpMixer::sites() const {
    Site site;
    site.heads = site.key_value_heads = static_cast<std::int32_t>(heads_);
    site.key_size = site.value_size = static_cast<std::int32_t>(head_size_);
    site.has_matrix = type().has_matrix;
    return {site};
}

at::Tensor MlpMixer::forward(const at::Tensor& normed, const StackContext& context, MixerCache*) const {
    return maps_(normed, context.cancellation);
}

std::unique_ptr<MixerCache> MlpMixer::new_cache() const {
    return std::make_unique<NoCache>();
}

std::unique_ptr<Mixer> make_mlp(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<MlpMixer>(config, layer);
}

}  // namespace headscope::mixers

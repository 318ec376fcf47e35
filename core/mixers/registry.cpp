// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/mixers/differential.h"
#include "core/mixers/fourier.h"
#include "core/mixers/guided.h"
#include "core/mixers/head_variants.h"
#include "core/mixers/latent.h"
#include "core/mixers/lazy.h"
#include "core/mixers/linear/approximate.h"
#include "core/mixers/linear/gated_deltanet.h"
#include "core/mixers/linear/kimi_delta.h"
#include "core/mixers/linear/lightning.h"
#include "core/mixers/linear/linear_attention.h"
#include "core/mixers/linear/mamba2.h"
#include "core/mixers/linear/selective_scan.h"
#include "core/mixers/linear/short_convolution.h"
#include "core/mixers/linear/test_time.h"
#include "core/mixers/mixer.h"
#include "core/mixers/mlp.h"
#include "core/mixers/natsl.h"
#include "core/mixers/non_approximate.h"
#include "core/mixers/relative.h"
#include "core/mixers/side_by_side.h"
#include "core/mixers/standard.h"
#include "core/mixers/static_emb_qk.h"
#include "core/mixers/streaming_llm.h"
#include "core/mixers/token_map.h"
#include "core/mixers/types/guided.h"

namespace headscope::mixers {
namespace {

using Made = std::unique_ptr<Mixer>;

template <class M>
Made make(const MixerType&, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<M>(config, layer);
}

Made make_standard(const MixerType& type, const model::ModelConfig& config, std::int64_t layer) {
    if (config.key_value_rank > 0) return std::make_unique<LatentMixer>(config);
    if (config.positions == model::PositionKind::relative) return std::make_unique<RelativeMixer>(config);
    if (config.differential) return std::make_unique<DifferentialMixer>(config, layer);
    return std::make_unique<StandardMixer>(type, config, layer);
}

Made make_like_standard(const MixerType& type, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<StandardMixer>(type, config, layer);
}

Made make_guided(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<GuidedMixer>(type, config);
}

Made make_delta(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<GatedDeltaMixer>(type, config);
}

Made make_linear(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<LinearAttentionMixer>(type, config);
}

Made make_kimi_delta(const MixerType&, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<KimiDeltaMixer>(config);
}

Made make_mamba2(const MixerType&, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<Mamba2Mixer>(config);
}

Made make_head_variant(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<HeadVariantMixer>(type, config, HeadVariantMixer::Reads::self);
}

Made make_test_time(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<TestTimeMixer>(type, config);
}

struct Entry {
    const MixerType* type;
    Made (*make)(const MixerType&, const model::ModelConfig&, std::int64_t layer);
};

// One for each line of core/mixers/types/list.cpp, and then those that families alone have.
const Entry kMixers[] = {
    {&kStandard, make_standard},
    {&kMlp, make<MlpMixer>},
    {&kApproximate, make<ApproximateMixer>},
    {&kNonApproximate, make<NonApproximateMixer>},
    {&kRandomGuide, make_guided},
    {&kFixedGuide, make_guided},
    {&kStaticEmbedding, make<StaticEmbeddingMixer>},
    {&kGatedDeltaNet, make_delta},
    {&kDeltaNet, make_delta},
    {&kRetNet, make_linear},
    {&kGla, make_linear},
    {&kNatsl, make<NatslMixer>},
    {&kLightning, make<LightningMixer>},
    {&kKimiDelta, make_kimi_delta},
    {&kMamba2, make_mamba2},
    {&kLazy, make<LazyMixer>},
    {&kSigmoid, make_like_standard},
    {&kAlibi, make_like_standard},
    {&kSinkLogits, make_like_standard},
    {&kStreamingLlm, make<StreamingMixer>},
    {&kSingleHead, make_head_variant},
    {&kMultiQuery, make_head_variant},
    {&kSharedKeyValue, make_head_variant},
    {&kElAttention, make_head_variant},
    {&kHeadEmbeddingAdd, make_head_variant},
    {&kHeadEmbeddingMul, make_head_variant},
    {&kTttLinear, make_test_time},
    {&kTitans, make_test_time},
    {&kFourier, make<FourierMixer>},
    {&kTokenMap, make<TokenMapMixer>},
    {&kShortConvolution, make<ShortConvolutionMixer>},
    {&kSideBySide, make<SideBySideMixer>},
    {&kSelectiveScan, make<SelectiveScanMixer>},
};

}  // namespace

GuideMaps Mixer::guide_maps(const at::Tensor&, const StackContext&) const {
    throw Error(ErrorCode::usage, name(), "expected a mixer that reads a guide stream", "found one that does not");
}

std::unique_ptr<Mixer> make_mixer(std::string_view name, const model::ModelConfig& config, std::int64_t layer) {
    for (const Entry& entry : kMixers) {
        if (name == entry.type->name) return entry.make(*entry.type, config, layer);
    }
    throw Error(ErrorCode::unsupported, "mixer", "expected one of " + list_text(known_names(), 40),
                "found " + escaped(name));
}

std::unique_ptr<Mixer> make_cross_mixer(std::string_view name, const model::ModelConfig& config) {
    if (const MixerType* type = find_type(name); type != nullptr && type->in_cross)
        return std::make_unique<HeadVariantMixer>(*type, config, HeadVariantMixer::Reads::memory);
    throw Error(ErrorCode::unsupported, "mixer",
                "expected of a layer with cross-attention one of " +
                    list_text(names_where([](const MixerType& type) { return type.in_cross; }), 40),
                "found " + escaped(name));
}

}  // namespace headscope::mixers

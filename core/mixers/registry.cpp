// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/mixers/factories.h"
#include "core/mixers/head_variants.h"
#include "core/mixers/linear/mamba2.h"
#include "core/mixers/mixer.h"
#include "core/mixers/standard.h"
#include "core/mixers/types/approximate.h"
#include "core/mixers/types/fourier.h"
#include "core/mixers/types/gated_deltanet.h"
#include "core/mixers/types/guided.h"
#include "core/mixers/types/kimi_delta.h"
#include "core/mixers/types/lazy.h"
#include "core/mixers/types/lightning.h"
#include "core/mixers/types/linear_attention.h"
#include "core/mixers/types/mlp.h"
#include "core/mixers/types/natsl.h"
#include "core/mixers/types/non_approximate.h"
#include "core/mixers/types/selective_scan.h"
#include "core/mixers/types/short_convolution.h"
#include "core/mixers/types/side_by_side.h"
#include "core/mixers/types/standard.h"
#include "core/mixers/types/static_emb_qk.h"
#include "core/mixers/types/streaming_llm.h"
#include "core/mixers/types/test_time.h"
#include "core/mixers/types/token_map.h"

namespace headscope::mixers {
namespace {

using Made = std::unique_ptr<Mixer>;

Made make_standard(const MixerType& type, const model::ModelConfig& config, std::int64_t layer) {
    if (config.key_value_rank > 0) return make_latent(type, config, layer);
    if (config.positions == model::PositionKind::relative) return make_relative(type, config, layer);
    if (config.differential) return make_differential(type, config, layer);
    return std::make_unique<StandardMixer>(type, config, layer);
}

Made make_like_standard(const MixerType& type, const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<StandardMixer>(type, config, layer);
}

Made make_mamba2(const MixerType&, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<Mamba2Mixer>(config);
}

Made make_head_variant(const MixerType& type, const model::ModelConfig& config, std::int64_t) {
    return std::make_unique<HeadVariantMixer>(type, config, HeadVariantMixer::Reads::self);
}

struct Entry {
    const MixerType* type;
    Factory* make;
};

// One for each line of core/mixers/types/list.cpp, and then those that families alone have.
const Entry kMixers[] = {
    {&kStandard, make_standard},
    {&kMlp, make_mlp},
    {&kApproximate, make_approximate},
    {&kNonApproximate, make_non_approximate},
    {&kRandomGuide, make_guided},
    {&kFixedGuide, make_guided},
    {&kStaticEmbedding, make_static_embedding},
    {&kGatedDeltaNet, make_gated_delta},
    {&kDeltaNet, make_gated_delta},
    {&kRetNet, make_linear_attention},
    {&kGla, make_linear_attention},
    {&kNatsl, make_natsl},
    {&kLightning, make_lightning},
    {&kKimiDelta, make_kimi_delta},
    {&kMamba2, make_mamba2},
    {&kLazy, make_lazy},
    {&kSigmoid, make_like_standard},
    {&kAlibi, make_like_standard},
    {&kSinkLogits, make_like_standard},
    {&kStreamingLlm, make_streaming},
    {&kSingleHead, make_head_variant},
    {&kMultiQuery, make_head_variant},
    {&kSharedKeyValue, make_head_variant},
    {&kElAttention, make_head_variant},
    {&kHeadEmbeddingAdd, make_head_variant},
    {&kHeadEmbeddingMul, make_head_variant},
    {&kTttLinear, make_test_time},
    {&kTitans, make_test_time},
    {&kFourier, make_fourier},
    {&kTokenMap, make_token_map},
    {&kShortConvolution, make_short_convolution},
    {&kSideBySide, make_side_by_side},
    {&kSelectiveScan, make_selective_scan},
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

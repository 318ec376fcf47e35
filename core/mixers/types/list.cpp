// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mixers/types/alibi.h"
#include "core/mixers/types/approximate.h"
#include "core/mixers/types/fourier.h"
#include "core/mixers/types/gated_deltanet.h"
#include "core/mixers/types/guided.h"
#include "core/mixers/types/head_variants.h"
#include "core/mixers/types/kimi_delta.h"
#include "core/mixers/types/lazy.h"
#include "core/mixers/types/lightning.h"
#include "core/mixers/types/linear_attention.h"
#include "core/mixers/types/mamba2.h"
#include "core/mixers/types/mlp.h"
#include "core/mixers/types/natsl.h"
#include "core/mixers/types/non_approximate.h"
#include "core/mixers/types/sigmoid.h"
#include "core/mixers/types/sink_logits.h"
#include "core/mixers/types/standard.h"
#include "core/mixers/types/static_emb_qk.h"
#include "core/mixers/types/streaming_llm.h"
#include "core/mixers/types/test_time.h"
#include "core/mixers/types/token_map.h"

namespace headscope::mixers {

// A new mixer's line; what computes has its own in core/mixers/registry.cpp.
const std::vector<const MixerType*>& known_types() {
    static const std::vector<const MixerType*> types{&kStandard,
                                                     &kMlp,
                                                     &kApproximate,
                                                     &kNonApproximate,
                                                     &kRandomGuide,
                                                     &kFixedGuide,
                                                     &kStaticEmbedding,
                                                     &kGatedDeltaNet,
                                                     &kDeltaNet,
                                                     &kRetNet,
                                                     &kGla,
                                                     &kNatsl,
                                                     &kLightning,
                                                     &kKimiDelta,
                                                     &kMamba2,
                                                     &kLazy,
                                                     &kSigmoid,
                                                     &kAlibi,
                                                     &kSinkLogits,
                                                     &kStreamingLlm,
                                                     &kSingleHead,
                                                     &kMultiQuery,
                                                     &kSharedKeyValue,
                                                     &kElAttention,
                                                     &kHeadEmbeddingAdd,
                                                     &kHeadEmbeddingMul,
                                                     &kTttLinear,
                                                     &kTitans,
                                                     &kFourier,
                                                     &kTokenMap};
    return types;
}

const MixerType* find_type(std::string_view name) {
    for (const MixerType* type : known_types()) {
        if (name == type->name) return type;
    }
    return nullptr;
}

std::string title_of(std::string_view name) {
    const MixerType* type = find_type(name);
    return type == nullptr ? std::string(name) : type->title;
}

std::string column_title_of(std::string_view name) {
    const MixerType* type = find_type(name);
    return type == nullptr ? std::string(name) : type->column_title();
}

bool is_standard(std::string_view name) {
    return name == kStandard.name;
}

std::vector<std::string> standard_layers(std::int64_t layers) {
    return std::vector<std::string>(static_cast<std::size_t>(layers), kStandard.name);
}

std::vector<std::string> names_where(const std::function<bool(const MixerType&)>& may) {
    std::vector<std::string> names;
    for (const MixerType* type : known_types())
        if (may(*type)) names.emplace_back(type->name);
    return names;
}

std::vector<std::string> known_names() {
    return names_where([](const MixerType&) { return true; });
}

}  // namespace headscope::mixers

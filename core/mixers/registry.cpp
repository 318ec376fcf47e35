// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/mixers/approximate.h"
#include "core/mixers/fixed_seq_qk.h"
#include "core/mixers/mixer.h"
#include "core/mixers/mlp.h"
#include "core/mixers/non_approximate.h"
#include "core/mixers/rnd_emb_qk.h"
#include "core/mixers/standard.h"
#include "core/mixers/static_emb_qk.h"

namespace headscope::mixers {
namespace {

struct Entry {
    const char* name;
    const char* summary;
    std::unique_ptr<Mixer> (*make)(const model::ModelConfig&, std::int64_t layer);
};

template <class M>
std::unique_ptr<Mixer> make(const model::ModelConfig& config, std::int64_t layer) {
    return std::make_unique<M>(config, layer);
}

// A new mixer is its file beside this one and its line here.
const Entry kMixers[] = {
    {"standard", "softmax attention, with grouped heads, windows and rotary positions", make<StandardMixer>},
    {"mlp", "no token mixing: a gated feed-forward of each token", make<MlpMixer>},
    {"approximate", "a Taylor series of the second order in the place of the exponential, in linear time",
     make<ApproximateMixer>},
    {"non_approximate", "one score per key for all queries, in linear time", make<NonApproximateMixer>},
    {"rnd_emb_qk", "query and key from noise that goes through the stack, the same for every text",
     make<RandomGuideMixer>},
    {"fixed_seq_qk", "query and key from a fixed text that goes through the stack", make<FixedGuideMixer>},
    {"static_emb_qk", "query and key from the tokens' embeddings in every layer", make<StaticEmbeddingMixer>},
};

}  // namespace

GuideMaps Mixer::guide_maps(const at::Tensor&, const StackContext&) const {
    throw Error(ErrorCode::usage, name(), "expected a mixer that reads a guide stream", "found one that does not");
}

std::unique_ptr<Mixer> make_mixer(std::string_view name, const model::ModelConfig& config, std::int64_t layer) {
    std::string known;
    for (const Entry& entry : kMixers) {
        if (name == entry.name) return entry.make(config, layer);
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    throw Error(ErrorCode::unsupported, "mixer", "expected one of " + known, "found " + escaped(name));
}

std::vector<MixerDescription> known_mixers() {
    std::vector<MixerDescription> list;
    for (const Entry& entry : kMixers) list.push_back({entry.name, entry.summary});
    return list;
}

}  // namespace headscope::mixers

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/mixers/mixer.h"
#include "core/mixers/standard.h"

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
};

}  // namespace

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

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <utility>

namespace headscope::model {

/// Other mixers for some layers of a model, and perhaps another head.
struct MixerSwap {
    MixerSwap() = default;
    MixerSwap(std::map<int, std::string> mixers, std::string mixer_options = {})  // NOLINT(google-explicit-constructor)
        : layers(std::move(mixers)), options(std::move(mixer_options)) {}

    std::map<int, std::string> layers;  ///< mixer by layer, from 0
    std::string options;  ///< JSON of "mixers", options by mixer name, that replace the checkpoint's; or empty
    std::string head;     ///< JSON of a native configuration's "head", which is fresh where it is another one; or empty
};

}  // namespace headscope::model

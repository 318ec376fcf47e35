// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sizes by name, and layouts: which layers of a stack are standard and which have another mixer (docs/training.md).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/model/model.h"

namespace headscope::model {

/// An entry of resources/presets/*.json.
struct Preset {
    std::string name;
    std::int64_t hidden = 0, feed_forward = 0, layers = 0, heads = 0, vocabulary = 0, positions = 0;
    /// Pre-norm decoders with biases of query, key and value, with norms of them, with neither; BERT's encoder, GPT-2's
    /// decoder, and Vaswani et al.'s encoder-decoder, the first half of whose layers is the encoder's.
    enum Manner : std::uint8_t { qwen2, qwen3, llama, bert, gpt2, vaswani } manner = qwen2;
    std::string printed;  ///< parameters as the paper names the size; empty: ours
    std::string summary;
    std::vector<std::string> mixers{};  ///< of each layer; empty: standard
    std::string options = "{}";         ///< "mixers" of the configuration, as JSON
    double rope_theta = 10'000.0;
    bool tied = false;        ///< the head is the embedding
    bool chosen = false;      ///< sizes are ours: the paper names the model, not its sizes
    std::string more = "{}";  ///< further keys of the configuration, as JSON
};

/// Each paper's, and ours from small to large.
const std::vector<Preset>& presets();

/// A native config.json of the preset. Throws usage, with all names.
nlohmann::json preset_json(const std::string& name);

struct Layout {
    const char* name;
    const char* standard_layers;  ///< for people: which layers, counted from 1 as the paper does, are standard
};
/// The layouts of Table 11; `custom` (any list) is not among them.
const std::vector<Layout>& layouts();

/// The mixers of `layers` layers, first to last: standard where the layout has it, `mixer` elsewhere. Halves and
/// quarters are rounded down. Throws usage for an unknown layout.
std::vector<std::string> layout_mixers(const std::string& layout, const std::string& mixer, std::int64_t layers);

/// The layout that makes `mixers` out of standard layers and one other mixer; "custom" when none does.
std::string layout_of(const std::vector<std::string>& mixers);

/// A configuration (text of a config.json) as a fresh model: sizes, sites, parameters. Makes no weights.
Inspection inspect_config(const std::string& config_json);

}  // namespace headscope::model

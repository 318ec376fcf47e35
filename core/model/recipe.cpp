// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/recipe.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::model {
namespace {
// Bounds on what is computed or allocated from a configuration before the file's tensors are compared with it.
constexpr std::int64_t kMostLayers = 100'000;
constexpr std::int64_t kWidestHeads = std::int64_t{1} << 31;
}  // namespace

void read_sizes(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys,
                std::int64_t feed_forward_default) {
    config.vocabulary = reader.size(keys.vocabulary);
    config.hidden = reader.size(keys.hidden);
    config.layers = reader.size(keys.layers);
    if (config.layers > kMostLayers) reader.refuse(keys.layers, "at most " + std::to_string(kMostLayers));
    config.heads = reader.size(keys.heads);
    config.key_value_heads = reader.size(keys.key_value_heads, config.heads);
    if (config.heads % config.key_value_heads != 0) {
        reader.refuse(keys.key_value_heads, "a divisor of " + keys.heads + " (" + std::to_string(config.heads) + ")");
    }
    if (reader.has(keys.head_size)) {
        config.head_size = reader.size(keys.head_size);
    } else if (config.hidden % config.heads != 0) {
        reader.refuse(keys.heads, "a divisor of " + keys.hidden + " (" + std::to_string(config.hidden) + ")");
    } else {
        config.head_size = config.hidden / config.heads;
    }
    if (config.heads * config.head_size > kWidestHeads) {
        reader.refuse(keys.head_size, "heads of at most 2^31 numbers together");
    }
    config.feed_forward = feed_forward_default > 0 ? reader.size(keys.feed_forward, feed_forward_default)
                                                   : reader.size(keys.feed_forward);
}

std::vector<std::int64_t> read_windows(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                       std::int64_t first_windowed) {
    const std::vector<std::string> types = reader.texts("layer_types");
    if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers) {
        reader.refuse("layer_types", "a list of " + std::to_string(layers) + ", one for each layer");
    }
    for (const std::string& type : types) {
        if (type == "sliding_attention" && window == 0) {
            reader.refuse("layer_types", "no sliding_attention, as no sliding_window is in use");
        }
        if (type != "sliding_attention" && type != "full_attention") {
            reader.unsupported("layer_types", "full_attention and sliding_attention only");
        }
    }
    // Without a limit in reach of any layer there is nothing to list; `layers` is checked against the file only later.
    if (window == 0 || (types.empty() && first_windowed >= layers)) return {};
    std::vector<std::int64_t> windows;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool sliding =
            types.empty() ? layer >= first_windowed : types[static_cast<std::size_t>(layer)] == "sliding_attention";
        windows.push_back(sliding ? window : 0);
    }
    return windows;
}

void require_false(const ConfigReader& reader, const std::string& key) {
    if (reader.boolean(key, false)) reader.unsupported(key, "false or absent");
}

const Family& find_family(const ConfigReader& reader) {
    const std::string type = reader.text("model_type", "");
    std::string known;
    for (const Family* family : families()) {
        const auto& types = family->model_types;
        if (std::find(types.begin(), types.end(), type) != types.end()) return *family;
        for (const std::string& name : types) known += (known.empty() ? "" : ", ") + name;
    }
    reader.unsupported("model_type", "one of " + known);
}

}  // namespace headscope::model

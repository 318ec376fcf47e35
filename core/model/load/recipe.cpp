// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/recipe.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::model {
namespace {
// As kMostLayers, of the numbers that the heads of a token have together.
constexpr std::int64_t kWidestHeads = std::int64_t{1} << 31;
}  // namespace

void refuse_layer_configs(const ConfigReader& reader) {
    if (reader.has("per_layer_config")) reader.unsupported("per_layer_config", "none");
}

void read_sizes(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys, const SizeDefaults& defaults) {
    refuse_layer_configs(reader);
    const auto size = [&reader](const std::string& key, std::int64_t otherwise) {
        return otherwise > 0 ? reader.size(key, otherwise) : reader.size(key);
    };
    config.vocabulary =
        defaults.may_lack_vocabulary ? reader.count(keys.vocabulary, 0) : size(keys.vocabulary, defaults.vocabulary);
    config.hidden = size(keys.hidden, defaults.hidden);
    config.layers = size(keys.layers, defaults.layers);
    if (config.layers > kMostLayers) reader.refuse(keys.layers, "at most " + std::to_string(kMostLayers));
    config.heads = size(keys.heads, defaults.heads);
    if (config.heads > kMostHeads) reader.refuse(keys.heads, "at most " + std::to_string(kMostHeads));
    const bool own_groups = defaults.key_value_heads > 0 && !reader.is_null(keys.key_value_heads);
    config.key_value_heads = reader.size(keys.key_value_heads, own_groups ? defaults.key_value_heads : config.heads);
    if (config.heads % config.key_value_heads != 0) {
        reader.refuse(keys.key_value_heads, "a divisor of " + keys.heads + " (" + std::to_string(config.heads) + ")");
    }
    if (reader.has(keys.head_size)) {
        config.head_size = reader.size(keys.head_size);
    } else if (defaults.head_size > 0 && !reader.is_null(keys.head_size)) {
        config.head_size = defaults.head_size;
    } else if (config.hidden % config.heads != 0) {
        reader.refuse(keys.heads, "a divisor of " + keys.hidden + " (" + std::to_string(config.hidden) + ")");
    } else {
        config.head_size = config.hidden / config.heads;
    }
    if (config.heads * config.head_size > kWidestHeads) {
        reader.refuse(keys.head_size, "heads of at most 2^31 numbers together");
    }
    if (defaults.may_lack_feed_forward && reader.has(keys.feed_forward))
        config.feed_forward = reader.count(keys.feed_forward, 0);
    else
        config.feed_forward = size(keys.feed_forward, defaults.feed_forward);
}

void read_sizes(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys,
                std::int64_t feed_forward_default) {
    SizeDefaults defaults;
    defaults.feed_forward = feed_forward_default;
    read_sizes(config, reader, keys, defaults);
}

void read_experts(ModelConfig& config, const ConfigReader& reader, const std::string& key, std::int64_t experts,
                  std::int64_t per_token) {
    config.experts = reader.size(key, experts);
    // Each may have tensors of its own, which are asked for before the file is.
    if (config.layers * config.experts > kMostHeads)
        reader.refuse(key, "at most " + std::to_string(kMostHeads) + " experts, of all layers");
    config.experts_per_token = reader.size("num_experts_per_tok", per_token);
    if (config.experts_per_token > config.experts)
        reader.refuse("num_experts_per_tok", "no more than there are experts");
}

namespace {

/// Number of labels: id2label's, which goes before num_labels, or two.
std::int64_t read_classes(const ConfigReader& reader) {
    const auto labels = reader.view("id2label");
    const auto named = labels ? static_cast<std::int64_t>(labels->object().size()) : 0;
    if (labels && named == 0) reader.refuse("id2label", "a name for each class");
    const std::int64_t classes = reader.size("num_labels", labels ? named : 2);
    if (labels && classes != named) reader.refuse("num_labels", std::to_string(named) + ", as many as id2label names");
    return classes;
}

std::string read_problem_type(const ConfigReader& reader, std::int64_t classes) {
    const std::string key = "problem_type", single = "single_label_classification";
    const std::string type = reader.text(key, "");
    if (!type.empty() && type != "regression" && type != single && type != "multi_label_classification")
        reader.unsupported(key, "regression, single_label_classification or multi_label_classification");
    if (type == single && classes == 1) reader.refuse(key, "regression, for one label");
    return type;
}

/// True if a class of `architectures` ends in `task`.
bool is_for(const ConfigReader& reader, std::string_view task) {
    const std::vector<std::string> classes = reader.texts("architectures");
    return std::any_of(classes.begin(), classes.end(),
                       [task](const std::string& name) { return std::string_view(name).ends_with(task); });
}

constexpr const char* kOfTexts = "ForSequenceClassification";

}  // namespace

void read_class_head(ModelConfig& config, const ConfigReader& reader, Activation activation) {
    const bool of_text = is_for(reader, kOfTexts);
    if (!of_text && !is_for(reader, "ForTokenClassification")) return;
    config.head = of_text ? HeadKind::sequence_classes : HeadKind::token_classes;
    config.classes = read_classes(reader);
    if (of_text) config.problem_type = read_problem_type(reader, config.classes);
    config.head_transform = of_text;
    config.head_transform_bias = true;
    config.head_transform_norm = config.tied_head = false;
    config.head_activation = activation;
    config.head_bias = true;
}

void name_class_head(TensorNames& names, const ModelConfig& config, const std::string& dense,
                     const std::string& classes) {
    if (!config.has_classes()) return;
    names.keys.classes = "id2label";
    names.head = classes;
    names.head_bias = {classes + ".bias"};
    if (config.head == HeadKind::sequence_classes) names.head_transform = dense;
}

void read_score_head(ModelConfig& config, const ConfigReader& reader) {
    if (!is_for(reader, kOfTexts)) return;
    config.head = HeadKind::sequence_classes;
    config.text_pooling = TextPooling::last;
    config.classes = read_classes(reader);
    config.problem_type = read_problem_type(reader, config.classes);
    config.head_transform = config.head_bias = config.tied_head = false;
}

void name_score_head(TensorNames& names, const ModelConfig& config) {
    if (config.head != HeadKind::sequence_classes || config.text_pooling != TextPooling::last) return;
    names.keys.classes = "id2label";
    names.head = "score";
}

void name_joint_class_head(TensorNames& names, const ModelConfig& config) {
    const bool of_text = config.head == HeadKind::sequence_classes;
    name_class_head(names, config, "classifier.dense", of_text ? "classifier.out_proj" : "classifier");
}

void read_text_pooling(ModelConfig& config, const ConfigReader& reader, const std::string& first,
                       const std::vector<std::string>& known, const std::string& otherwise) {
    const std::string key = "classifier_pooling", said = reader.text(key, otherwise);
    if (config.head != HeadKind::sequence_classes) return;
    if (std::find(known.begin(), known.end(), said) == known.end()) {
        std::string all;
        for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
        reader.unsupported(key, "one of " + all);
    }
    config.text_pooling = said == first ? TextPooling::first : said == "mean" ? TextPooling::mean : TextPooling::logits;
}

std::string numbered(const std::string& pattern, std::int64_t number) {
    std::string name = pattern;
    return name.replace(name.find("{}"), 2, std::to_string(number));
}

void refuse_groups(const ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys) {
    if (config.key_value_heads != config.heads) {
        reader.unsupported(keys.key_value_heads, "none: this family has no groups of heads");
    }
    if (config.head_size * config.heads != config.hidden) {
        reader.refuse(keys.head_size, keys.hidden + " / " + keys.heads);
    }
}

void skip_padding_positions(ModelConfig& config, const ConfigReader& reader, const SizeKeys& keys,
                            std::int64_t padding) {
    config.position_padding = padding;
    config.position_offset = padding + 1;
    if (config.max_positions <= config.position_offset) {
        reader.refuse(keys.positions, "more than pad_token_id + 1 (" + std::to_string(config.position_offset) + ")");
    }
    config.max_positions -= config.position_offset;
}

std::int64_t read_window(const ConfigReader& reader, std::int64_t otherwise) {
    if (reader.has("sliding_window")) return reader.size("sliding_window");
    return reader.is_null("sliding_window") ? 0 : otherwise;
}

std::vector<std::int64_t> read_windows_where(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                             const std::function<bool(std::int64_t layer)>& sliding) {
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
    if (window == 0) return {};
    std::vector<std::int64_t> windows;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool here =
            types.empty() ? sliding(layer) : types[static_cast<std::size_t>(layer)] == "sliding_attention";
        windows.push_back(here ? window : 0);
    }
    return windows;
}

std::vector<std::int64_t> read_windows_everywhere(const ConfigReader& reader, std::int64_t layers,
                                                  std::int64_t window) {
    std::vector<std::int64_t> windows = read_windows(reader, layers, window, 0);
    if (std::count(windows.begin(), windows.end(), 0) != 0) {
        reader.unsupported("layer_types", "the same for every layer of a model of this type");
    }
    return windows;
}

std::vector<std::int64_t> read_windows(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                       std::int64_t first_windowed) {
    // Without a window in reach of any layer there is nothing to list.
    const bool none = !reader.has("layer_types") && first_windowed >= layers;
    return read_windows_where(reader, layers, none ? 0 : window,
                              [first_windowed](std::int64_t layer) { return layer >= first_windowed; });
}

std::vector<std::int64_t> read_alternating_windows(const ConfigReader& reader, std::int64_t layers,
                                                   std::int64_t window) {
    return read_windows_where(reader, layers, window, [](std::int64_t layer) { return layer % 2 == 0; });
}

std::vector<std::int64_t> read_windows_between(const ConfigReader& reader, std::int64_t layers, std::int64_t window,
                                               std::int64_t every) {
    return read_windows_where(reader, layers, window, [every](std::int64_t layer) { return layer % every != 0; });
}

void read_two_ropes(ModelConfig& config, const ConfigReader& reader, RopeDefaults full, RopeDefaults windowed) {
    const auto read = [&](RopeDefaults& defaults, const std::string& layer_type) {
        defaults.layer_type = layer_type;
        RopeConfig rope = read_rope(reader, config.max_positions, config.head_size, defaults);
        if (rope.type == "default") rope.partial = 1.0;  // as read_llama has it
        return rope;
    };
    config.positions = PositionKind::rotary;
    config.rope = read(full, "full_attention");
    windowed.scaled = false;
    if (!config.windows.empty()) config.window_rope = read(windowed, "sliding_attention");
}

std::string present_key(const ConfigReader& reader, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
        if (reader.has(key)) return key;
    }
    return keys.back();
}

void require_false(const ConfigReader& reader, const std::string& key) {
    if (reader.boolean(key, false)) reader.unsupported(key, "false or absent");
}

const Family& find_family(const ConfigReader& reader) {
    const std::string type = reader.text("model_type", "");
    if (type == "canine") {
        reader.unsupported(
            "model_type",
            "a family that is built, as CANINE is not: its deep layers read characters four by four, the "
            "others each of them");
    }
    std::string known;
    for (const Family* family : families()) {
        const auto& types = family->model_types;
        if (std::find(types.begin(), types.end(), type) != types.end()) return *family;
        for (const std::string& name : types) known += (known.empty() ? "" : ", ") + name;
    }
    reader.unsupported(
        "model_type", "one of " + known + (reader.has("auto_map") ? " (code of its own, auto_map, is never run)" : ""));
}

}  // namespace headscope::model

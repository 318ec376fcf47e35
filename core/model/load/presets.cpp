// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/presets.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/option.h"
#include "core/mixers/types/standard.h"

namespace headscope::model {
namespace {

/// True if layer `layer` of `count`, both from 1, is standard.
bool is_standard(std::string_view layout, std::int64_t layer, std::int64_t count) {
    if (layout == "uniform") return false;
    if (layout == "even") return layer % 2 == 0;
    if (layout == "odd") return layer % 2 == 1;
    if (layout == "top") return layer <= count / 2;
    if (layout == "middle") return layer <= count / 4 || layer > 3 * count / 4;
    if (layout == "bottom") return layer > count / 2;
    if (layout == "quarter") return layer % 4 == 0;
    if (layout == "first") return layer == 1;
    if (layout == "last") return layer == count;
    return layer == 1 || layer == count;  // bilateral
}

constexpr const char* kPresetFiles[] = {
#include "presets.inc"
};

std::vector<std::string> layers_of(const nlohmann::json& entry) {
    if (!entry.contains("mixer")) return {};
    std::vector<std::string> mixers(entry.at("layers").get<std::size_t>(), entry.at("mixer"));
    for (const auto& layer : entry.value("at", nlohmann::json::array())) mixers.at(layer) = entry.at("other");
    return mixers;
}

Preset read_preset(const nlohmann::json& entry) {
    static const std::vector<std::string> manners{"qwen2", "qwen3", "llama", "bert", "gpt2", "vaswani"};
    Preset preset;
    preset.name = entry.at("name");
    preset.hidden = entry.at("hidden");
    preset.feed_forward = entry.at("feed_forward");
    preset.layers = entry.at("layers");
    preset.heads = entry.at("heads");
    preset.vocabulary = entry.at("vocabulary");
    preset.positions = entry.at("positions");
    const auto manner = std::find(manners.begin(), manners.end(), entry.at("manner").get<std::string>());
    preset.manner = static_cast<Preset::Manner>(manner - manners.begin());
    preset.printed = entry.value("printed", "");
    preset.summary = entry.at("summary");
    preset.mixers = layers_of(entry);
    preset.options = entry.value("mixers", nlohmann::json::object()).dump();
    preset.rope_theta = entry.value("rope_theta", preset.rope_theta);
    preset.tied = entry.value("tied", preset.tied);
    preset.chosen = entry.value("chosen", preset.chosen);
    preset.more = entry.value("config", nlohmann::json::object()).dump();
    return preset;
}

/// Settings of the thesis's variants besides sizes.
nlohmann::json manner_json(const Preset& preset) {
    nlohmann::json json{{"norm", "layer"},        {"layer_norm_eps", 1e-5},  {"norm_place", "post"},
                        {"positions", "learned"}, {"feed_forward", "plain"}, {"attention_bias", true},
                        {"output_bias", true},    {"mlp_bias", true},        {"qk_norm", false}};
    if (preset.manner == Preset::bert) {
        json.update({{"stack", "encoder"},
                     {"layer_norm_eps", 1e-12},
                     {"hidden_act", "gelu"},
                     {"embedding_norm", true},
                     {"type_vocab_size", 1},
                     {"head", {{"kind", "masked_language"}}}});
    } else if (preset.manner == Preset::gpt2) {
        json.update({{"stack", "decoder"}, {"norm_place", "pre"}, {"hidden_act", "gelu_pytorch_tanh"}});
    } else {
        json.update({{"stack", "encoder_decoder"},
                     {"num_encoder_layers", preset.layers / 2},
                     {"positions", "sinusoidal"},
                     {"hidden_act", "relu"},
                     {"attention_bias", false},
                     {"output_bias", false},
                     {"embedding_scale", std::sqrt(static_cast<double>(preset.hidden))}});
    }
    return json;
}

}  // namespace

const std::vector<Preset>& presets() {
    static const std::vector<Preset> all = [] {
        std::vector<Preset> list;
        for (const char* file : kPresetFiles)
            for (const nlohmann::json& entry : nlohmann::json::parse(file)) list.push_back(read_preset(entry));
        return list;
    }();
    return all;
}

nlohmann::json preset_json(const std::string& name) {
    std::vector<std::string> known;
    for (const Preset& preset : presets()) {
        known.emplace_back(preset.name);
        if (name != preset.name) continue;
        nlohmann::json json{{"model_type", "headscope"},
                            {"vocab_size", preset.vocabulary},
                            {"hidden_size", preset.hidden},
                            {"intermediate_size", preset.feed_forward},
                            {"num_hidden_layers", preset.layers},
                            {"num_attention_heads", preset.heads},
                            {"num_key_value_heads", preset.heads},
                            {"head_dim", preset.hidden / preset.heads},
                            {"rms_norm_eps", 1e-6},
                            {"rope_theta", preset.rope_theta},
                            {"attention_bias", preset.manner == Preset::qwen2},
                            {"qk_norm", preset.manner == Preset::qwen3},
                            {"tie_word_embeddings", preset.tied},
                            {"max_position_embeddings", preset.positions},
                            {"initializer_range", 0.02}};
        if (!preset.mixers.empty()) {
            json["layers"] = preset.mixers;
            json["mixers"] = nlohmann::json::parse(preset.options);
        }
        if (preset.manner >= Preset::bert) {
            json.erase("rope_theta");
            json.update(manner_json(preset));
        }
        json.update(nlohmann::json::parse(preset.more));
        return json;
    }
    throw choice_error(known, name, "preset");
}

const std::vector<Layout>& layouts() {
    static const std::vector<Layout> all{
        {"uniform", "none"},
        {"even", "2, 4, 6, ..."},
        {"odd", "1, 3, 5, ..."},
        {"top", "1 to n/2"},
        {"middle", "1 to n/4 and 3n/4 + 1 to n"},
        {"bottom", "n/2 + 1 to n"},
        {"quarter", "4, 8, 12, ..."},
        {"first", "1"},
        {"last", "n"},
        {"bilateral", "1 and n"},
    };
    return all;
}

std::vector<std::string> layout_mixers(const std::string& layout, const std::string& mixer, std::int64_t layers) {
    std::vector<std::string> known;
    for (const Layout& one : layouts()) known.emplace_back(one.name);
    check_choice(known, layout, "layout");
    std::vector<std::string> mixers;
    for (std::int64_t layer = 1; layer <= layers; ++layer)
        mixers.push_back(is_standard(layout, layer, layers) ? mixers::kStandard.name : mixer);
    return mixers;
}

std::string layout_of(const std::vector<std::string>& mixers) {
    const auto other =
        std::find_if(mixers.begin(), mixers.end(), [](const auto& name) { return !mixers::is_standard(name); });
    const std::string mixer = other == mixers.end() ? mixers::kStandard.name : *other;
    for (const Layout& layout : layouts()) {
        if (layout_mixers(layout.name, mixer, static_cast<std::int64_t>(mixers.size())) == mixers) return layout.name;
    }
    return "custom";
}

}  // namespace headscope::model

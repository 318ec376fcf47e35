// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/presets.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"

namespace headscope::model {
namespace {

constexpr std::int64_t kPaperVocabulary = 50'304;
/// Bytes and the end of a text; jobs write what their tokenizer has.
constexpr std::int64_t kByteVocabulary = 257;

[[noreturn]] void refuse(const std::string& what, const std::vector<std::string>& known, const std::string& found) {
    throw Error(ErrorCode::usage, what, "expected one of " + list_text(known, 30), "found " + escaped(found));
}

/// Whether layer `layer` of `count`, both from 1, is standard.
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

}  // namespace

const std::vector<Preset>& presets() {
    static const std::vector<Preset> all{
        {"deconattn-70m", 512, 2048, 6, 8, kPaperVocabulary, 2048, true, "70M", "Deconstructing Attention, Table 10"},
        {"deconattn-160m", 768, 3072, 12, 12, kPaperVocabulary, 2048, true, "160M",
         "Deconstructing Attention, Table 10"},
        {"deconattn-500m", 896, 4864, 24, 14, kPaperVocabulary, 2048, true, "500M",
         "Deconstructing Attention, Table 10"},
        {"deconattn-1.7b", 2048, 6144, 28, 16, kPaperVocabulary, 2048, false, "1.7B",
         "Deconstructing Attention, Table 10, in the manner of Qwen3"},
        {"nano-100k", 64, 128, 2, 4, kByteVocabulary, 1024, true, "", "seconds: to try a job"},
        {"nano-400k", 96, 256, 3, 4, kByteVocabulary, 1024, true, "", "a minute or two"},
        {"tiny-1m", 128, 384, 4, 4, kByteVocabulary, 1024, true, "", "some minutes on two cores"},
        {"tiny-3m", 192, 512, 6, 6, kByteVocabulary, 1024, true, "", "half an hour on two cores"},
        {"tiny-5m", 256, 704, 6, 8, kByteVocabulary, 1024, true, "", "an hour on two cores"},
    };
    return all;
}

nlohmann::json preset_json(const std::string& name) {
    std::vector<std::string> known;
    for (const Preset& preset : presets()) {
        known.emplace_back(preset.name);
        if (name != preset.name) continue;
        return {{"model_type", "headscope"},
                {"vocab_size", preset.vocabulary},
                {"hidden_size", preset.hidden},
                {"intermediate_size", preset.feed_forward},
                {"num_hidden_layers", preset.layers},
                {"num_attention_heads", preset.heads},
                {"num_key_value_heads", preset.heads},
                {"head_dim", preset.hidden / preset.heads},
                {"rms_norm_eps", 1e-6},
                {"rope_theta", 10000.0},
                {"attention_bias", preset.biases},
                {"qk_norm", !preset.biases},
                {"tie_word_embeddings", false},
                {"max_position_embeddings", preset.positions},
                {"initializer_range", 0.02}};
    }
    refuse("preset", known, name);
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
    if (std::find(known.begin(), known.end(), layout) == known.end()) refuse("layout", known, layout);
    std::vector<std::string> mixers;
    for (std::int64_t layer = 1; layer <= layers; ++layer)
        mixers.push_back(is_standard(layout, layer, layers) ? "standard" : mixer);
    return mixers;
}

std::string layout_of(const std::vector<std::string>& mixers) {
    const auto other = std::find_if(mixers.begin(), mixers.end(), [](const auto& name) { return name != "standard"; });
    const std::string mixer = other == mixers.end() ? "standard" : *other;
    for (const Layout& layout : layouts()) {
        if (layout_mixers(layout.name, mixer, static_cast<std::int64_t>(mixers.size())) == mixers) return layout.name;
    }
    return "custom";
}

}  // namespace headscope::model

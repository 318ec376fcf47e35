// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/evaluation/evaluation_texts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store {
namespace {

/// Tasks of those versions that scored a text.
constexpr std::array kOnText{"perplexity", "next_token_accuracy", "position_perplexity", "masked", "shuffle_random"};

std::string member(const nlohmann::json& object, const char* name) {
    if (!object.is_object()) return {};
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Files have their stem's name from version 6 on. A held-out part and a list of files keep their words.
std::string text_name(std::string data) {
    if (!data.starts_with("held-out part of ") && data.find(", ") == std::string::npos)
        data = std::filesystem::path(data).stem().string();
    return short_word(readable_utf8(data));
}

}  // namespace

std::string short_word(std::string word) {
    if (word.size() <= kLongestWord) return word;
    std::size_t begin = word.size() - kLongestWord;
    while (begin < word.size() && (static_cast<unsigned char>(word[begin]) & 0xC0U) == 0x80U) ++begin;
    return word.substr(begin);
}

std::string default_variant(const EvaluatedModel& model) {
    const bool uniform = model.layout.empty() || model.layout == "uniform";
    return uniform ? model.mixer : model.mixer + " " + model.layout;
}

void name_texts(Evaluation& evaluation) {
    nlohmann::json settings;
    try {
        settings = parse_json(evaluation.settings_json, "settings");
    } catch (const Error&) {
        return;
    }
    const std::string text = text_name(member(settings, "data"));
    std::map<std::string, std::string> digests;  // of each task's first file: the one that is scored
    if (settings.is_object() && settings.contains("files") && settings["files"].is_array())
        for (const auto& file : settings["files"]) digests.emplace(member(file, "task"), member(file, "sha256"));
    for (EvaluationResult& result : evaluation.results) {
        if (std::find(kOnText.begin(), kOnText.end(), result.task) != kOnText.end()) result.text = text;
        if (const auto digest = digests.find(result.task); digest != digests.end()) result.data_sha256 = digest->second;
    }
}

}  // namespace headscope::store

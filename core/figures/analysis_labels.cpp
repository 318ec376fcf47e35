// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/analysis_labels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kWordBytes = 24;  ///< of a text's beginning
constexpr std::size_t kMostSwitched = 40;

/// "gpt2-20261128-093012": the window's name for a file, which means nothing to a reader.
bool only_stamped(const std::string& stem) {
    constexpr std::string_view pattern = "-dddddddd-dddddd";
    const auto matches = [&](std::size_t begin) {
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            const char c = stem[begin + i];
            if (pattern[i] == 'd' ? std::isdigit(static_cast<unsigned char>(c)) == 0 : c != pattern[i]) return false;
        }
        // A second analysis of the same second: "-2".
        return std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(begin + pattern.size()), stem.end(),
                           [](unsigned char c) { return c == '-' || std::isdigit(c) != 0; });
    };
    for (std::size_t begin = 0; begin + pattern.size() <= stem.size(); ++begin)
        if (matches(begin)) return true;
    return false;
}

std::string stem_of(const std::string& file) {
    return file.substr(0, file.find(".headscope.h5"));
}

/// The first words of the first text, in quotes.
std::string beginning(const store::AnalysisHeader& header) {
    if (header.sequences.empty()) return "";
    const store::SequenceTokens& tokens = header.sequences.front();
    std::string text;
    for (const char c : tokens.text.substr(0, 4 * kWordBytes)) {
        const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!space || (!text.empty() && text.back() != ' ')) text += space ? ' ' : c;
    }
    if (text.empty())
        for (std::size_t i = 0; i < tokens.pieces.size() && text.size() < 2 * kWordBytes; ++i)
            text += visible_token(tokens.pieces[i]);
    if (text.empty()) return "";
    if (text.size() > kWordBytes) {
        std::size_t end = kWordBytes;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // of UTF-8
        const std::size_t space = text.rfind(' ', end);
        text = text.substr(0, space != std::string::npos && space > end / 2 ? space : end) + "…";
    }
    return "“" + escaped(text, 2 * kWordBytes) + "”";
}

/// "without head 0.3", or nothing where every head is on.
std::string switched_off(const store::AnalysisHeader& header) {
    try {
        const nlohmann::json settings = parse_json(header.settings_json, "settings");
        if (!settings.is_object() || !settings.contains("switch_off") || !settings["switch_off"].is_string()) return "";
        const auto list = settings["switch_off"].get<std::string>();
        if (list.empty()) return "";
        return (list.find(',') == std::string::npos ? "without head " : "without heads ") +
               escaped(list, kMostSwitched);
    } catch (const Error&) {  // a file from elsewhere
        return "";
    }
}

}  // namespace

std::vector<std::string> analysis_labels(std::span<const UnnamedAnalysis> analyses) {
    struct Same {
        std::vector<const UnnamedAnalysis*> all;
        bool other_texts = false, other_heads = false;  ///< of each
    };
    std::map<std::string, Same> models;
    for (const UnnamedAnalysis& one : analyses)
        if (one.given.empty()) models[one.header->model_name].all.push_back(&one);
    const auto apart = [](const Same& same, auto word) {
        std::vector<std::string> words;
        for (const auto* one : same.all) words.push_back(word(*one->header));
        std::sort(words.begin(), words.end());
        return std::adjacent_find(words.begin(), words.end()) == words.end();
    };
    for (auto& [model, same] : models) {
        same.other_texts = apart(same, beginning);
        same.other_heads = apart(same, switched_off);
    }
    std::vector<std::string> labels;
    for (const UnnamedAnalysis& one : analyses) {
        if (!one.given.empty()) {
            labels.push_back(one.given);
            continue;
        }
        const std::string& model = one.header->model_name;
        const std::string stem = stem_of(one.file);
        const Same& same = models.at(model);
        if (model.empty()) {
            labels.push_back(stem);
        } else if (same.all.size() == 1) {
            labels.push_back(model);
        } else if (!only_stamped(stem)) {
            labels.push_back(model + " (" + stem + ")");
        } else if (same.other_texts) {
            labels.push_back(model + ", " + beginning(*one.header));
        } else if (same.other_heads) {
            const std::string without = switched_off(*one.header);
            labels.push_back(without.empty() ? model : model + " " + without);
        } else {
            const auto place = std::find(same.all.begin(), same.all.end(), &one) - same.all.begin();
            labels.push_back(model + " (" + std::to_string(place + 1) + ")");
        }
    }
    return labels;
}

std::vector<std::string> file_labels(Files files, const FigureOptions& options) {
    std::vector<const store::AnalysisFile*> all;
    for (const auto& file : files)
        if (std::find(all.begin(), all.end(), file.get()) == all.end()) all.push_back(file.get());
    if (!options.names.empty() && options.names.size() != all.size()) {
        throw Error(ErrorCode::usage, "--names",
                    "expected a name for each of the " + std::to_string(all.size()) + " files",
                    "found " + std::to_string(options.names.size()));
    }
    std::vector<UnnamedAnalysis> unnamed;
    for (std::size_t f = 0; f < all.size(); ++f)
        unnamed.push_back({&all[f]->header(), file_name(*all[f]), options.names.empty() ? "" : options.names[f]});
    const auto names = analysis_labels(unnamed);
    std::vector<std::string> labels;
    for (const auto& file : files)
        labels.push_back(names[static_cast<std::size_t>(std::find(all.begin(), all.end(), file.get()) - all.begin())]);
    return labels;
}

}  // namespace headscope::figures

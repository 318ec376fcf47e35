// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/evaluation_items.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"

namespace headscope::workspace {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

ScoredText scored_text(const JsonView& view) {
    ScoredText text;
    text.context = view.string_or("context", "");
    text.continuation = view.string_or("continuation", "");
    text.loglikelihood = view.number_or("loglikelihood", kNone);
    text.greedy = view.boolean_or("greedy", false);
    const auto pieces = view.find("pieces");
    for (std::size_t i = 0; pieces && i < pieces->array().size(); ++i) {
        const JsonView piece = pieces->at(i);
        if (piece.array().size() != 2)
            piece.refuse(ErrorCode::format, "expected a token's text and its log-likelihood");
        text.pieces.emplace_back(piece.at(0).string(), piece.at(1).is_null() ? kNone : piece.at(1).number());
    }
    return text;
}

}  // namespace

ItemsKey key_of(const store::EvaluatedItem& item) {
    return {item.model, item.task, item.length, item.shots};
}

ClassesOfModels classes_of_models(const store::Evaluation& evaluation) {
    ClassesOfModels classes;
    try {
        const auto document = parse_json(evaluation.settings_json, "settings");
        const JsonView settings(document, "settings");
        for (std::size_t m = 0; m < evaluation.models.size(); ++m)
            if (const auto names = settings.find("class_names"))
                if (const auto own = names->find(std::to_string(m)))
                    classes[static_cast<std::int64_t>(m)] = own->strings();
    } catch (const Error&) {  // a file from elsewhere
    }
    return classes;
}

std::vector<ItemsGroup> item_groups(std::span<const store::EvaluatedItem> items) {
    std::vector<ItemsGroup> groups;
    for (const auto& item : items) {
        const ItemsKey key = key_of(item);
        // Items of a group stand together.
        auto group = groups.rbegin();
        while (group != groups.rend() && group->key != key) ++group;
        if (group == groups.rend()) {
            groups.push_back({key, 0, 0});
            group = groups.rbegin();
        }
        ++group->count;
        if (!item.right) ++group->wrong;
    }
    return groups;
}

std::vector<ItemsKey> items_of_others(std::span<const ItemsGroup> groups, const ItemsKey& shown) {
    std::vector<ItemsKey> others;
    for (const auto& group : groups)
        if (group.key.model != shown.model && group.key.task == shown.task && group.key.shots == shown.shots)
            others.push_back(group.key);
    std::stable_partition(others.begin(), others.end(), [&](const auto& key) { return key.length == shown.length; });
    return others;
}

std::vector<ShownItem> shown_items(std::span<const store::EvaluatedItem> items, const ItemsRequest& wish) {
    std::map<std::int64_t, std::int64_t> others;  // row by number of the item
    for (std::size_t row = 0; wish.other && row < items.size(); ++row)
        if (key_of(items[row]) == *wish.other) others.emplace(items[row].item, static_cast<std::int64_t>(row));
    std::vector<ShownItem> shown;
    for (std::size_t row = 0; row < items.size(); ++row) {
        const auto& item = items[row];
        if (key_of(item) != wish.shown || (wish.wrong_only && item.right)) continue;
        const auto found = others.find(item.item);
        const std::int64_t other = found == others.end() ? -1 : found->second;
        if (wish.disagree_only) {
            if (other < 0) continue;
            const auto& said = items[static_cast<std::size_t>(other)];
            if (said.chosen == item.chosen && said.right == item.right) continue;
        }
        shown.push_back({static_cast<std::int64_t>(row), other});
    }
    return shown;
}

double ScoredText::per_character() const {
    const std::size_t begin = continuation.starts_with(' ') ? 1 : 0;
    const auto characters = std::count_if(continuation.begin() + static_cast<std::ptrdiff_t>(begin), continuation.end(),
                                          [](char byte) { return !continues(byte); });
    return characters > 0 ? loglikelihood / static_cast<double>(characters) : kNone;
}

bool ItemTexts::one_context() const {
    return std::all_of(requests.begin(), requests.end(),
                       [&](const auto& one) { return one.context == requests.front().context; });
}

std::string ItemTexts::first_words(std::size_t bytes) const {
    std::string text = said ? prompt : requests.empty() ? "" : requests.front().context;
    if (!said && text.empty() && !requests.empty()) text = requests.front().continuation;
    // Examples end with a blank line each.
    if (const auto last = text.rfind("\n\n"); !said && last != std::string::npos && last + 2 < text.size())
        text.erase(0, last + 2);
    if (text.size() <= bytes) return text;
    while (bytes > 0 && continues(text[bytes])) --bytes;
    return text.substr(0, bytes) + "…";
}

ItemTexts parse_item_texts(const std::string& json, const std::string& where) {
    const auto document = parse_json(json, where);
    const JsonView view(document, where);
    ItemTexts texts;
    const auto requests = view.object().find("requests");
    for (std::size_t i = 0; requests && i < requests->array().size(); ++i)
        texts.requests.push_back(scored_text(requests->at(i)));
    texts.said = view.has("generated") || view.has("prompt");
    texts.prompt = view.string_or("prompt", "");
    texts.generated = view.string_or("generated", "");
    if (const auto answers = view.find("answers")) texts.answers = answers->strings();
    return texts;
}

}  // namespace headscope::workspace

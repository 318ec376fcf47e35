// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Items of an evaluation file as people look through them: which there are, which a list shows, what one of them says.
// Threads: any. Errors: Error format for texts that are not as store::EvaluatedItem has them.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/store/evaluation/evaluation_file.h"

namespace headscope::workspace {

/// Key of one list: a model's items of a task at a length.
struct ItemsKey {
    std::int64_t model = 0;
    std::string task;
    std::int64_t length = 0, shots = 0;
    bool operator==(const ItemsKey&) const = default;
};
ItemsKey key_of(const store::EvaluatedItem& item);

struct ItemsGroup {
    ItemsKey key;
    std::int64_t count = 0, wrong = 0;
};
/// Names of the classes that a model's options are, by Evaluation::models (`class_names` of the settings); a model that
/// is not there has no classes.
using ClassesOfModels = std::map<std::int64_t, std::vector<std::string>>;
ClassesOfModels classes_of_models(const store::Evaluation& evaluation);

/// In the order of the file.
std::vector<ItemsGroup> item_groups(std::span<const store::EvaluatedItem> items);

/// Those that were asked the same as `shown` of another model: candidates for "models disagree". Of its own length
/// first.
std::vector<ItemsKey> items_of_others(std::span<const ItemsGroup> groups, const ItemsKey& shown);

struct ItemsRequest {
    ItemsKey shown;
    std::optional<ItemsKey> other;  ///< another model's, beside each item
    bool wrong_only = false;
    bool disagree_only = false;  ///< with `other`: what it chose, or whether that is right
    bool operator==(const ItemsRequest&) const = default;
};
struct ShownItem {
    std::int64_t row = 0;     ///< in the file
    std::int64_t other = -1;  ///< row of the other model's answer; -1: there is none
    bool operator==(const ShownItem&) const = default;
};
/// In the order of the file.
std::vector<ShownItem> shown_items(std::span<const store::EvaluatedItem> items, const ItemsRequest& wish);

/// A continuation as a model scored it behind its context.
struct ScoredText {
    std::string context, continuation;
    double loglikelihood = 0;  ///< nats; NaN: not recorded
    bool greedy = false;
    std::vector<std::pair<std::string, double>> pieces;  ///< the text of each scored token, its log-likelihood

    /// loglikelihood by code point of the continuation without the space before it; NaN: there is none.
    double per_character() const;
};

/// EvaluatedItem::texts.
struct ItemTexts {
    std::vector<ScoredText> requests;
    bool said = false;  ///< the model wrote an answer: the next three
    std::string prompt, generated;
    std::vector<std::string> answers;

    /// All options stand behind one context; false: winogrande's kind, where contexts are chosen from.
    bool one_context() const;
    /// First words of the item itself, behind possible examples: they distinguish the rows of a list.
    std::string first_words(std::size_t bytes) const;
};
/// `where` names the item in errors.
ItemTexts parse_item_texts(const std::string& json, const std::string& where);

}  // namespace headscope::workspace

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/kind.h"

#include <algorithm>

namespace headscope::tokenizer {

std::string kind_of(const JsonView& description, std::initializer_list<KindByFields> kinds) {
    if (!description.has("type")) {
        for (const KindByFields& one : kinds) {
            if (std::all_of(one.fields.begin(), one.fields.end(),
                            [&](std::string_view field) { return description.has(field); }))
                return std::string(one.kind);
        }
    }
    return description.at("type").string();
}

std::optional<JsonView> find_type(const std::optional<JsonView>& component, std::string_view type) {
    if (!component || !component->is_object()) return std::nullopt;
    if (component->has("type") && component->at("type").is_string() && component->at("type").string() == type) {
        return component;
    }
    for (const std::string_view members : {"normalizers", "pretokenizers", "processors", "decoders"}) {
        const auto list = component->find(members);
        if (!list || !list->is_array()) continue;
        for (std::size_t i = 0; i < list->size(); ++i) {
            if (auto found = find_type(list->at(i), type)) return found;
        }
    }
    return std::nullopt;
}

}  // namespace headscope::tokenizer

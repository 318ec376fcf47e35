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

}  // namespace headscope::tokenizer

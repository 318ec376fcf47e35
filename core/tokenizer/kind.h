// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

/// A kind of component, and the fields that all have to be there for a description without "type" to be of it.
struct KindByFields {
    std::string_view kind;
    std::initializer_list<std::string_view> fields;
};

/// description.type; where that is absent or null, as in files of before kinds were written down, the first of `kinds`
/// whose fields are there. Else it throws what is wrong with "type".
std::string kind_of(const JsonView& description, std::initializer_list<KindByFields> kinds);

/// The first component of this type, in a component itself or, through sequences, inside of it.
std::optional<JsonView> find_type(const std::optional<JsonView>& component, std::string_view type);

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Objects whose keys are the members of a struct: one table reads and writes them.

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "core/base/json/json.h"

namespace headscope {

/// A key of an object and the variable that holds its value. A JSON variable holds an object.
struct JsonMember {
    const char* key;
    std::variant<std::string*, bool*, double*, std::int64_t*, std::vector<std::string>*, std::vector<double>*,
                 std::vector<std::int64_t>*, nlohmann::json*>
        value;
    IntegerRange range{};  ///< of integers; of a number its lowest
};
using JsonMembers = std::vector<JsonMember>;

/// A table of keys and addresses in turn: members("name", &name, "count", &count).
template <class Value, class... More>
JsonMembers members(const char* key, Value* value, More... more) {
    JsonMembers all{{key, value}};
    if constexpr (sizeof...(more) > 0)
        for (JsonMember& other : members(more...)) all.push_back(other);
    return all;
}

/// Reads all members. Throws Error: format for an absent key or a value of another type, limit for one out of range.
void read_members(const JsonView& view, const JsonMembers& members);

/// The same, but variables of absent or null keys stay as they are.
void read_given_members(const JsonView& view, const JsonMembers& members);

/// Throws Error format for a key that is neither a member's nor one of `others`.
void check_keys(const JsonView& view, const JsonMembers& members, std::initializer_list<const char*> others = {});

/// Adds all members to an object.
void write_members(nlohmann::json& object, const JsonMembers& members);

}  // namespace headscope

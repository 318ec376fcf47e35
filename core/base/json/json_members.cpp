// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json/json_members.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headscope {
namespace {

/// Reads one value into a variable of its type.
struct MemberReader {
    JsonView view;
    IntegerRange range;

    void operator()(std::string* into) const { *into = view.string(); }
    void operator()(bool* into) const { *into = view.boolean(); }
    void operator()(double* into) const {
        constexpr IntegerRange all;
        *into = range.lowest == all.lowest ? view.number() : view.number(static_cast<double>(range.lowest));
    }
    void operator()(std::int64_t* into) const { *into = view.integer(range); }
    void operator()(std::vector<std::string>* into) const { *into = view.strings(); }
    void operator()(std::vector<double>* into) const { *into = view.numbers(); }
    void operator()(std::vector<std::int64_t>* into) const { *into = view.integers(range); }
    void operator()(nlohmann::json* into) const { *into = view.object().value(); }
};

}  // namespace

void read_members(const JsonView& view, const JsonMembers& members) {
    for (const JsonMember& member : members) std::visit(MemberReader{view.at(member.key), member.range}, member.value);
}

void read_given_members(const JsonView& view, const JsonMembers& members) {
    for (const JsonMember& member : members)
        if (view.has(member.key)) read_members(view, {member});
}

void check_keys(const JsonView& view, const JsonMembers& members, std::initializer_list<const char*> others) {
    for (const std::string& key : view.keys()) {
        const bool known = std::any_of(members.begin(), members.end(), [&](const auto& one) { return one.key == key; });
        if (!known && std::find(others.begin(), others.end(), key) == others.end())
            view.at(key).refuse(ErrorCode::format, "expected no such key");
    }
}

void write_members(nlohmann::json& object, const JsonMembers& members) {
    for (const JsonMember& member : members)
        std::visit([&](const auto* value) { object[member.key] = *value; }, member.value);
}

}  // namespace headscope

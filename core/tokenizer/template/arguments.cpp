// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/tokenizer/template/operations.h"

namespace headscope::tokenizer::chat {

bool Arguments::take(std::string_view name, Value& value) {
    const auto by_name = std::find_if(named.begin(), named.end(), [&](const auto& one) { return one.first == name; });
    if (next_ < positional.size()) {
        if (by_name != named.end())
            refuse("expected \"" + std::string(name) + "\" once", "found it by position and by name");
        value = positional[next_++];
        return true;
    }
    if (by_name == named.end()) return false;
    value = std::move(by_name->second);
    named.erase(by_name);
    return true;
}

std::optional<Value> Arguments::take(std::string_view name) {
    std::optional<Value> value(std::in_place);
    if (!take(name, *value)) value.reset();
    return value;
}

Value Arguments::need(std::string_view name) {
    Value value;
    if (!take(name, value)) refuse("expected the argument \"" + std::string(name) + '"', "found none");
    return value;
}

bool Arguments::flag(std::string_view name, bool fallback) {
    const auto value = take(name);
    return value ? value->truth() : fallback;
}

std::int64_t Arguments::integer(std::string_view name, std::int64_t fallback) {
    const auto value = take(name);
    if (!value) return fallback;
    std::int64_t number = 0;
    if (!value->integer(number))
        refuse("expected a whole number for \"" + std::string(name) + '"', "found " + value->described());
    return number;
}

void Arguments::finish() const {
    if (next_ < positional.size())
        refuse("expected at most " + std::to_string(next_) + " arguments",
               "found " + std::to_string(positional.size()));
    if (!named.empty())
        refuse("expected arguments that are known", "found \"" + escaped(named.front().first, 60) + '"');
}

}  // namespace headscope::tokenizer::chat

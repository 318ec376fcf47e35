// SPDX-License-Identifier: GPL-3.0-or-later
// Methods of strings, lists, mappings and loops, as Python has them.
#include <algorithm>
#include <array>

#include "core/tokenizer/template/operations.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

using Names = std::initializer_list<std::string_view>;

bool among(const std::string& name, Names names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

const std::string& need_string(const Value& value) {
    if (!value.string()) refuse("expected a string", "found " + value.described());
    return *value.string();
}

Value strings(std::vector<std::string> parts, Budget& budget, bool tuple = false) {
    budget.steps(parts.size());
    std::vector<Value> items;
    for (auto& part : parts) items.emplace_back(std::move(part));
    return Value::list(std::move(items), tuple);
}

/// startswith and endswith: one string or several of them.
bool has_end(const std::string& text, const Value& ends, bool at_begin) {
    if (const auto* list = ends.list(); list && list->tuple)
        return std::any_of(list->items.begin(), list->items.end(),
                           [&](const Value& one) { return has_end(text, one, at_begin); });
    const std::string& end = need_string(ends);
    return at_begin ? text.starts_with(end) : text.ends_with(end);
}

bool all_characters(const std::string& text, bool (*is)(char32_t)) {
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
        if (!is(decode_utf8(text, at).point)) return false;
    return !text.empty();
}

bool is_letter(char32_t point) {
    return (character_bits(point) & bit_letter) != 0;
}
bool is_decimal(char32_t point) {
    return category(point) == Category::nd;
}

std::int64_t position(const std::string& text, const std::string& wanted, bool last) {
    std::size_t at = 0;
    if (last) {  // the first one of both turned round
        const std::string turned(text.rbegin(), text.rend());
        at = find_text(turned, std::string(wanted.rbegin(), wanted.rend()), 0);
        if (at != std::string::npos) at = text.size() - at - wanted.size();
    } else {
        at = find_text(text, wanted, 0);
    }
    return at == std::string::npos ? -1 : static_cast<std::int64_t>(count_utf8(std::string_view(text).substr(0, at)));
}

std::int64_t count_of(const std::string& text, const std::string& wanted) {
    if (wanted.empty()) return static_cast<std::int64_t>(count_utf8(text)) + 1;
    std::int64_t count = 0;
    for (std::size_t at = find_text(text, wanted, 0); at != std::string::npos;
         at = find_text(text, wanted, at + wanted.size()))
        ++count;
    return count;
}

Value partitioned(const std::string& text, const std::string& separator, Budget& budget) {
    const std::size_t at = find_text(text, separator, 0);
    if (at == std::string::npos) return strings({text, "", ""}, budget, true);
    return strings({text.substr(0, at), separator, text.substr(at + separator.size())}, budget, true);
}

Value strip_method(const std::string& text, const std::string& name, Arguments& arguments) {
    const auto given = arguments.take("chars");
    const std::string* wanted = given && !given->is_none() ? &need_string(*given) : nullptr;
    return std::string(stripped(text, wanted, name != "rstrip", name != "lstrip"));
}

Value split_method(const std::string& text, const std::string& name, Arguments& arguments, Budget& budget) {
    const auto separator = arguments.take("sep");
    const auto most = arguments.integer("maxsplit", -1);
    const bool white = !separator || separator->is_none();
    return strings(split(text, white ? nullptr : &need_string(*separator), most, name == "rsplit"), budget);
}

Value joined(const std::string& text, const Value& parts, Budget& budget) {
    std::string made;
    bool first = true;
    const auto all_items = items_of(parts, budget);
    for (const Value& part : all_items->items) {
        const std::string& one = need_string(part);
        budget.bytes(one.size() + text.size());
        if (!first) made += text;
        first = false;
        made += one;
    }
    return made;
}

Value string_test(const std::string& text, const std::string& name) {
    if (name == "isupper") return is_upper(text);
    if (name == "islower") return is_lower(text);
    if (name == "isspace") return all_characters(text, is_white);
    if (name == "isalpha") return all_characters(text, is_letter);
    if (name == "isalnum") return all_characters(text, [](char32_t c) { return is_letter(c) || is_decimal(c); });
    return all_characters(text, is_decimal);
}

Value string_method(const std::string& text, const std::string& name, Arguments& arguments, Budget& budget) {
    budget.bytes(text.size());
    budget.steps(text.size() / 64);
    if (among(name, {"strip", "lstrip", "rstrip"})) return strip_method(text, name, arguments);
    if (among(name, {"split", "rsplit"})) return split_method(text, name, arguments, budget);
    if (name == "splitlines") return strings(split_lines(text, arguments.flag("keepends", false)), budget);
    if (name == "startswith") return has_end(text, arguments.need("prefix"), true);
    if (name == "endswith") return has_end(text, arguments.need("suffix"), false);
    if (name == "upper") return upper(text);
    if (name == "lower" || name == "casefold") return lower(text);
    if (name == "title") return titled(text);
    if (name == "capitalize") return capitalized(text);
    if (name == "join") return joined(text, arguments.need("iterable"), budget);
    if (name == "partition") return partitioned(text, need_string(arguments.need("sep")), budget);
    if (name == "replace") {
        const Value old = arguments.need("old"), with = arguments.need("new");
        return replaced(text, need_string(old), need_string(with), arguments.integer("count", -1), budget);
    }
    if (among(name, {"find", "rfind", "index", "rindex"})) {
        const std::int64_t at = position(text, need_string(arguments.need("sub")), name[0] == 'r');
        if (at < 0 && name.ends_with("index")) refuse("expected a part that is there", "found another text");
        return at;
    }
    if (name == "count") return count_of(text, need_string(arguments.need("sub")));
    if (name == "removeprefix" || name == "removesuffix") {
        const std::string part = need_string(arguments.need("part"));
        const bool begin = name == "removeprefix";
        if (!(begin ? text.starts_with(part) : text.ends_with(part))) return text;
        return text.substr(begin ? part.size() : 0, text.size() - part.size());
    }
    return string_test(text, name);
}

Value list_method(const List& list, const std::string& name, Arguments& arguments, Budget& budget) {
    const Value wanted = arguments.need("value");
    if (name == "count")
        return static_cast<std::int64_t>(std::count_if(list.items.begin(), list.items.end(),
                                                       [&](const Value& one) { return equal(one, wanted, budget); }));
    for (std::size_t i = 0; i < list.items.size(); ++i)
        if (equal(list.items[i], wanted, budget)) return static_cast<std::int64_t>(i);
    refuse("expected a value that is in the list", "found " + wanted.described());
}

Value dict_method(const Value& self, const std::string& name, Arguments& arguments, Budget& budget) {
    const Dict& dict = *self.dict();
    if (name == "copy") return self;
    if (name == "get") {
        const Value key = arguments.need("key");
        const Value fallback = arguments.take("default").value_or(None{});
        const Value* found = find(dict, key, budget);
        return found ? *found : fallback;
    }
    budget.steps(dict.entries.size());
    std::vector<Value> all;
    for (const auto& [key, item] : dict.entries)
        all.push_back(name == "keys" ? key : name == "values" ? item : Value::list({key, item}, true));
    return Value::list(std::move(all));
}

}  // namespace

Method method_of(const Value& value, const std::string& name) {
    const auto known = [&](Names names) { return among(name, names) ? Method::known : Method::none; };
    if (value.string())
        return known({"strip",        "lstrip",       "rstrip",  "split",   "rsplit",     "splitlines", "startswith",
                      "endswith",     "upper",        "lower",   "title",   "capitalize", "casefold",   "join",
                      "partition",    "replace",      "find",    "rfind",   "index",      "rindex",     "count",
                      "isupper",      "islower",      "isspace", "isalpha", "isalnum",    "isdigit",    "isdecimal",
                      "removeprefix", "removesuffix", "format"});
    if (value.list()) {
        if (!value.list()->tuple &&
            among(name, {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}))
            return Method::changing;
        return known({"index", "count"});
    }
    if (value.dict()) {
        if (among(name, {"clear", "pop", "popitem", "setdefault", "update"})) return Method::changing;
        return known({"items", "keys", "values", "get", "copy"});
    }
    return value.get<std::shared_ptr<const Loop>>() ? known({"cycle"}) : Method::none;
}

Value call_method(const Value& self, const std::string& name, Arguments arguments, Tools& tools) {
    if (self.string() && name == "format") return brace_format(*self.string(), arguments, tools.budget);
    if (const auto* loop = self.get<std::shared_ptr<const Loop>>()) {
        if (arguments.positional.empty()) refuse("expected something to cycle through", "found nothing");
        return arguments.positional[static_cast<std::size_t>((*loop)->index) % arguments.positional.size()];
    }
    Value made = self.string() ? string_method(*self.string(), name, arguments, tools.budget)
                 : self.dict() ? dict_method(self, name, arguments, tools.budget)
                               : list_method(*self.list(), name, arguments, tools.budget);
    arguments.finish();
    return made;
}

}  // namespace headscope::tokenizer::chat

// SPDX-License-Identifier: GPL-3.0-or-later
// Filters that take lists and mappings apart; Jinja's generators are lists here.
#include <algorithm>

#include "core/tokenizer/template/filters.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

Value without_case(const Value& value, bool case_sensitive, Budget& budget) {
    if (case_sensitive || !value.string()) return value;
    budget.bytes(value.string()->size());
    return lower(*value.string());
}

/// Sorts by keys made before; stable, also when turned round.
Value sorted(std::vector<std::pair<Value, Value>> keyed, bool reverse, Budget& budget) {
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
        const int way = compare(a.first, b.first, budget);
        return way == (reverse ? 1 : -1);
    });
    std::vector<Value> items;
    for (auto& [key, item] : keyed) items.push_back(std::move(item));
    return Value::list(std::move(items));
}

Value sort(const Value& value, Arguments& arguments, Budget& budget) {
    const bool reverse = arguments.flag("reverse", false), case_sensitive = arguments.flag("case_sensitive", false);
    const Value attribute = arguments.take("attribute").value_or(None{});
    std::vector<std::string> names;
    const std::string comma = ",";
    if (attribute.string()) names = split(*attribute.string(), &comma, -1, false);
    std::vector<std::pair<Value, Value>> keyed;
    const auto all_items = items_of(value, budget);
    for (const Value& one : all_items->items) {
        budget.steps(1);
        std::vector<Value> key;
        for (const std::string& name : names)
            key.push_back(without_case(at_path(one, name, budget), case_sensitive, budget));
        if (names.empty())
            key.push_back(
                without_case(attribute.is_none() ? one : at_path(one, attribute, budget), case_sensitive, budget));
        keyed.emplace_back(Value::list(std::move(key)), one);
    }
    return sorted(std::move(keyed), reverse, budget);
}

Value dictsort(const Value& value, Arguments& arguments, Budget& budget) {
    if (!value.dict()) refuse("expected a mapping", "found " + value.described());
    const bool case_sensitive = arguments.flag("case_sensitive", false);
    const Value by = arguments.take("by").value_or("key");
    const bool reverse = arguments.flag("reverse", false);
    if (!by.string() || (*by.string() != "key" && *by.string() != "value"))
        refuse("expected to sort by key or by value", "found " + by.described());
    std::vector<std::pair<Value, Value>> keyed;
    for (const auto& [key, item] : value.dict()->entries)
        keyed.emplace_back(without_case(*by.string() == "key" ? key : item, case_sensitive, budget),
                           Value::list({key, item}, true));
    return sorted(std::move(keyed), reverse, budget);
}

Value map(const Value& value, Arguments& arguments, Tools& tools) {
    std::vector<Value> made;
    const auto items = items_of(value, tools.budget);
    if (arguments.positional.empty()) {
        const Value path = arguments.need("attribute");
        const auto fallback = arguments.take("default");
        for (const Value& one : items->items) {
            Value found = at_path(one, path, tools.budget);
            made.push_back(fallback && found.is_undefined() ? *fallback : std::move(found));
        }
        return Value::list(std::move(made));
    }
    const Value name = arguments.need("filter");
    if (!name.string()) refuse("expected the name of a filter", "found " + name.described());
    Arguments rest;
    rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
    rest.named = std::exchange(arguments.named, {});
    arguments.positional.resize(1);
    for (const Value& one : items->items) made.push_back(filtered(*name.string(), one, rest, tools));
    return Value::list(std::move(made));
}

/// select, reject, selectattr, rejectattr: items, or attributes of them, that pass a test; without one, that are true.
Value chosen(const Value& value, Arguments& arguments, Tools& tools, bool by_attribute, bool wanted) {
    const auto path = by_attribute ? std::optional<Value>(arguments.need("attribute")) : std::nullopt;
    const auto test = arguments.take("test");
    if (test && !test->string()) refuse("expected the name of a test", "found " + test->described());
    const std::ptrdiff_t used = (path ? 1 : 0) + (test ? 1 : 0);
    Arguments rest;
    if (used < static_cast<std::ptrdiff_t>(arguments.positional.size()))
        rest.positional.assign(arguments.positional.begin() + used, arguments.positional.end());
    arguments.positional.resize(std::min<std::size_t>(arguments.positional.size(), static_cast<std::size_t>(used)));
    std::vector<Value> made;
    const auto all_items = items_of(value, tools.budget);
    for (const Value& one : all_items->items) {
        tools.budget.steps(1);
        const Value looked_at = path ? at_path(one, *path, tools.budget) : one;
        const bool passes = test ? tested(*test->string(), looked_at, rest, tools) : looked_at.truth();
        if (passes == wanted) made.push_back(one);
    }
    return Value::list(std::move(made));
}

Value join(const Value& value, Arguments& arguments, Budget& budget) {
    const std::string between = plain_text(arguments.take("d").value_or(""), budget);
    const auto path = arguments.take("attribute");
    std::string made;
    bool first = true;
    const auto all_items = items_of(value, budget);
    for (const Value& one : all_items->items) {
        budget.steps(1);
        budget.bytes(between.size());
        if (!first) made += between;
        first = false;
        made += plain_text(path && !path->is_none() ? at_path(one, *path, budget) : one, budget);
    }
    return made;
}

Value reversed(const Value& value, Budget& budget) {
    std::vector<Value> items = items_of(value, budget)->items;
    budget.steps(items.size());
    std::reverse(items.begin(), items.end());
    if (!value.string()) return Value::list(std::move(items));
    std::string text;
    for (const Value& one : items) text += *one.string();
    return text;
}

Value end_of(const Value& value, bool first, Budget& budget) {
    if (const auto* text = value.string(); text && !text->empty()) {
        const std::size_t at = first ? 0 : previous_utf8(*text, text->size());
        return text->substr(at, utf8_length((*text)[at]));
    }
    const auto items = items_of(value, budget);
    if (items->items.empty()) return Value::undefined(first ? "the first item" : "the last item");
    return first ? items->items.front() : items->items.back();
}

Value unique(const Value& value, Arguments& arguments, Budget& budget) {
    const bool case_sensitive = arguments.flag("case_sensitive", false);
    const auto path = arguments.take("attribute");
    std::vector<Value> made, seen;
    const auto all_items = items_of(value, budget);
    for (const Value& one : all_items->items) {
        const Value key = without_case(path ? at_path(one, *path, budget) : one, case_sensitive, budget);
        const bool known =
            std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return equal(other, key, budget); });
        if (known) continue;
        seen.push_back(key);
        made.push_back(one);
    }
    return Value::list(std::move(made));
}

/// The smallest (way -1) or greatest (1) one.
Value extreme(const Value& value, Arguments& arguments, int way, Budget& budget) {
    const bool case_sensitive = arguments.flag("case_sensitive", false);
    const auto path = arguments.take("attribute");
    Value best = Value::undefined("an item"), best_key;
    bool any = false;
    const auto all_items = items_of(value, budget);
    for (const Value& one : all_items->items) {
        Value key = without_case(path ? at_path(one, *path, budget) : one, case_sensitive, budget);
        if (any && compare(key, best_key, budget) != way) continue;
        any = true;
        best = one;
        best_key = std::move(key);
    }
    return best;
}

Value sum(const Value& value, Arguments& arguments, Budget& budget) {
    const auto path = arguments.take("attribute");
    Value total = arguments.take("start").value_or(std::int64_t{0});
    const auto all_items = items_of(value, budget);
    for (const Value& one : all_items->items)
        total = binary("+", total, path && !path->is_none() ? at_path(one, *path, budget) : one, budget);
    return total;
}

Value items(const Value& value, Budget& budget) {
    if (!value.dict() && !value.is_undefined()) refuse("expected a mapping", "found " + value.described());
    std::vector<Value> all;
    if (value.dict()) {
        budget.steps(value.dict()->entries.size());
        for (const auto& [key, item] : value.dict()->entries) all.push_back(Value::list({key, item}, true));
    }
    return Value::list(std::move(all));
}

/// Lists of a given length; fills up the last one if a filler is given.
Value batch(const Value& value, Arguments& arguments, Budget& budget) {
    const std::int64_t size = arguments.integer("linecount", 0);
    const auto filling = arguments.take("fill_with");
    if (size < 1 || size > 100'000) refuse("expected lists of 1 to 100 000 items", "found " + std::to_string(size));
    const auto all_items = items_of(value, budget);
    std::vector<Value> made, part;
    for (const Value& one : all_items->items) {
        budget.steps(1);
        part.push_back(one);
        if (static_cast<std::int64_t>(part.size()) == size) made.push_back(Value::list(std::exchange(part, {})));
    }
    if (part.empty()) return Value::list(std::move(made));
    if (filling && !filling->is_none()) {
        budget.steps(static_cast<std::size_t>(size));
        part.resize(static_cast<std::size_t>(size), *filling);
    }
    made.push_back(Value::list(std::move(part)));
    return Value::list(std::move(made));
}

Value fallen_back(const Value& value, Arguments& arguments) {
    Value fallback = arguments.take("default_value").value_or("");
    const bool by_truth = arguments.flag("boolean", false);
    return value.is_undefined() || (by_truth && !value.truth()) ? fallback : value;
}

const Filters& filters() {
    static const Filters all = [] {
        Filters made;
        add_text_filters(made);
        add_list_filters(made);
        return made;
    }();
    return all;
}

}  // namespace

void add_list_filters(Filters& all) {
    for (const char* name : {"default", "d"})
        all[name] = [](const Value& v, Arguments& a, Tools&) { return fallen_back(v, a); };
    for (const char* name : {"length", "count"})
        all[name] = [](const Value& v, Arguments&, Tools&) -> Value { return length_of(v); };
    for (const bool attribute : {false, true}) {
        all[attribute ? "selectattr" : "select"] = [attribute](const Value& v, Arguments& a, Tools& t) {
            return chosen(v, a, t, attribute, true);
        };
        all[attribute ? "rejectattr" : "reject"] = [attribute](const Value& v, Arguments& a, Tools& t) {
            return chosen(v, a, t, attribute, false);
        };
    }
    all["first"] = [](const Value& v, Arguments&, Tools& t) { return end_of(v, true, t.budget); };
    all["last"] = [](const Value& v, Arguments&, Tools& t) { return end_of(v, false, t.budget); };
    all["list"] = [](const Value& v, Arguments&, Tools& t) {
        const auto held = items_of(v, t.budget);
        t.budget.steps(held->items.size());
        return Value::list(held->items);
    };
    all["items"] = [](const Value& v, Arguments&, Tools& t) { return items(v, t.budget); };
    all["join"] = [](const Value& v, Arguments& a, Tools& t) { return join(v, a, t.budget); };
    all["map"] = [](const Value& v, Arguments& a, Tools& t) { return map(v, a, t); };
    all["reverse"] = [](const Value& v, Arguments&, Tools& t) { return reversed(v, t.budget); };
    all["sort"] = [](const Value& v, Arguments& a, Tools& t) { return sort(v, a, t.budget); };
    all["dictsort"] = [](const Value& v, Arguments& a, Tools& t) { return dictsort(v, a, t.budget); };
    all["unique"] = [](const Value& v, Arguments& a, Tools& t) { return unique(v, a, t.budget); };
    all["batch"] = [](const Value& v, Arguments& a, Tools& t) { return batch(v, a, t.budget); };
    all["min"] = [](const Value& v, Arguments& a, Tools& t) { return extreme(v, a, -1, t.budget); };
    all["max"] = [](const Value& v, Arguments& a, Tools& t) { return extreme(v, a, 1, t.budget); };
    all["sum"] = [](const Value& v, Arguments& a, Tools& t) { return sum(v, a, t.budget); };
}

bool is_filter(const std::string& name) {
    return filters().contains(name);
}

Value filtered(const std::string& name, const Value& subject, Arguments arguments, Tools& tools) {
    const auto found = filters().find(name);
    if (found == filters().end())
        refuse(ErrorCode::unsupported, "expected a filter that is known", "found \"" + escaped(name, 60) + '"');
    tools.budget.steps(1);
    Value made = found->second(subject, arguments, tools);
    arguments.finish();
    return made;
}

}  // namespace headscope::tokenizer::chat

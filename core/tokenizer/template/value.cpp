// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/value.h"

#include <algorithm>
#include <cmath>

namespace headscope::tokenizer::chat {
namespace {

constexpr int deepest = 100;

int deeper(int depth, const Value& value) {
    depth = std::max(depth, value.depth() + 1);
    if (depth > deepest)
        refuse(ErrorCode::limit, "expected lists at most 100 deep in one another", "found deeper ones");
    return depth;
}

bool is_number(const Value& value) {
    return value.get<bool>() || value.get<std::int64_t>() || value.get<double>();
}

int order(double a, double b) {
    return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

}  // namespace

Value Value::undefined(std::string_view name) {
    Value value;
    value.held_ = Undefined{std::make_shared<const std::string>(name)};
    return value;
}

Value Value::list(std::vector<Value> items, bool tuple) {
    int depth = 1;
    for (const Value& item : items) depth = deeper(depth, item);
    Value value;
    value.held_ = std::make_shared<const List>(List{std::move(items), tuple, depth});
    return value;
}

Value Value::dict(std::vector<std::pair<Value, Value>> entries, Budget& budget) {
    Dict dict;
    for (auto& [key, item] : entries) {
        if (key.dict() || key.get<Namespace*>() || (key.list() && !key.list()->tuple))
            refuse("expected a key that does not change", "found " + key.kind());
        dict.depth = deeper(deeper(dict.depth, key), item);
        if (const Value* there = find(dict, key, budget))
            const_cast<Value&>(*there) = std::move(item);
        else
            dict.entries.emplace_back(std::move(key), std::move(item));
    }
    Value value;
    value.held_ = std::make_shared<const Dict>(std::move(dict));
    return value;
}

const std::string* Value::string() const {
    const auto* held = get<std::shared_ptr<const std::string>>();
    return held ? held->get() : nullptr;
}

const List* Value::list() const {
    const auto* held = get<std::shared_ptr<const List>>();
    return held ? held->get() : nullptr;
}

std::shared_ptr<const List> Value::shared_list() const {
    const auto* held = get<std::shared_ptr<const List>>();
    return held ? *held : nullptr;
}

const Dict* Value::dict() const {
    const auto* held = get<std::shared_ptr<const Dict>>();
    return held ? held->get() : nullptr;
}

bool Value::integer(std::int64_t& value) const {
    if (const auto* flag = get<bool>()) return value = *flag ? 1 : 0, true;
    if (const auto* held = get<std::int64_t>()) return value = *held, true;
    return false;
}

bool Value::number(double& value) const {
    if (const auto* held = get<double>()) return value = *held, true;
    std::int64_t whole = 0;
    if (!integer(whole)) return false;
    value = static_cast<double>(whole);
    return true;
}

bool Value::truth() const {
    if (is_undefined() || is_none()) return false;
    if (const auto* text = string()) return !text->empty();
    if (const auto* items = list()) return !items->items.empty();
    if (const auto* entries = dict()) return !entries->entries.empty();
    double value = 1;
    number(value);
    return value != 0;
}

int Value::depth() const {
    if (const auto* items = list()) return items->depth;
    if (const auto* entries = dict()) return entries->depth;
    // A method holds what it is a method of.
    if (const auto* function = get<std::shared_ptr<const Function>>()) return (*function)->self.depth() + 1;
    if (const auto* loop = get<std::shared_ptr<const Loop>>()) return (*loop)->items->depth + 1;
    return 0;
}

std::string Value::kind() const {
    if (is_undefined()) return "something undefined";
    if (is_none()) return "none";
    if (string()) return "a string";
    if (get<bool>()) return "a truth value";
    if (get<std::int64_t>()) return "a whole number";
    if (get<double>()) return "a number";
    if (list()) return list()->tuple ? "a tuple" : "a list";
    if (dict()) return "a mapping";
    if (get<Namespace*>()) return "a namespace";
    return get<std::shared_ptr<const Loop>>() ? "the loop" : "a function";
}

std::string Value::described() const {
    const auto* undefined = get<Undefined>();
    return undefined && undefined->name ? "\"" + escaped(*undefined->name, 60) + "\", which is not defined" : kind();
}

bool equal(const Value& a, const Value& b, Budget& budget) {
    budget.steps(1);
    std::int64_t i = 0, j = 0;
    double x = 0, y = 0;
    if (a.integer(i) && b.integer(j)) return i == j;
    if (a.number(x) && b.number(y)) return x == y;
    if (a.string() && b.string()) return budget.steps(a.string()->size() / 64), *a.string() == *b.string();
    if (a.is_none() || a.is_undefined()) return a.is_none() == b.is_none() && a.is_undefined() == b.is_undefined();
    if (a.list() && b.list()) {
        const auto &left = a.list()->items, &right = b.list()->items;
        return a.list()->tuple == b.list()->tuple && left.size() == right.size() &&
               std::equal(left.begin(), left.end(), right.begin(),
                          [&](const Value& l, const Value& r) { return equal(l, r, budget); });
    }
    if (a.dict() && b.dict()) {
        if (a.dict()->entries.size() != b.dict()->entries.size()) return false;
        for (const auto& [key, item] : a.dict()->entries) {
            const Value* other = find(*b.dict(), key, budget);
            if (!other || !equal(item, *other, budget)) return false;
        }
        return true;
    }
    const auto same = [&]<class T>(const T*) {
        const T *left = a.get<T>(), *right = b.get<T>();
        return left && right && *left == *right;
    };
    return same(static_cast<Namespace* const*>(nullptr)) ||
           same(static_cast<const std::shared_ptr<const Loop>*>(nullptr)) ||
           same(static_cast<const std::shared_ptr<const Function>*>(nullptr));
}

int compare(const Value& a, const Value& b, Budget& budget) {
    budget.steps(1);
    std::int64_t i = 0, j = 0;
    double x = 0, y = 0;
    if (a.integer(i) && b.integer(j)) return i < j ? -1 : i > j ? 1 : 0;
    if (is_number(a) && is_number(b) && a.number(x) && b.number(y)) return order(x, y);
    // Bytes of UTF-8 have the order of their characters.
    if (a.string() && b.string()) {
        budget.steps(a.string()->size() / 64);
        const int way = a.string()->compare(*b.string());
        return way < 0 ? -1 : way > 0 ? 1 : 0;
    }
    if (a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
        const auto &left = a.list()->items, &right = b.list()->items;
        for (std::size_t k = 0; k < std::min(left.size(), right.size()); ++k)
            if (!equal(left[k], right[k], budget)) return compare(left[k], right[k], budget);
        return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
    }
    refuse("expected two values of a kind that has an order", "found " + a.described() + " and " + b.described());
}

const Value* find(const Dict& dict, const Value& key, Budget& budget) {
    for (const auto& [there, item] : dict.entries)
        if (equal(there, key, budget)) return &item;
    return nullptr;
}

const Value* find(const Dict& dict, std::string_view key, Budget& budget) {
    budget.steps(1 + dict.entries.size() / 4);
    for (const auto& [there, item] : dict.entries)
        if (there.string() && *there.string() == key) return &item;
    return nullptr;
}

}  // namespace headscope::tokenizer::chat

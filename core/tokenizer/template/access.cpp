// SPDX-License-Identifier: GPL-3.0-or-later
// Attributes, items and slices.
#include <algorithm>
#include <charconv>

#include "core/tokenizer/template/operations.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

Value of_loop(const Loop& loop, const std::string& name) {
    const auto& items = loop.items->items;
    const auto length = static_cast<std::int64_t>(items.size());
    if (name == "index") return loop.index + 1;
    if (name == "index0") return loop.index;
    if (name == "revindex") return length - loop.index;
    if (name == "revindex0") return length - loop.index - 1;
    if (name == "first") return loop.index == 0;
    if (name == "last") return loop.index == length - 1;
    if (name == "length") return length;
    if (name == "depth") return std::int64_t{1};  // of loops that call themselves
    if (name == "depth0") return std::int64_t{0};
    if (name == "previtem" && loop.index > 0) return items[static_cast<std::size_t>(loop.index - 1)];
    if (name == "nextitem" && loop.index + 1 < length) return items[static_cast<std::size_t>(loop.index + 1)];
    return Value::undefined("loop." + name);
}

/// Methods and attributes alone; nothing where there is none.
std::optional<Value> own_attribute(const Value& object, const std::string& name) {
    if (const auto* space = object.get<Namespace*>()) {
        const auto found = (*space)->values.find(name);
        if (found != (*space)->values.end()) return found->second;
        return std::nullopt;
    }
    const auto* loop = object.get<std::shared_ptr<const Loop>>();
    if (loop && name != "cycle") return of_loop(**loop, name);
    switch (method_of(object, name)) {
        case Method::none:
            return std::nullopt;
        case Method::changing:
            refuse("expected values that templates do not change", "found a call of ." + escaped(name, 60));
        case Method::known:
            break;
    }
    return Value(std::make_shared<const Function>(Function{Function::Kind::method, name, nullptr, object}));
}

std::optional<Value> entry(const Value& object, const Value& key, Budget& budget) {
    if (const auto* dict = object.dict()) {
        const Value* found =
            key.string() ? find(*dict, std::string_view(*key.string()), budget) : find(*dict, key, budget);
        return found ? std::optional<Value>(*found) : std::nullopt;
    }
    std::int64_t index = 0;
    if (!key.integer(index)) return std::nullopt;
    if (const auto* list = object.list()) {
        const auto size = static_cast<std::int64_t>(list->items.size());
        if (index < 0) index += size;
        if (index < 0 || index >= size) return std::nullopt;
        return list->items[static_cast<std::size_t>(index)];
    }
    if (const auto* text = object.string()) {
        budget.steps(text->size() / 16);
        if (index < 0) index += static_cast<std::int64_t>(count_utf8(*text));
        std::size_t at = 0;
        for (; index > 0 && at < text->size(); --index) at += utf8_length((*text)[at]);
        if (index != 0 || at >= text->size()) return std::nullopt;
        return Value(text->substr(at, utf8_length((*text)[at])));
    }
    return std::nullopt;
}

/// Characters [begin, end).
std::string part_of(const std::string& text, std::int64_t begin, std::int64_t end, Budget& budget) {
    budget.steps(text.size() / 64);
    std::size_t from = 0;
    for (std::int64_t i = 0; i < begin; ++i) from += utf8_length(text[from]);
    std::size_t to = from;
    for (std::int64_t i = begin; i < end; ++i) to += utf8_length(text[to]);
    budget.bytes(to - from);
    return text.substr(from, to - from);
}

[[noreturn]] void refuse_parts(const Value& object, const std::string& part) {
    refuse("expected something to take \"" + escaped(part, 60) + "\" from", "found " + object.described());
}

}  // namespace

Value attribute(const Value& object, const std::string& name, Budget& budget) {
    if (object.is_undefined()) refuse_parts(object, name);
    if (auto found = own_attribute(object, name)) return *std::move(found);
    if (object.dict())
        if (auto found = entry(object, Value(name), budget)) return *std::move(found);
    return Value::undefined(name);
}

Value item(const Value& object, const Value& key, Budget& budget) {
    const std::string name = key.string() ? *key.string() : key.get<std::int64_t>() ? plain_text(key, budget) : "";
    if (object.is_undefined()) refuse_parts(object, name);
    if (auto found = entry(object, key, budget)) return *std::move(found);
    if (key.string())
        if (auto found = own_attribute(object, name)) return *std::move(found);
    return Value::undefined(name);
}

Value at_path(const Value& object, const Value& path, Budget& budget) {
    if (!path.string()) return item(object, path, budget);
    Value value = object;
    const std::string dot = ".";
    for (const std::string& part : split(*path.string(), &dot, -1, false)) {
        std::int64_t index = 0;
        const char* end = part.data() + part.size();
        const auto [stop, error] = std::from_chars(part.data(), end, index);
        const bool number = error == std::errc() && stop == end && part[0] != '-';
        value = item(value, number ? Value(index) : Value(part), budget);
    }
    return value;
}

Value slice(const Value& object, const Value* start, const Value* stop, const Value* step, Budget& budget) {
    const auto number = [](const Value* value, std::int64_t fallback) {
        if (!value || value->is_none()) return fallback;
        std::int64_t found = 0;
        if (!value->integer(found)) refuse("expected whole numbers in a slice", "found " + value->described());
        return found;
    };
    if (object.is_undefined()) refuse_parts(object, "a slice");
    if (!object.string() && !object.list()) return Value::undefined("a slice of " + object.kind());
    const std::int64_t size = length_of(object), stride = number(step, 1);
    if (stride == 0) refuse("expected a slice with steps", "found a step of 0");
    // Python's rules: positions count from the end where negative, and are cut to what is there.
    const auto bounded = [&](std::int64_t at) {
        if (at < 0) at = at < -size ? -1 : at + size;
        return stride > 0 ? std::clamp<std::int64_t>(at, 0, size) : std::clamp<std::int64_t>(at, -1, size - 1);
    };
    const bool starts = start && !start->is_none(), stops = stop && !stop->is_none();
    const std::int64_t begin = starts ? bounded(number(start, 0)) : stride > 0 ? 0 : size - 1;
    const std::int64_t end = stops ? bounded(number(stop, 0)) : stride > 0 ? size : -1;
    if (object.string() && stride == 1) return part_of(*object.string(), begin, end, budget);
    const auto items = items_of(object, budget);
    std::vector<Value> taken;
    std::string text;
    for (std::int64_t i = begin; stride > 0 ? i < end : i > end;) {
        budget.steps(1);
        const Value& one = items->items[static_cast<std::size_t>(i)];
        if (object.string())
            text += *one.string();
        else
            taken.push_back(one);
        if (__builtin_add_overflow(i, stride, &i)) break;
    }
    if (object.list()) return Value::list(std::move(taken), object.list()->tuple);
    budget.bytes(text.size());
    return text;
}

}  // namespace headscope::tokenizer::chat

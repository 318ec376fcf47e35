// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

[[noreturn]] void refuse_operands(const std::string& sign, const Value& left, const Value& right) {
    refuse("expected two values that \"" + sign + "\" takes",
           "found " + left.described() + " and " + right.described());
}

std::int64_t whole(bool overflowed, std::int64_t value) {
    if (overflowed) refuse(ErrorCode::limit, "expected whole numbers below 2^63", "found a greater one");
    return value;
}

std::int64_t floor_division(std::int64_t a, std::int64_t b) {
    if (b == -1) return whole(a == std::numeric_limits<std::int64_t>::min(), -a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Value power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
    std::int64_t result = 1;
    for (std::int64_t i = 0; i < exponent; ++i) {
        if (base == 0 || base == 1) return exponent > 0 ? base : 1;
        if (base == -1) return std::int64_t{exponent % 2 == 0 ? 1 : -1};
        const bool over = __builtin_mul_overflow(result, base, &result);
        whole(over, result);
    }
    return result;
}

Value of_whole(const std::string& sign, std::int64_t a, std::int64_t b) {
    std::int64_t made = 0;
    if (sign == "+") {
        const bool over = __builtin_add_overflow(a, b, &made);
        return whole(over, made);
    }
    if (sign == "-") {
        const bool over = __builtin_sub_overflow(a, b, &made);
        return whole(over, made);
    }
    if (sign == "*") {
        const bool over = __builtin_mul_overflow(a, b, &made);
        return whole(over, made);
    }
    if (sign == "**") return power(a, b);
    if (b == 0) refuse("expected a divisor", "found 0");
    if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
    const std::int64_t quotient = floor_division(a, b);
    return sign == "//" ? quotient : b == -1 ? std::int64_t{0} : a - quotient * b;
}

Value of_real(const std::string& sign, double a, double b) {
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (sign == "**") return std::pow(a, b);
    if (b == 0) refuse("expected a divisor", "found 0");
    if (sign == "/") return a / b;
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    return sign == "%" ? rest : std::round((a - rest) / b);
}

Value repeated(const Value& value, std::int64_t times, Budget& budget) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
    const auto checked = [&](std::size_t size) {
        return size > 0 && count > std::numeric_limits<std::size_t>::max() / size ? std::string::npos : size * count;
    };
    if (const auto* text = value.string()) {
        budget.bytes(checked(text->size()));
        std::string made;
        made.reserve(text->size() * count);
        if (!text->empty())
            for (std::size_t i = 0; i < count; ++i) made += *text;
        return made;
    }
    budget.steps(checked(value.list()->items.size()));
    std::vector<Value> items;
    if (!value.list()->items.empty())
        for (std::size_t i = 0; i < count; ++i)
            items.insert(items.end(), value.list()->items.begin(), value.list()->items.end());
    return Value::list(std::move(items), value.list()->tuple);
}

}  // namespace

Value binary(const std::string& sign, const Value& left, const Value& right, Budget& budget) {
    std::int64_t a = 0, b = 0;
    double x = 0, y = 0;
    if (left.integer(a) && right.integer(b)) return of_whole(sign, a, b);
    if (left.number(x) && right.number(y)) return of_real(sign, x, y);
    if (sign == "+" && left.string() && right.string()) {
        budget.bytes(left.string()->size() + right.string()->size());
        return *left.string() + *right.string();
    }
    if (sign == "+" && left.list() && right.list() && left.list()->tuple == right.list()->tuple) {
        budget.steps(left.list()->items.size() + right.list()->items.size());
        std::vector<Value> items = left.list()->items;
        items.insert(items.end(), right.list()->items.begin(), right.list()->items.end());
        return Value::list(std::move(items), left.list()->tuple);
    }
    if (sign == "*" && (left.string() || left.list()) && right.integer(b)) return repeated(left, b, budget);
    if (sign == "*" && (right.string() || right.list()) && left.integer(a)) return repeated(right, a, budget);
    if (sign == "%" && left.string()) return percent_format(*left.string(), right, budget);
    refuse_operands(sign, left, right);
}

Value negative(const Value& value) {
    std::int64_t number = 0;
    if (value.integer(number)) return whole(number == std::numeric_limits<std::int64_t>::min(), -number);
    if (const auto* real = value.get<double>()) return -*real;
    refuse("expected a number after \"-\"", "found " + value.described());
}

bool contains(const Value& container, const Value& item, Budget& budget) {
    if (container.is_undefined()) return false;
    if (const auto* text = container.string()) {
        if (!item.string()) refuse("expected a string to look for in a string", "found " + item.described());
        budget.steps(text->size() / 64);
        return find_text(*text, *item.string(), 0) != std::string_view::npos;
    }
    if (const auto* dict = container.dict()) return find(*dict, item, budget) != nullptr;
    if (const auto* list = container.list())
        return std::any_of(list->items.begin(), list->items.end(),
                           [&](const Value& one) { return equal(one, item, budget); });
    refuse("expected something to look for a value in", "found " + container.described());
}

std::shared_ptr<const List> items_of(const Value& value, Budget& budget) {
    if (auto list = value.shared_list()) return list;
    List made;
    if (const auto* text = value.string()) {
        budget.steps(text->size());
        for (auto& character : characters(*text)) made.items.emplace_back(std::move(character));
    } else if (const auto* dict = value.dict()) {
        budget.steps(dict->entries.size());
        for (const auto& entry : dict->entries) made.items.push_back(entry.first);
        made.depth = dict->depth;
    } else if (!value.is_undefined()) {
        refuse("expected something to go through", "found " + value.kind());
    }
    return std::make_shared<const List>(std::move(made));
}

std::int64_t length_of(const Value& value) {
    if (value.is_undefined()) return 0;
    if (const auto* text = value.string()) return static_cast<std::int64_t>(count_utf8(*text));
    if (const auto* list = value.list()) return static_cast<std::int64_t>(list->items.size());
    if (const auto* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
    if (const auto* loop = value.get<std::shared_ptr<const Loop>>())
        return static_cast<std::int64_t>((*loop)->items->items.size());
    refuse("expected something that has a length", "found " + value.kind());
}

}  // namespace headscope::tokenizer::chat

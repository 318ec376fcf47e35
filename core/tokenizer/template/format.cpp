// SPDX-License-Identifier: GPL-3.0-or-later
// Python's two ways to put values into a text: "%s" % values and "{}".format(...).
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/tokenizer/template/operations.h"
#include "core/tokenizer/template/python_text.h"

namespace headscope::tokenizer::chat {
namespace {

constexpr std::int64_t widest = 1000;

std::string padded(std::string text, std::int64_t width, bool left, bool zeros) {
    const auto size = length_of(Value(text));
    if (size >= width) return text;
    const auto missing = static_cast<std::size_t>(width - size);
    if (left) return text + std::string(missing, ' ');
    const std::size_t sign = zeros && !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    return text.insert(zeros ? sign : 0, std::string(missing, zeros ? '0' : ' '));
}

std::string fixed(double value, std::int64_t digits) {
    std::array<char, 1500> buffer{};
    const auto size = std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), value);
    return {buffer.data(), static_cast<std::size_t>(size)};
}

std::string converted(char kind, const Value& value, std::optional<std::int64_t> precision, Budget& budget) {
    if (kind == 's' || kind == 'r') {
        std::string text = kind == 's' ? plain_text(value, budget) : code_text(value, budget);
        if (!precision) return text;
        const Value stop(*precision);
        return *slice(Value(std::move(text)), nullptr, &stop, nullptr, budget).string();
    }
    double number = 0;
    if (!value.number(number)) refuse(std::string("expected a number for %") + kind, "found " + value.described());
    if (kind == 'f') return fixed(number, precision.value_or(6));
    std::int64_t whole = 0;
    if (!value.integer(whole)) {
        if (!(std::fabs(number) < 9e18)) refuse("expected a whole number below 2^63", "found a greater one");
        whole = static_cast<std::int64_t>(number);
    }
    if (kind == 'd' || kind == 'i') return std::to_string(whole);
    std::array<char, 24> buffer{};
    const auto size = static_cast<std::uint64_t>(whole < 0 ? -whole : whole);
    std::snprintf(buffer.data(), buffer.size(), kind == 'x' ? "%s%lx" : "%s%lX", whole < 0 ? "-" : "",
                  static_cast<unsigned long>(size));
    return buffer.data();
}

}  // namespace

std::string percent_format(std::string_view format, const Value& values, Budget& budget) {
    const List* list = values.list() && values.list()->tuple ? values.list() : nullptr;
    std::size_t used = 0;
    const auto next = [&]() -> const Value& {
        if (list ? used >= list->items.size() : used > 0)
            refuse("expected a value for each %", "found " + std::to_string(used));
        return list ? list->items[used++] : (++used, values);
    };
    const auto number = [&](std::size_t& at) {
        std::int64_t found = 0;
        const auto [stop, error] = std::from_chars(format.data() + at, format.data() + format.size(), found);
        if (error == std::errc() && stop != format.data() + at) at = static_cast<std::size_t>(stop - format.data());
        if (found < 0 || found > widest || error == std::errc::result_out_of_range)
            refuse(ErrorCode::limit, "expected a width of at most 1000", "found a greater one");
        return found;
    };
    std::string made;
    for (std::size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            made += format[at++];
            continue;
        }
        if (++at < format.size() && format[at] == '%') {
            made += format[at++];
            continue;
        }
        bool left = false, zeros = false;
        for (; at < format.size() && (format[at] == '-' || format[at] == '0'); ++at)
            (format[at] == '-' ? left : zeros) = true;
        const bool wide = at < format.size() && format[at] >= '1' && format[at] <= '9';
        const std::int64_t width = wide ? number(at) : 0;
        std::optional<std::int64_t> precision;
        if (at < format.size() && format[at] == '.') precision = number(++at);
        if (at >= format.size() || std::string_view("srdifxX").find(format[at]) == std::string_view::npos)
            refuse(ErrorCode::unsupported, "expected %s, %r, %d, %i, %f, %x or %%", "found another format");
        const char kind = format[at++];
        made += padded(converted(kind, next(), precision, budget), width, left, zeros && kind != 's' && kind != 'r');
        budget.steps(1);
    }
    if (list ? used < list->items.size() : used == 0 && !values.dict())
        refuse("expected a % for each value", "found more values");
    budget.bytes(made.size());
    return made;
}

std::string brace_format(std::string_view format, const Arguments& arguments, Budget& budget) {
    std::string made;
    std::size_t used = 0;
    for (std::size_t at = 0; at < format.size(); ++at) {
        const char c = format[at];
        if (c != '{' && c != '}') {
            made += c;
            continue;
        }
        if (at + 1 < format.size() && format[at + 1] == c) {
            made += c;
            ++at;
            continue;
        }
        const std::size_t end = format.find('}', at);
        if (c == '}' || end == std::string_view::npos) refuse("expected braces in pairs", "found a single one");
        const std::string_view name = format.substr(at + 1, end - at - 1);
        if (name.find_first_of(":!.[{") != std::string_view::npos)
            refuse(ErrorCode::unsupported, "expected {}, {0} or {name}", "found \"{" + escaped(name, 60) + "}\"");
        const Value* value = nullptr;
        std::size_t position = used;
        const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), position);
        if (name.empty()) ++used;
        if (name.empty() || (error == std::errc() && stop == name.data() + name.size())) {
            if (position < arguments.positional.size()) value = &arguments.positional[position];
        } else {
            for (const auto& [key, one] : arguments.named)
                if (key == name) value = &one;
        }
        if (!value) refuse("expected a value for each {}", "found none for \"{" + escaped(name, 60) + "}\"");
        const std::string text = plain_text(*value, budget);
        budget.bytes(text.size());
        budget.steps(1);
        made += text;
        at = end;
    }
    return made;
}

}  // namespace headscope::tokenizer::chat

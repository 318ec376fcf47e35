// SPDX-License-Identifier: GPL-3.0-or-later
// Filters that make texts and numbers.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/tokenizer/template/filters.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer::chat {
namespace {

/// As Python's int() and float() of a text; empty if they refuse it.
std::optional<double> parsed(std::string_view text, bool real) {
    text = stripped(text, nullptr, true, true);
    const std::string digits(text);
    if (digits.find_first_not_of(real ? "0123456789+-.eEinfatyINFATY" : "0123456789+-") != std::string::npos) return {};
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0') return {};
    return value;
}

Value to_integer(const Value& value, Arguments& arguments) {
    const Value fallback = arguments.take("default").value_or(std::int64_t{0});
    std::int64_t base = arguments.integer("base", 10), whole = 0;
    if (value.integer(whole)) return whole;
    if (value.is_undefined()) refuse("expected a number", "found " + value.described());
    std::optional<double> number;
    if (const auto* real = value.get<double>()) number = *real;
    if (const auto* text = value.string()) {
        const std::string digits(stripped(*text, nullptr, true, true));
        char* end = nullptr;
        errno = 0;
        const long long found =
            std::strtoll(digits.c_str(), &end, static_cast<int>(std::clamp<std::int64_t>(base, 2, 36)));
        if (!digits.empty() && *end == '\0' && errno == 0) return static_cast<std::int64_t>(found);
        number = parsed(digits, true);
    }
    if (!number || std::isnan(*number)) return fallback;
    if (!(std::fabs(*number) < 9.2e18))
        refuse(ErrorCode::limit, "expected whole numbers below 2^63", "found a greater one");
    return static_cast<std::int64_t>(*number);
}

Value to_real(const Value& value, Arguments& arguments) {
    const Value fallback = arguments.take("default").value_or(0.0);
    double number = 0;
    if (value.number(number)) return number;
    if (value.is_undefined()) refuse("expected a number", "found " + value.described());
    const auto found = value.string() ? parsed(*value.string(), true) : std::nullopt;
    return found ? Value(*found) : fallback;
}

Value rounded(const Value& value, Arguments& arguments) {
    const std::int64_t digits = std::clamp<std::int64_t>(arguments.integer("precision", 0), -300, 300);
    const Value method = arguments.take("method").value_or("common");
    double number = 0;
    if (!value.number(number)) refuse("expected a number", "found " + value.described());
    const bool common = !method.string() || (*method.string() != "ceil" && *method.string() != "floor");
    if (std::int64_t whole = 0; common && value.integer(whole)) {
        // A whole number stays one; in the middle of two the even one is taken.
        std::int64_t unit = 1;
        for (std::int64_t i = digits; i < 0 && unit < 1'000'000'000'000'000'000; ++i) unit *= 10;
        if (digits >= 0) return whole;
        if (digits < -18) return std::int64_t{0};
        if (whole < -8'000'000'000'000'000'000 || whole > 8'000'000'000'000'000'000)
            refuse(ErrorCode::limit, "expected whole numbers below 2^63", "found one that rounds to a greater one");
        const std::int64_t rest = ((whole % unit) + unit) % unit, below = whole - rest;
        const bool up = 2 * rest > unit || (2 * rest == unit && below / unit % 2 != 0);
        return below + (up ? unit : 0);
    }
    const double scale = std::pow(10.0, static_cast<double>(digits));
    if (!common) return (*method.string() == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale;
    if (digits < 0) return std::nearbyint(number * scale) / scale;
    // printf rounds the number that is there, as Python does.
    std::array<char, 700> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), number);
    return std::strtod(buffer.data(), nullptr);
}

/// Upper case at the start and behind spaces, brackets and dashes.
std::string words_titled(std::string_view text) {
    std::string made;
    bool begins = true;
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
        const std::string_view one = text.substr(at, utf8_length(text[at]));
        made += begins ? upper(one) : lower(one);
        begins = std::string_view("-({[<").find(one) != std::string_view::npos || is_white(decode_utf8(text, at).point);
    }
    return made;
}

Value indented(std::string text, Arguments& arguments, Budget& budget) {
    const Value width = arguments.take("width").value_or(std::int64_t{4});
    const bool first = arguments.flag("first", false), blank = arguments.flag("blank", false);
    std::int64_t spaces = 0;
    if (!width.string() && (!width.integer(spaces) || spaces > 1000))
        refuse("expected a string or at most 1000 spaces", "found " + width.described());
    const std::string indent = width.string()
                                   ? *width.string()
                                   : std::string(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)), ' ');
    const auto lines = split_lines(text + "\n", false);
    budget.bytes(lines.size() * (indent.size() + 1));
    std::string made = first ? indent : "";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) made += '\n';
        if (i > 0 && (blank || !lines[i].empty())) made += indent;
        made += lines[i];
    }
    return made;
}

Value to_json(const Value& value, Arguments& arguments, Budget& budget) {
    JsonStyle style;
    style.ascii = arguments.flag("ensure_ascii", false);
    const Value indent = arguments.take("indent").value_or(None{});
    const Value separators = arguments.take("separators").value_or(None{});
    style.sort_keys = arguments.flag("sort_keys", false);
    std::int64_t spaces = 0;
    if (indent.string() || indent.integer(spaces)) {
        if (spaces > 100) refuse(ErrorCode::limit, "expected an indent of at most 100 spaces", "found more");
        style.lines = true;
        style.item_separator = ",";
        style.indent = indent.string() ? *indent.string()
                                       : std::string(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)), ' ');
    }
    if (!separators.is_none()) {
        const auto* list = separators.list();
        if (!list || list->items.size() != 2 || !list->items[0].string() || !list->items[1].string())
            refuse("expected two separators", "found " + separators.described());
        style.item_separator = *list->items[0].string();
        style.key_separator = *list->items[1].string();
    }
    return json_text(value, style, budget);
}

std::string html(std::string_view text) {
    std::string made;
    for (const char c : text) {
        const char* known = c == '&'    ? "&amp;"
                            : c == '<'  ? "&lt;"
                            : c == '>'  ? "&gt;"
                            : c == '"'  ? "&#34;"
                            : c == '\'' ? "&#39;"
                                        : nullptr;
        known ? made.append(known) : made.append(1, c);
    }
    return made;
}

Value replaced_in(const std::string& text, Arguments& arguments, Budget& budget) {
    const Value old = arguments.need("old"), with = arguments.need("new");
    const auto count = arguments.take("count");
    std::int64_t most = -1;
    if (count && !count->is_none() && !count->integer(most))
        refuse("expected a whole number for \"count\"", "found " + count->described());
    return replaced(text, plain_text(old, budget), plain_text(with, budget), most, budget);
}

}  // namespace

void add_text_filters(Filters& all) {
    const auto of_text = [&](std::initializer_list<const char*> names, auto make) {
        for (const char* name : names)
            all[name] = [make](const Value& v, Arguments&, Tools& t) -> Value { return make(plain_text(v, t.budget)); };
    };
    of_text({"string", "safe"}, [](std::string text) { return text; });
    of_text({"upper"}, [](const std::string& text) { return upper(text); });
    of_text({"lower"}, [](const std::string& text) { return lower(text); });
    of_text({"capitalize"}, [](const std::string& text) { return capitalized(text); });
    of_text({"title"}, [](const std::string& text) { return words_titled(text); });
    of_text({"e", "escape"}, [](const std::string& text) { return html(text); });
    all["trim"] = [](const Value& v, Arguments& a, Tools& t) -> Value {
        const auto given = a.take("chars");
        const std::string text = plain_text(v, t.budget);
        return std::string(stripped(text, given ? given->string() : nullptr, true, true));
    };
    all["replace"] = [](const Value& v, Arguments& a, Tools& t) {
        return replaced_in(plain_text(v, t.budget), a, t.budget);
    };
    all["indent"] = [](const Value& v, Arguments& a, Tools& t) {
        return indented(plain_text(v, t.budget), a, t.budget);
    };
    all["format"] = [](const Value& v, Arguments& a, Tools& t) -> Value {
        const Value values = Value::list(std::exchange(a.positional, {}), true);
        return percent_format(plain_text(v, t.budget), values, t.budget);
    };
    all["tojson"] = [](const Value& v, Arguments& a, Tools& t) { return to_json(v, a, t.budget); };
    all["int"] = [](const Value& v, Arguments& a, Tools&) { return to_integer(v, a); };
    all["float"] = [](const Value& v, Arguments& a, Tools&) { return to_real(v, a); };
    all["round"] = [](const Value& v, Arguments& a, Tools&) { return rounded(v, a); };
    all["abs"] = [](const Value& v, Arguments&, Tools& t) {
        return compare(v, std::int64_t{0}, t.budget) < 0 ? negative(v) : v;
    };
}

}  // namespace headscope::tokenizer::chat

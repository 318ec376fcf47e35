// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/toml_document.h"

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace headscope::training {
namespace {

using nlohmann::json;

// No key of ours is deeper than four. The parser makes a table of each part of a dotted key and takes them apart one
// inside the other: a file made for it would end the stack.
constexpr int kMostParts = 16, kMostDepth = 32;

TextPlace place_of(const toml::source_region& region) {
    return {static_cast<std::int64_t>(region.begin.line), static_cast<std::int64_t>(region.begin.column)};
}

/// A key as a part of a JSON pointer (RFC 6901).
std::string pointer_part(std::string_view key) {
    std::string part = "/";
    for (const char c : key) {
        if (c == '~')
            part += "~0";
        else if (c == '/')
            part += "~1";
        else
            part += c;
    }
    return part;
}

/// Behind the string that begins at `at`; one on a single line ends there at the latest.
std::size_t behind_string(std::string_view text, std::size_t at) {
    const char quote = text[at];
    const bool several_lines = text.substr(at, 3) == std::string(3, quote);
    for (at += several_lines ? 3 : 1; at < text.size(); ++at) {
        if (quote == '"' && text[at] == '\\')
            ++at;
        else if (several_lines ? text.substr(at, 3) == std::string(3, quote) : text[at] == quote || text[at] == '\n')
            return at + (several_lines ? 3 : 1);
    }
    return text.size();
}

/// Refuses dotted keys of many parts, before anything is made of them.
void check_keys(std::string_view text, const std::string& where) {
    int parts = 1;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '#') {
            at = std::min(text.find('\n', at), text.size());
        } else if (c == '"' || c == '\'') {
            at = behind_string(text, at);
        } else {
            const bool of_key = c == '.' || c == ' ' || c == '\t' || c == '-' || c == '_' ||
                                std::isalnum(static_cast<unsigned char>(c)) != 0;
            parts = c == '.' ? parts + 1 : of_key ? parts : 1;
            ++at;
        }
        if (parts <= kMostParts) continue;
        const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
        throw Error(ErrorCode::format, place_text(where, {line, 1}),
                    "expected keys of at most " + std::to_string(kMostParts) + " parts", "found one of more");
    }
}

class Converter {
public:
    Converter(std::string where, std::map<std::string, TextPlace>& places)
        : where_(std::move(where)), places_(places) {}

    json table(const toml::table& values, const std::string& path, int depth) {
        if (depth > kMostDepth)
            refuse(values, "tables and lists at most " + std::to_string(kMostDepth) + " deep", "deeper ones");
        json object = json::object();
        for (const auto& [key, node] : values) {
            const std::string inside = path + pointer_part(key.str());
            places_[inside] = place_of(key.source());
            object[std::string(key.str())] = value(node, inside, depth + 1);
        }
        return object;
    }

private:
    json value(const toml::node& node, const std::string& path, int depth) {
        switch (node.type()) {
            case toml::node_type::table:
                return table(*node.as_table(), path, depth);
            case toml::node_type::array:
                return list(*node.as_array(), path, depth);
            case toml::node_type::string:
                return **node.as_string();
            case toml::node_type::integer:
                return **node.as_integer();
            case toml::node_type::boolean:
                return **node.as_boolean();
            case toml::node_type::floating_point: {
                const double number = **node.as_floating_point();
                if (!std::isfinite(number)) refuse(node, "a finite number", std::isnan(number) ? "nan" : "inf");
                return number;
            }
            default:
                refuse(node, "a text, number, list or table", "a date or time");
        }
    }

    json list(const toml::array& values, const std::string& path, int depth) {
        if (depth > kMostDepth)
            refuse(values, "tables and lists at most " + std::to_string(kMostDepth) + " deep", "deeper ones");
        json items = json::array();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::string inside = path + "/" + std::to_string(i);
            places_[inside] = place_of(values[i].source());
            items.push_back(value(values[i], inside, depth + 1));
        }
        return items;
    }

    [[noreturn]] void refuse(const toml::node& node, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, place_text(where_, place_of(node.source())), "expected " + expected,
                    "found " + found);
    }

    std::string where_;
    std::map<std::string, TextPlace>& places_;
};

std::string quoted_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (byte < 0x20 || byte == 0x7F) {
            constexpr std::string_view digits = "0123456789ABCDEF";
            out += "\\u00";
            out += digits[byte >> 4U];
            out += digits[byte & 15U];
        } else {
            out += c;
        }
    }
    return out + '"';
}

/// The shortest digits that read back as the same number, always with a point or an exponent: a float of TOML.
std::string float_text(double value) {
    std::array<char, 64> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    std::string text(buffer.data(), end);
    if (text.find_first_of(".eni") == std::string::npos) text += ".0";
    return text;
}

}  // namespace

TomlDocument::TomlDocument() : values_(std::make_unique<json>(json::object())) {}
TomlDocument::~TomlDocument() = default;
TomlDocument::TomlDocument(TomlDocument&&) noexcept = default;
TomlDocument& TomlDocument::operator=(TomlDocument&&) noexcept = default;

TomlDocument parse_toml(std::string_view text, const std::string& where) {
    TomlDocument document;
    check_keys(text, where);
    try {
        const toml::table table = toml::parse(text);
        document.values() = Converter(where, document.places).table(table, "", 0);
    } catch (const toml::parse_error& error) {
        throw Error(ErrorCode::format, place_text(where, place_of(error.source())), "expected TOML",
                    "found: " + escaped(error.description()));
    }
    return document;
}

std::string place_text(const std::string& where, const TextPlace& place) {
    if (place.line == 0) return where;
    return where + ": line " + std::to_string(place.line) + ", column " + std::to_string(place.column);
}

std::string toml_key(const std::string& key) {
    const bool bare =
        !key.empty() &&
        key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos;
    return bare ? key : quoted_text(key);
}

std::string toml_value(const json& value) {
    if (value.is_string()) return quoted_text(value.get_ref<const std::string&>());
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
    if (value.is_number()) return float_text(value.get<double>());
    std::string text;
    if (value.is_array()) {
        for (const json& item : value) text += (text.empty() ? "" : ", ") + toml_value(item);
        return "[" + text + "]";
    }
    if (value.is_object()) {
        for (const auto& [key, item] : value.items())
            text += (text.empty() ? "" : ", ") + toml_key(key) + " = " + toml_value(item);
        return text.empty() ? "{}" : "{ " + text + " }";
    }
    throw Error(ErrorCode::internal, "TOML", "expected a value that TOML has", "found null");
}

}  // namespace headscope::training

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/intervention_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/training/job/toml_document.h"

namespace headscope::workspace {
namespace {

using nlohmann::json;
using training::toml_key;
using training::toml_value;

constexpr std::int64_t kMostListed = 4096;  // numbers of a list

[[noreturn]] void refuse_row(const std::string& where, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::usage, where, "expected " + expected, "found " + found);
}

/// A number, a list of them, or a string, as typed.
std::string typed(const JsonView& value) {
    if (value.is_string()) return value.string();
    if (!value.is_array()) return std::to_string(value.integer());
    std::string text;
    for (const std::int64_t number : value.integers()) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

/// "3,5-7" as numbers.
std::vector<std::int64_t> listed(const std::string& text, const std::string& where) {
    std::vector<std::int64_t> numbers;
    const auto wrong = [&] { refuse_row(where, "numbers like 3,5-7", '"' + escaped(text) + '"'); };
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&] {
        while (at != end && *at == ' ') ++at;
        std::int64_t value = 0;
        const auto [stop, error] = std::from_chars(at, end, value);
        if (error != std::errc() || value < 0) wrong();
        at = stop;
        while (at != end && *at == ' ') ++at;
        return value;
    };
    while (true) {
        const std::int64_t first = number();
        std::int64_t last = first;
        if (at != end && *at == '-') {
            ++at;
            last = number();
        }
        if (last < first || last - first >= kMostListed - std::ssize(numbers)) wrong();
        for (std::int64_t one = first; one <= last; ++one) numbers.push_back(one);
        if (at == end) return numbers;
        if (*at++ != ',') wrong();
    }
}

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

json tables_of(const json& document, const char* name) {
    return document.contains(name) ? document.at(name) : json::array();
}

json parsed(std::string_view toml, const std::string& where) {
    json document = training::parse_toml(toml, where).values();
    for (const auto& [key, value] : document.items()) {
        if (key != "intervention" && key != "text")
            refuse_row(where, "[[intervention]] and [[text]] tables", '"' + escaped(key) + '"');
        const bool tables = value.is_array() &&
                            std::all_of(value.begin(), value.end(), [](const json& one) { return one.is_object(); });
        if (!tables) refuse_row(where, "[[" + key + "]] tables", "another value");
    }
    return document;
}

std::string table_text(const char* name, const json& table) {
    std::string text = std::string("[[") + name + "]]\n";
    for (const auto& [key, value] : table.items()) text += toml_key(key) + " = " + toml_value(value) + "\n";
    return text;
}

std::string row_text(const InterventionRow& row, const std::string& where) {
    const auto line = [](const char* key, const json& value) {
        return std::string(key) + " = " + toml_value(value) + "\n";
    };
    std::string text = "[[intervention]]\n" + line("point", row.point);
    if (const std::string layers = trimmed(row.layers); !layers.empty())
        text += line("layer", listed(layers, where + ": layers"));
    if (const std::string heads = trimmed(row.heads); !heads.empty())
        text += line("heads", listed(heads, where + ": heads"));
    if (const std::string positions = trimmed(row.positions); !positions.empty()) text += line("positions", positions);
    text += line("what", row.what);
    if (trimmed(row.more).empty()) return text;
    const json more = training::parse_toml("more = { " + row.more + " }", where + ": more").values().at("more");
    for (const auto& [key, value] : more.items()) {
        for (const char* own : {"point", "layer", "heads", "positions", "what"})
            if (key == own) refuse_row(where + ": more", "keys without a column of their own", '"' + key + '"');
        text += toml_key(key) + " = " + toml_value(value) + "\n";
    }
    return text;
}

}  // namespace

std::vector<InterventionRow> intervention_rows(std::string_view toml, const std::string& where) {
    std::vector<InterventionRow> rows;
    const json document = parsed(toml, where);
    for (const json& table : tables_of(document, "intervention")) {
        const std::string place = where + ": intervention " + std::to_string(rows.size() + 1);
        InterventionRow row;
        row.point.clear();
        row.what.clear();
        for (const std::string& key : JsonView(table, place).keys()) {
            const JsonView value = JsonView(table, place).at(key);
            if (key == "point")
                row.point = value.string();
            else if (key == "what")
                row.what = value.string();
            else if (key == "layer")
                row.layers = typed(value);
            else if (key == "heads")
                row.heads = typed(value);
            else if (key == "positions")
                row.positions = typed(value);
            else
                row.more += (row.more.empty() ? "" : ", ") + toml_key(key) + " = " + toml_value(value.value());
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string edited_interventions(std::string_view toml, const std::vector<InterventionRow>& rows,
                                 const std::string& where) {
    std::string text;
    for (std::size_t n = 0; n < rows.size(); ++n)
        text += (text.empty() ? "" : "\n") + row_text(rows[n], "intervention " + std::to_string(n + 1));
    for (const json& table : tables_of(parsed(toml, where), "text"))
        text += (text.empty() ? "" : "\n") + table_text("text", table);
    return text;
}

}  // namespace headscope::workspace

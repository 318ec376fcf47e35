// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/table.h"

#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "core/base/error.h"

namespace headscope::figures {
namespace {

std::string quoted_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string field = "\"";
    for (const char c : text) {
        if (c == '"') field += '"';
        field += c;
    }
    return field += '"';
}

std::size_t length(const Table::Column& column) {
    return std::visit([](const auto& values) { return values.size(); }, column.values);
}

struct FieldWriter {
    std::string& text;
    std::size_t row;

    void operator()(const std::vector<double>& values) const { text += csv_number(values[row]); }
    void operator()(const std::vector<std::int64_t>& values) const { text += std::to_string(values[row]); }
    void operator()(const std::vector<std::string>& values) const { text += quoted_field(values[row]); }
};

}  // namespace

std::size_t Table::rows() const {
    return columns.empty() ? 0 : length(columns.front());
}

std::string latex_text(std::string_view text) {
    static const std::map<char, std::string> special{
        {'\\', R"(\textbackslash{})"}, {'~', R"(\textasciitilde{})"}, {'^', R"(\textasciicircum{})"}};
    std::string result;
    for (const char c : text) {
        if (const auto known = special.find(c); known != special.end())
            result += known->second;
        else if (std::string_view("&%$#_{}").find(c) != std::string_view::npos)
            result += std::string("\\") + c;
        else
            result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result;
}

std::string csv_number(double value) {
    if (std::isnan(value)) return "";
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return {buffer.data(), end};
}

std::string csv(const Table& table) {
    const std::size_t rows = table.rows();
    std::string text;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        const auto& column = table.columns[c];
        if (length(column) != rows) {
            throw Error(ErrorCode::internal, "table column " + column.name,
                        "expected " + std::to_string(rows) + " values", "found " + std::to_string(length(column)));
        }
        if (c > 0) text += ',';
        text += quoted_field(column.name);
    }
    text += "\r\n";
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
            if (c > 0) text += ',';
            std::visit(FieldWriter{text, r}, table.columns[c].values);
        }
        text += "\r\n";
    }
    return text;
}

}  // namespace headscope::figures

// SPDX-License-Identifier: GPL-3.0-or-later
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/store/evaluation/evaluation_columns.h"
#include "core/store/evaluation/evaluation_file.h"

namespace headscope::store {
namespace {

std::string shortest(double value) {
    if (!std::isfinite(value)) return std::isnan(value) ? "" : value > 0 ? "inf" : "-inf";
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
}

template <class Row>
std::string cell(const Row& row, const Column<Row>& column) {
    if (const auto* text = std::get_if<std::string Row::*>(&column.member)) return quoted(row.**text);
    if (const auto* integer = std::get_if<std::int64_t Row::*>(&column.member)) return std::to_string(row.**integer);
    if (const auto* yes = std::get_if<bool Row::*>(&column.member)) return row.**yes ? "1" : "0";
    return shortest(row.*std::get<double Row::*>(column.member));
}

}  // namespace

std::string evaluation_csv(const Evaluation& evaluation) {
    std::string text;
    for (const auto& column : model_columns()) text += std::string(text.empty() ? "" : ",") + column.name;
    for (const auto& column : result_columns())
        if (std::string_view(column.name) != "model") text += std::string(",") + column.name;
    text += "\n";
    for (const auto& result : evaluation.results) {
        const EvaluatedModel& model = evaluation.models.at(static_cast<std::size_t>(result.model));
        std::string line;
        for (const auto& column : model_columns()) line += (line.empty() ? "" : ",") + cell(model, column);
        for (const auto& column : result_columns())
            if (std::string_view(column.name) != "model") line += "," + cell(result, column);
        text += line + "\n";
    }
    return text;
}

}  // namespace headscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headscope::figures {

/// Tidy numbers: one observation per row, one variable per column; all columns are of one length.
struct Table {
    struct Column {
        std::string name;
        std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::string>> values;
    };
    std::vector<Column> columns;

    std::size_t rows() const;
};

/// RFC 4180: a header, CRLF after each record, fields with commas, quotes or line ends quoted. Numbers in the shortest
/// form that reads back to the same double; NaN is an empty field, infinities are "inf" and "-inf".
/// Throws Error (internal) when columns differ in length.
std::string csv(const Table& table);

/// A text within a LaTeX tabular.
std::string latex_text(std::string_view text);

/// A number as csv() writes it.
std::string csv_number(double value);

}  // namespace headscope::figures

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Every head of an analysis with everything measured of it: what the overview shows, filters, sorts and exports.
// Values only; reading them from a file is the HDF5 owner's work.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/table.h"

namespace headscope::store {
class AnalysisFile;
}

namespace headscope::workspace {

struct HeadRow {
    std::int64_t site = 0;
    std::int32_t layer = 0;
    std::int32_t head = 0;
    std::int32_t key_value_head = 0;  ///< the group's, heads that share keys have the same
    std::string site_name;            ///< "3", "decoder 3 cross"
    std::string site_heading;         ///< "Layer 3", "Decoder layer 3, cross-attention"
};

/// A column that a file of `headscope ask` adds (asked_columns.h).
struct AddedColumn {
    std::string name;  ///< in filters: "kind_induction"
    std::string title, unit, definition;
    std::string path;    ///< of the file
    std::string recipe;  ///< figure that draws the file
    bool minor = false;  ///< another form of a column of the file: takes no room from measures
};

/// Words about a column: those of measures(), or of the file that adds it; else the name alone.
struct ColumnWords {
    std::string title, unit, definition, source;
    bool of_layer = false;  ///< one value a layer, not a head
};

/// values[row * columns.size() + column]; NaN: does not exist. deviation has the standard deviation over sequences
/// (divisor n - 1) when several were taken together, else it is empty.
struct HeadTable {
    std::vector<std::string> columns;  ///< names of measures(), then of `added`
    std::vector<HeadRow> rows;
    std::vector<double> values, deviation;
    std::int64_t sequences = 1;  ///< taken together
    std::vector<AddedColumn> added{};

    double value(std::size_t row, std::size_t column) const { return values[row * columns.size() + column]; }
    /// Column by name; empty for an unknown one.
    std::optional<std::size_t> column(const std::string& name) const;
    const AddedColumn* find_added(const std::string& name) const;  ///< null: a column of the analysis, or unknown
    ColumnWords words(const std::string& name) const;
};

/// One sequence, or all of them as mean and deviation. Of a partial file the sites that are not done are NaN.
/// Throws Error as AnalysisFile does.
HeadTable read_head_table(const store::AnalysisFile& file, std::optional<std::int64_t> sequence);

/// `rows` of the table in that order: layer, site, head, key_value_head, then a column per measure and, where there is
/// one, its deviation.
figures::Table plain_table(const HeadTable& table, const std::vector<std::size_t>& rows,
                           const std::vector<std::string>& columns);
/// The same as a LaTeX tabular with booktabs rules: `digits` significant digits, mean \pm deviation.
std::string latex_table(const HeadTable& table, const std::vector<std::size_t>& rows,
                        const std::vector<std::string>& columns, int digits = 3);

/// Rows by a column, NaN last in both directions, ties in the order of layers and heads.
std::vector<std::size_t> sorted_rows(const HeadTable& table, const std::string& column, bool descending);

}  // namespace headscope::workspace

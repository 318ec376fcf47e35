// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/workspace/head_table.h"

namespace headscope::widgets {

enum class TableFormat { tabs, csv, latex };

/// A choice of a head table as text: rows and columns in the order in which they are shown.
struct TableCut {
    std::shared_ptr<const workspace::HeadTable> table;
    std::vector<std::size_t> rows;
    std::vector<std::string> columns;  ///< measures

    /// Any thread. Throws Error.
    std::string text(TableFormat format) const;
    /// Replaces the file whole or not at all. For a thread that may wait. Throws Error.
    void write(const std::filesystem::path& path, TableFormat format) const;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/workspace/head_table.h"
#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"

namespace headscope::widgets {

enum class TableFormat { tabs, csv, latex };

/// A choice of a head table as text: rows and columns in the order in which they are shown.
struct TableCut {
    std::shared_ptr<const workspace::HeadTable> table;
    std::vector<std::size_t> rows;
    std::vector<std::string> columns;  ///< measures

    /// Any thread. Throws Error.
    std::string text(TableFormat format) const;
};

/// Writes the result of `make` on the desk's writer, whole or not at all; then the desk shows a status line or emits
/// failed(). `send`: the caller's.
void save_text(Desk* desk, Mailbox::Sender send, const std::filesystem::path& path, std::function<std::string()> make);
/// A file dialog that does not wait.
void ask_for_path(QWidget* parent, const QString& title, const QString& name, TableFormat format,
                  std::function<void(const std::filesystem::path&)> take);

}  // namespace headscope::widgets

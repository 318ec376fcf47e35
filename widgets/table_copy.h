// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QAbstractItemView;

namespace headscope::widgets {

/// The selected rows of a list as lines with tabs between cells, under its header; all rows where none is selected.
/// Rows and columns that are hidden are left out, but for columns without room (fitted_columns.h); of a tree, rows of
/// all levels that are expanded.
QString rows_text(const QAbstractItemView& list);

/// Ctrl+C in the list copies rows_text(), where Qt would copy the current cell alone.
void copy_rows_by_key(QAbstractItemView* list);

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QComboBox;
class QTableView;
class QWidget;

namespace headscope::widgets {

/// A box as wide as its longest item. `title`: its accessible name; empty: the tip.
QComboBox* make_combo(QWidget* parent, const char* name, const QString& tip, const QString& title = {});

/// The look of tables: no grid, no row numbers, no editing, lines of one row; Tab leaves them. Call it after setFont().
void style_table(QTableView* table);

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>

class QComboBox;
class QTableView;

namespace headscope::widgets {

/// Gives a control its name for tests and state, the one that is read aloud, and a tip.
template <class Control>
Control* described(Control* control, const QString& name, const QString& title, const QString& tip) {
    control->setObjectName(name);
    control->setAccessibleName(title);
    control->setToolTip(tip);
    return control;
}

/// A box as wide as its longest item. `title`: its accessible name; empty: the tip.
QComboBox* make_combo(QWidget* parent, const char* name, const QString& tip, const QString& title = {});

/// The look of tables: no grid, no row numbers, no editing, lines of one row; Tab leaves them. Call it after setFont().
void style_table(QTableView* table);

}  // namespace headscope::widgets

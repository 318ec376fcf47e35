// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plain_controls.h"

#include <QComboBox>
#include <QHeaderView>
#include <QTableView>

namespace headscope::widgets {

QComboBox* make_combo(QWidget* parent, const char* name, const QString& tip, const QString& title) {
    auto* box = new QComboBox(parent);
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(title.isEmpty() ? tip : title);
    box->setToolTip(tip);
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    return box;
}

void style_table(QTableView* table) {
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setShowGrid(false);
    table->setTabKeyNavigation(false);
    table->setWordWrap(false);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    table->horizontalHeader()->setHighlightSections(false);
}

}  // namespace headscope::widgets

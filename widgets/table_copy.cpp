// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/table_copy.h"

#include <QApplication>
#include <QClipboard>
#include <QKeyEvent>
#include <QTableView>
#include <QTreeView>
#include <vector>

#include "widgets/fitted_columns.h"

namespace headscope::widgets {
namespace {

class RowCopier final : public QObject {
public:
    explicit RowCopier(QAbstractItemView* list) : QObject(list), list_(list) { list->installEventFilter(this); }

    bool eventFilter(QObject* object, QEvent* event) override {
        if (event->type() != QEvent::KeyPress || !static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy))
            return QObject::eventFilter(object, event);
        QApplication::clipboard()->setText(rows_text(*list_));
        return true;
    }

private:
    QAbstractItemView* list_;
};

/// Rows as they are shown, each by its first cell.
std::vector<QModelIndex> rows_of(const QAbstractItemView& list) {
    std::vector<QModelIndex> rows;
    if (const auto* tree = qobject_cast<const QTreeView*>(&list)) {
        for (QModelIndex at = list.model()->index(0, 0, list.rootIndex()); at.isValid(); at = tree->indexBelow(at))
            rows.push_back(at);
        return rows;
    }
    const auto* table = qobject_cast<const QTableView*>(&list);
    for (int row = 0; row < list.model()->rowCount(list.rootIndex()); ++row)
        if (!table || !table->isRowHidden(row)) rows.push_back(list.model()->index(row, 0, list.rootIndex()));
    return rows;
}

std::vector<int> columns_of(const QAbstractItemView& list) {
    const auto* tree = qobject_cast<const QTreeView*>(&list);
    const auto* table = qobject_cast<const QTableView*>(&list);
    const auto* fitted = FittedColumns::of(list);
    std::vector<int> columns;
    for (int column = 0; column < list.model()->columnCount(list.rootIndex()); ++column) {
        const bool hidden = (tree && tree->isColumnHidden(column)) || (table && table->isColumnHidden(column));
        if (!hidden || (fitted && fitted->left_out(column))) columns.push_back(column);
    }
    return columns;
}

}  // namespace

QString rows_text(const QAbstractItemView& list) {
    if (!list.model()) return {};
    std::vector<QModelIndex> rows = rows_of(list);
    const QItemSelectionModel* chosen = list.selectionModel();
    if (chosen && chosen->hasSelection())
        std::erase_if(rows, [chosen](const QModelIndex& row) {
            return !chosen->rowIntersectsSelection(row.row(), row.parent());
        });
    const std::vector<int> columns = columns_of(list);
    QStringList lines, cells;
    for (const int column : columns) cells << list.model()->headerData(column, Qt::Horizontal).toString().simplified();
    lines << cells.join(QLatin1Char('\t'));
    for (const QModelIndex& row : rows) {
        cells.clear();
        for (const int column : columns) cells << row.siblingAtColumn(column).data().toString().simplified();
        lines << cells.join(QLatin1Char('\t'));
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

void copy_rows_by_key(QAbstractItemView* list) {
    new RowCopier(list);
}

}  // namespace headscope::widgets

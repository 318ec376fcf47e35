// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/tasks/task_grid_table.h"

#include <QApplication>
#include <QClipboard>
#include <QFont>
#include <QHeaderView>
#include <QKeyEvent>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/figures/table.h"
#include "widgets/fitted_columns.h"
#include "widgets/plain_controls.h"

namespace headscope::widgets {
namespace {

bool same_task_headings(const figures::TaskGrid& one, const figures::TaskGrid& two) {
    return one.corner() == two.corner() &&
           std::equal(one.columns().begin(), one.columns().end(), two.columns().begin(), two.columns().end(),
                      [](const auto& a, const auto& b) { return a.text() == b.text(); });
}

}  // namespace

void TaskGridModel::set_grid(figures::TaskGrid grid) {
    beginResetModel();
    if (!same_task_headings(grid_, grid)) sorted_ = -1;
    grid_ = std::move(grid);
    order_ = grid_.order(sorted_, descending_);
    endResetModel();
}

int TaskGridModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(order_.size());
}

int TaskGridModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() || grid_.lines().empty() ? 0 : static_cast<int>(grid_.columns().size()) + 1;
}

QString TaskGridModel::words(const figures::TaskGrid::Cell& cell, bool exact) const {
    if (std::isnan(cell.value)) return tr("none");
    QString text = QString::fromStdString(cell.text());
    if (exact) {
        text = QString::fromStdString(figures::csv_number(cell.value));
        if (!std::isnan(cell.error))
            text += QStringLiteral(" ± ") + QString::fromStdString(figures::csv_number(cell.error));
    }
    if (cell.rank == figures::Rank::best) text += tr(", the best");
    if (cell.rank == figures::Rank::second) text += tr(", the second best");
    return text;
}

QVariant TaskGridModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const figures::TaskGrid::Line& line = grid_.lines()[order_[static_cast<std::size_t>(index.row())]];
    const bool name = index.column() == 0;
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    const bool apart = line.kind != figures::TaskGrid::Kind::result;
    if (name) {
        if (role == Qt::DisplayRole || role == Qt::ToolTipRole) return QString::fromStdString(line.heading.text());
        if (role != Qt::FontRole || !apart) return {};
    }
    const figures::TaskGrid::Cell none;
    const figures::TaskGrid::Cell& cell = name ? none : line.cells[static_cast<std::size_t>(index.column()) - 1];
    switch (role) {
        case Qt::DisplayRole:
            return QString::fromStdString(cell.text());
        case Qt::ToolTipRole:
            return words(cell, true);
        case Qt::AccessibleTextRole:
            return words(cell, false);
        case Qt::FontRole: {
            QFont font;
            if (cell.rank == figures::Rank::best) font.setBold(true);
            if (cell.rank == figures::Rank::second) font.setUnderline(true);
            if (apart) font.setItalic(true);
            return font;
        }
        default:
            return {};
    }
}

QVariant TaskGridModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((section == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
    return QString::fromStdString(section == 0 ? grid_.corner()
                                               : grid_.columns()[static_cast<std::size_t>(section) - 1].text());
}

void TaskGridModel::sort(int column, Qt::SortOrder order) {
    sorted_ = column;
    descending_ = order == Qt::DescendingOrder;
    std::vector<std::size_t> wanted = grid_.order(sorted_, descending_);
    if (wanted == order_) return;
    Q_EMIT layoutAboutToBeChanged({}, VerticalSortHint);
    const QModelIndexList before = persistentIndexList();
    QModelIndexList after;
    for (const QModelIndex& one : before) {
        const auto line = order_[static_cast<std::size_t>(one.row())];
        const auto row = std::find(wanted.begin(), wanted.end(), line) - wanted.begin();
        after << index(static_cast<int>(row), one.column());
    }
    order_ = std::move(wanted);
    changePersistentIndexList(before, after);
    Q_EMIT layoutChanged({}, VerticalSortHint);
}

TaskGridTable::TaskGridTable(QWidget* parent) : QTableView(parent), model_(new TaskGridModel(this)) {
    setObjectName(QStringLiteral("tasks_table"));
    setAccessibleName(tr("Tasks by model"));
    setToolTip(
        tr("Bold: the best model of a task. Underlined: the second best. Click a heading or press Enter in its column "
           "to sort. Ctrl+C copies all as CSV"));
    setModel(model_);
    setSortingEnabled(true);
    horizontalHeader()->setSortIndicatorClearable(true);
    sortByColumn(-1, Qt::AscendingOrder);
    setSelectionMode(SingleSelection);
    setAlternatingRowColors(true);
    style_table(this);
    fitted_ = new FittedColumns(this);
}

void TaskGridTable::set_grid(figures::TaskGrid grid) {
    const bool same = same_task_headings(model_->grid(), grid);
    model_->set_grid(std::move(grid));
    if (same) return;
    sortByColumn(-1, Qt::AscendingOrder);
    fitted_->fit();
}

QString TaskGridTable::latex() const {
    return QString::fromStdString(model_->grid().latex(model_->order()));
}

QString TaskGridTable::csv() const {
    return QString::fromStdString(model_->grid().csv(model_->order()));
}

void TaskGridTable::sort_by_current() {
    if (!can_sort()) return;
    const int column = currentIndex().column();
    const QHeaderView* header = horizontalHeader();
    const bool again = header->sortIndicatorSection() == column && header->sortIndicatorOrder() == Qt::DescendingOrder;
    sortByColumn(column, again ? Qt::AscendingOrder : Qt::DescendingOrder);
}

void TaskGridTable::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) return QApplication::clipboard()->setText(csv());
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return sort_by_current();
    QTableView::keyPressEvent(event);
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/number_table.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QSortFilterProxyModel>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "widgets/fitted_columns.h"
#include "widgets/plain_controls.h"

namespace headscope::widgets {
namespace {

/// Columns that have room before all others, if a figure has them.
constexpr std::array kFirstColumns{"task", "metric", "model", "value", "error", "length", "position", "perplexity"};
constexpr int kSortedRows = 50'000;  ///< of more the window would not answer while they are sorted

using Column = figures::Table::Column;

const std::vector<double>* reals(const Column& column) {
    return std::get_if<std::vector<double>>(&column.values);
}

const std::vector<std::int64_t>* integers(const Column& column) {
    return std::get_if<std::vector<std::int64_t>>(&column.values);
}

bool is_text(const Column& column) {
    return !reals(column) && !integers(column);
}

}  // namespace

void NumberTableModel::set_table(std::shared_ptr<const figures::Table> table) {
    if (table == table_) return;
    beginResetModel();
    table_ = std::move(table);
    endResetModel();
}

QString NumberTableModel::exact(int row, int column) const {
    const Column& values = table_->columns.at(static_cast<std::size_t>(column));
    const auto at = static_cast<std::size_t>(row);
    if (const auto* real = reals(values)) return QString::fromStdString(figures::csv_number(real->at(at)));
    if (const auto* integer = integers(values)) return QString::number(integer->at(at));
    return QString::fromStdString(std::get<std::vector<std::string>>(values.values).at(at));
}

int NumberTableModel::rowCount(const QModelIndex& parent) const {
    if (parent.isValid() || !table_) return 0;
    return static_cast<int>(std::min<std::size_t>(table_->rows(), std::numeric_limits<int>::max()));
}

int NumberTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() || !table_ ? 0 : static_cast<int>(table_->columns.size());
}

QVariant NumberTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) return {};
    const Column& column = table_->columns[static_cast<std::size_t>(index.column())];
    const auto row = static_cast<std::size_t>(index.row());
    switch (role) {
        case Qt::DisplayRole:
            if (const auto* real = reals(column))
                return std::isnan((*real)[row]) ? QStringLiteral("–") : QString::number((*real)[row], 'g', 5);
            return exact(index.row(), index.column());
        case kSortRole:
            if (const auto* real = reals(column)) return (*real)[row];
            if (const auto* integer = integers(column)) return static_cast<qlonglong>((*integer)[row]);
            return exact(index.row(), index.column());
        case Qt::ToolTipRole:
            return exact(index.row(), index.column());
        case Qt::TextAlignmentRole:
            return static_cast<int>((is_text(column) ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        default:
            return {};
    }
}

QVariant NumberTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
    const Column& column = table_->columns[static_cast<std::size_t>(section)];
    if (role == Qt::DisplayRole) return QString::fromStdString(column.name);
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((is_text(column) ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    return {};
}

/// NaN last, whichever way.
class NumberTable::Sorted final : public QSortFilterProxyModel {
public:
    using QSortFilterProxyModel::QSortFilterProxyModel;

protected:
    bool lessThan(const QModelIndex& left, const QModelIndex& right) const override {
        const QVariant one = left.data(NumberTableModel::kSortRole), two = right.data(NumberTableModel::kSortRole);
        if (one.userType() != QMetaType::Double) return QSortFilterProxyModel::lessThan(left, right);
        const double a = one.toDouble(), b = two.toDouble();
        if (std::isnan(a) || std::isnan(b))
            return sortOrder() == Qt::AscendingOrder ? !std::isnan(a) && std::isnan(b)
                                                     : std::isnan(a) && !std::isnan(b);
        return a < b;
    }
};

NumberTable::NumberTable(QWidget* parent)
    : QTableView(parent), model_(new NumberTableModel(this)), sorted_(new Sorted(this)) {
    setObjectName(QStringLiteral("numbers"));
    setAccessibleName(tr("The numbers of the figure"));
    setToolTip(tr("Numbers of the figure. Ctrl+C copies the selected rows, or all"));
    sorted_->setSourceModel(model_);
    sorted_->setSortRole(NumberTableModel::kSortRole);
    setModel(sorted_);
    setSortingEnabled(true);
    sortByColumn(-1, Qt::AscendingOrder);
    setSelectionBehavior(SelectRows);
    setSelectionMode(ExtendedSelection);
    setAlternatingRowColors(true);
    style_table(this);
    fitted_ = new FittedColumns(this);
    auto* copy_them = new QAction(tr("Copy the selected rows, or all"), this);
    copy_them->setObjectName(QStringLiteral("numbers_copy"));
    addAction(copy_them);
    setContextMenuPolicy(Qt::ActionsContextMenu);
    connect(copy_them, &QAction::triggered, this, &NumberTable::copy);
}

void NumberTable::set_table(std::shared_ptr<const figures::Table> table) {
    if (table.get() == model_->table()) return;
    const bool sortable = !table || table->rows() <= static_cast<std::size_t>(kSortedRows);
    setSortingEnabled(false);
    if (!sortable) sorted_->sort(-1);
    model_->set_table(std::move(table));
    setSortingEnabled(sortable);
    std::vector<int> order;
    for (const char* name : kFirstColumns)
        for (int column = 0; column < model_->columnCount(); ++column)
            if (model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString() == QLatin1String(name))
                order.push_back(column);
    fitted_->set_order(std::move(order));
    fitted_->fit();
}

QString NumberTable::copied() const {
    std::vector<int> rows;
    for (const QModelIndex& one : selectionModel()->selectedRows()) rows.push_back(one.row());
    std::sort(rows.begin(), rows.end());
    if (rows.empty())
        for (int row = 0; row < sorted_->rowCount(); ++row) rows.push_back(row);
    QString text;
    const int columns = model_->columnCount();
    const auto end = [columns](int column) { return column + 1 < columns ? QLatin1Char('\t') : QLatin1Char('\n'); };
    for (int column = 0; column < columns; ++column)
        text += model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString() + end(column);
    for (const int row : rows) {
        const int source = sorted_->mapToSource(sorted_->index(row, 0)).row();
        for (int column = 0; column < columns; ++column)
            text += model_->exact(source, column).simplified() + end(column);
    }
    return text;
}

void NumberTable::copy() const {
    QApplication::clipboard()->setText(copied());
}

void NumberTable::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) return copy();
    QTableView::keyPressEvent(event);
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/items/item_model.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <algorithm>
#include <limits>
#include <utility>

#include "widgets/plain_controls.h"
#include "widgets/views/items/item_source.h"

namespace headscope::widgets {
namespace {

QString right_mark(bool right) {
    return right ? QStringLiteral("✓") : QStringLiteral("✗");
}

}  // namespace

void ItemModel::set_rows(std::vector<workspace::ShownItem> rows, bool judged) {
    beginResetModel();
    judged_ = judged;
    rows_ = std::move(rows);
    endResetModel();
}

void ItemModel::append_rows(const std::vector<workspace::ShownItem>& rows) {
    if (rows.empty()) return;
    const int first = rowCount();
    beginInsertRows({}, first, first + static_cast<int>(rows.size()) - 1);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    endInsertRows();
}

const store::EvaluatedItem* ItemModel::item(std::int64_t row) const {
    const auto& items = source_->items();
    return items && row >= 0 && row < std::ssize(*items) ? &(*items)[static_cast<std::size_t>(row)] : nullptr;
}

QString ItemModel::option_words(const store::EvaluatedItem& of, std::int64_t option) const {
    return option < 0 ? QString() : source_->option_name(of.model, option);
}

int ItemModel::place_of(std::int64_t number) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const workspace::ShownItem& shown) {
        const auto* one = item(shown.row);
        return one && one->item == number;
    });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

void ItemModel::tell_words() {
    if (!rows_.empty()) Q_EMIT dataChanged(index(0, words_column), index(rowCount() - 1, words_column));
}

int ItemModel::rowCount(const QModelIndex& parent) const {
    if (parent.isValid()) return 0;
    return static_cast<int>(std::min<std::size_t>(rows_.size(), std::numeric_limits<int>::max()));
}

int ItemModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : columns;
}

QVariant ItemModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= columns) return {};
    const workspace::ShownItem& shown = rows_[static_cast<std::size_t>(index.row())];
    const auto *one = item(shown.row), *other = item(shown.other);
    if (!one) return {};
    if (role == Qt::TextAlignmentRole && index.column() != words_column)
        return static_cast<int>(Qt::AlignHCenter | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && index.column() == right_column && judged_)
        return one->right ? tr("right") : tr("wrong");
    if (role == Qt::ToolTipRole && index.column() == words_column) return source_->words(shown.row);
    if (role != Qt::DisplayRole) return {};
    switch (index.column()) {
        case number_column:
            return static_cast<qlonglong>(one->item);
        case right_column:
            return judged_ ? right_mark(one->right) : QString();
        case gold_column:
            return option_words(*one, one->gold);
        case chosen_column:
            return option_words(*one, one->chosen);
        case other_column:
            if (!other || !judged_) return {};
            return QString(right_mark(other->right) + QLatin1Char(' ') + option_words(*other, other->chosen)).trimmed();
        default:
            return source_->words(shown.row);
    }
}

QVariant ItemModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
    const QStringList titles{tr("Item"), tr("Right"), tr("Gold"), tr("Chosen"), tr("Other"), tr("Text")};
    const QStringList tips{tr("Index in the data, from 0"),
                           tr("Whether the model's answer is right"),
                           tr("The right class, or option, counted from 1"),
                           tr("The class or option that the model chose"),
                           tr("The other model's choice, and whether it is right"),
                           tr("Start of the item")};
    if (role == Qt::DisplayRole) return titles[section];
    if (role == Qt::ToolTipRole) return tips[section];
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((section == words_column ? Qt::AlignLeft : Qt::AlignHCenter) | Qt::AlignVCenter);
    return {};
}

ItemTable::ItemTable(QWidget* parent) : QTableView(parent) {
    setObjectName(QStringLiteral("items_list"));
    setAccessibleName(tr("Items"));
    setToolTip(tr("Items of the task. Up and down step through them"));
    setSelectionBehavior(SelectRows);
    setSelectionMode(SingleSelection);
    setAlternatingRowColors(true);
    setVerticalScrollMode(ScrollPerItem);
    // Rows of one height: nothing is measured, for any number of rows.
    verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    style_table(this);
}

void ItemTable::keyPressEvent(QKeyEvent* event) {
    const QString text = event->text();
    if (!text.isEmpty() && text[0].isLetterOrNumber() && !(event->modifiers() & Qt::ControlModifier))
        return event->ignore();
    QTableView::keyPressEvent(event);
}

void ItemTable::resizeEvent(QResizeEvent* event) {
    QTableView::resizeEvent(event);
    Q_EMIT looked_at();
}

void ItemTable::scrollContentsBy(int dx, int dy) {
    QTableView::scrollContentsBy(dx, dy);
    Q_EMIT looked_at();
}

}  // namespace headscope::widgets

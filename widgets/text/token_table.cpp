// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/token_table.h"

#include <QApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <algorithm>
#include <cmath>

#include "widgets/fitted_columns.h"
#include "widgets/fonts.h"
#include "widgets/plain_controls.h"

namespace headscope::widgets {

void TokenTableModel::set_titles(const QString& token, const QString& number, const QString& value) {
    titles_[token_column] = token;
    titles_[number_column] = number;
    titles_[value_column] = value;
    Q_EMIT headerDataChanged(Qt::Horizontal, 0, columns - 1);
}

void TokenTableModel::set_rows(std::vector<Row> rows) {
    if (rows == rows_) return;
    beginResetModel();
    rows_ = std::move(rows);
    highest_ = 0;
    for (const Row& row : rows_)
        if (std::isfinite(row.value)) highest_ = std::max(highest_, row.value);
    endResetModel();
}

int TokenTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int TokenTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : columns;
}

QVariant TokenTableModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const Row& row = rows_[static_cast<std::size_t>(index.row())];
    if (role == Qt::FontRole && row.strong) {
        QFont font;
        font.setBold(true);
        return font;
    }
    if (role == Qt::TextAlignmentRole && index.column() != token_column)
        return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    if (role != Qt::DisplayRole && role != kSortRole) return {};
    switch (index.column()) {
        case token_column:
            return row.token;
        case number_column:
            return static_cast<qint64>(row.number);
        default:
            if (role == kSortRole) return row.value;
            return QString::number(row.value, row.value >= 0.01 ? 'f' : 'g', row.value >= 0.01 ? 3 : 2);
    }
}

QVariant TokenTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role != Qt::DisplayRole || section < 0 || section >= columns || orientation != Qt::Horizontal) return {};
    return titles_[section];
}

/// A bar behind the number, as long as the value against the highest.
class TokenTable::Bars final : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    Theme theme = make_theme(false);

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
        style->drawPrimitive(QStyle::PE_PanelItemViewItem, &option, painter, option.widget);
        const double value = index.data(TokenTableModel::kSortRole).toDouble();
        const auto* model = static_cast<const TokenTable*>(parent())->model_;
        const double share = model->highest() > 0 ? std::clamp(value / model->highest(), 0.0, 1.0) : 0;
        const QRect room = option.rect.adjusted(4, 3, -4, -3);
        QColor colour = theme.categorical(0);
        colour.setAlphaF(theme.dark ? 0.55F : 0.3F);
        painter->fillRect(QRectF(room.left(), room.top(), room.width() * share, room.height()), colour);
        const bool chosen = option.state.testFlag(QStyle::State_Selected);
        painter->setPen(option.palette.color(chosen ? QPalette::HighlightedText : QPalette::Text));
        painter->setFont(option.font);
        painter->drawText(room, Qt::AlignRight | Qt::AlignVCenter, index.data().toString());
    }
};

TokenTable::TokenTable(QWidget* parent)
    : QTableView(parent),
      model_(new TokenTableModel(this)),
      sorted_(new QSortFilterProxyModel(this)),
      bars_(new Bars(this)) {
    sorted_->setSourceModel(model_);
    sorted_->setSortRole(TokenTableModel::kSortRole);
    setModel(sorted_);
    setSortingEnabled(true);
    sortByColumn(TokenTableModel::value_column, Qt::DescendingOrder);
    setItemDelegateForColumn(TokenTableModel::value_column, bars_);
    setSelectionBehavior(SelectRows);
    setSelectionMode(SingleSelection);
    QFont readable = figure_font(8);
    readable.setPixelSize(std::max(11, fontInfo().pixelSize()));
    setFont(readable);
    style_table(this);
    auto* columns = new FittedColumns(this);
    columns->set_order({TokenTableModel::token_column, TokenTableModel::value_column});
    columns->set_stretched({TokenTableModel::token_column, TokenTableModel::value_column});
    connect(this, &QTableView::clicked, this, &TokenTable::choose);
}

void TokenTable::set_theme(const Theme& theme) {
    bars_->theme = theme;
    viewport()->update();
}

void TokenTable::choose(const QModelIndex& index) {
    if (!index.isValid()) return;
    const auto row = static_cast<std::size_t>(sorted_->mapToSource(index).row());
    if (row < model_->rows().size()) Q_EMIT chosen(model_->rows()[row].number);
}

void TokenTable::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) return choose(currentIndex());
    QTableView::keyPressEvent(event);
}

}  // namespace headscope::widgets

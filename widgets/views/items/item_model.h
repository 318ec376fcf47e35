// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QTableView>
#include <memory>
#include <vector>

#include "core/workspace/evaluation_items.h"

namespace headscope::widgets {

class ItemSource;

/// A list of items: a row each, whatever their number; words come from the source as they are read.
class ItemModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { number_column, right_column, gold_column, chosen_column, other_column, words_column, columns };
    explicit ItemModel(const ItemSource* source, QObject* parent = nullptr)
        : QAbstractTableModel(parent), source_(source) {}

    /// `judged`: an item is right or wrong; pages, which are only counted, are neither.
    void set_rows(std::vector<workspace::ShownItem> rows, bool judged = true);
    void append_rows(const std::vector<workspace::ShownItem>& rows);
    const std::vector<workspace::ShownItem>& rows() const { return rows_; }
    /// Place of an item in the list; -1: it is not shown.
    int place_of(std::int64_t item) const;
    void tell_words();

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    const store::EvaluatedItem* item(std::int64_t row) const;
    /// Name of an option of an item; empty: there is none.
    QString option_words(const store::EvaluatedItem& of, std::int64_t option) const;

    const ItemSource* source_;
    std::vector<workspace::ShownItem> rows_;
    bool judged_ = true;
};

/// Letters are the view's, for its keys; else a table would look for a row that begins with them.
class ItemTable : public QTableView {
    Q_OBJECT
public:
    explicit ItemTable(QWidget* parent = nullptr);
    QSize sizeHint() const override { return {420, 300}; }
    QSize minimumSizeHint() const override { return {160, 80}; }

Q_SIGNALS:
    void looked_at();  ///< other rows may be in sight

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
};

}  // namespace headscope::widgets

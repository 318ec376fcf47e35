// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QTableView>
#include <memory>

#include "core/figures/table.h"

namespace headscope::widgets {

class FittedColumns;

/// The numbers of a figure: rows and columns as its CSV has them.
class NumberTableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    static constexpr int kSortRole = Qt::UserRole;
    using QAbstractTableModel::QAbstractTableModel;

    /// Null: nothing.
    void set_table(std::shared_ptr<const figures::Table> table);
    const figures::Table* table() const { return table_.get(); }
    /// In full precision, as the CSV has it.
    QString exact(int row, int column) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::shared_ptr<const figures::Table> table_;
};

/// A table of them that sorts by its header; the chosen rows, or all, can be copied for a spreadsheet.
class NumberTable : public QTableView {
    Q_OBJECT
public:
    explicit NumberTable(QWidget* parent = nullptr);
    NumberTableModel& numbers() const { return *model_; }
    void set_table(std::shared_ptr<const figures::Table> table);

    /// The chosen rows, or all where none is: columns apart by tabs, under their names, numbers in full.
    QString copied() const;
    void copy() const;

    QSize sizeHint() const override { return {480, 160}; }
    QSize minimumSizeHint() const override { return {140, 60}; }

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    NumberTableModel* model_;
    class Sorted;
    Sorted* sorted_;
    FittedColumns* fitted_;
};

}  // namespace headscope::widgets

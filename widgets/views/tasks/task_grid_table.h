// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QTableView>
#include <vector>

#include "core/figures/task_table.h"

namespace headscope::widgets {

class FittedColumns;

/// A grid of tasks and models: names, then a column each.
class TaskGridModel : public QAbstractTableModel {
    Q_OBJECT
public:
    using QAbstractTableModel::QAbstractTableModel;

    /// In the order of before, where that column is still there.
    void set_grid(figures::TaskGrid grid);
    const figures::TaskGrid& grid() const { return grid_; }
    /// The grid's lines as they are shown.
    const std::vector<std::size_t>& order() const { return order_; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    void sort(int column, Qt::SortOrder order) override;

private:
    QString words(const figures::TaskGrid::Cell& cell, bool exact) const;

    figures::TaskGrid grid_;
    std::vector<std::size_t> order_;
    int sorted_ = -1;  ///< column; -1: as the grid has it
    bool descending_ = false;
};

/// Shows it: the best bold, the second best underlined; sorts by its header, and by Enter by the current column.
class TaskGridTable : public QTableView {
    Q_OBJECT
public:
    explicit TaskGridTable(QWidget* parent = nullptr);
    const TaskGridModel& tasks() const { return *model_; }
    void set_grid(figures::TaskGrid grid);

    /// As shown.
    QString latex() const;
    QString csv() const;
    bool can_sort() const { return currentIndex().isValid(); }
    /// By the current cell's column: first the highest, then the other way.
    void sort_by_current();

    QSize sizeHint() const override { return {480, 200}; }
    QSize minimumSizeHint() const override { return {140, 60}; }

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    TaskGridModel* model_;
    FittedColumns* fitted_;
};

}  // namespace headscope::widgets

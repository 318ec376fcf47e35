// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <memory>
#include <vector>

#include "core/workspace/head_table.h"
#include "widgets/views/overview/overview_cells.h"

namespace headscope::widgets {

/// A head table as a table of items: column 0 the layer (site), 1 the head, then one a measure; a row a head, named in
/// the vertical header.
class HeadTableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    static constexpr int kLayer = 0, kHead = 1, kMeasures = 2;
    static constexpr int kShareRole = Qt::UserRole + 1;  ///< double, 0..1 in the column's range; invalid: none
    static constexpr int kNumberRole = Qt::UserRole;     ///< double

    using QAbstractTableModel::QAbstractTableModel;

    /// `done`, by site: false is shown as still to come. A table of the same rows and columns keeps selections.
    void set_table(std::shared_ptr<const workspace::HeadTable> table, std::vector<bool> done);
    const std::shared_ptr<const workspace::HeadTable>& table() const { return table_; }
    /// By row, for the vertical header.
    void set_marked(std::vector<bool> marked);

    /// Name of the column in filters and state: "layer", "head", "sink", ...
    QString name(int column) const;
    /// The whole title of it.
    QString title(int column) const;
    int column(const QString& name) const;  ///< -1: unknown
    double number(int row, int column) const;
    /// Has a value in some row.
    bool defined(int column) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    struct About {
        NumberFormat format;
        double low = 0, high = 0;
    };
    QString text(int row, int column) const;

    std::shared_ptr<const workspace::HeadTable> table_;
    std::vector<bool> done_, marked_;
    std::vector<About> about_;
};

/// Sorts by number with what does not exist last in both directions, and hides rows.
class HeadTableOrder : public QSortFilterProxyModel {
    Q_OBJECT
public:
    explicit HeadTableOrder(HeadTableModel* model, QObject* parent = nullptr);
    /// By row of the model; empty: all are shown.
    void set_shown(std::vector<bool> shown);
    /// After the numbers changed.
    void sort_again();

protected:
    bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

private:
    HeadTableModel* model_;
    std::vector<bool> shown_;
};

}  // namespace headscope::widgets

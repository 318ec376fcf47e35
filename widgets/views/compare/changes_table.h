// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <optional>
#include <vector>

#include "core/workspace/head_changes.h"
#include "widgets/views/overview/overview_cells.h"

namespace headscope::widgets {

/// Both tables of heads and what is different between them; all three belong together.
struct HeadComparison {
    std::shared_ptr<const workspace::HeadTable> left, right;
    std::shared_ptr<const workspace::HeadChanges> changes;
    explicit operator bool() const { return left && right && changes; }
    bool operator==(const HeadComparison&) const = default;

    /// Values of a measure (index among changes->measures) on both sides, with the deviation over sequences.
    QString left_text(std::size_t row, std::size_t measure) const { return text(*left, row, measure); }
    QString right_text(std::size_t row, std::size_t measure) const { return text(*right, row, measure); }
    QString difference_text(std::size_t row, std::size_t measure) const;

private:
    QString text(const workspace::HeadTable& table, std::size_t row, std::size_t measure) const;
};

/// "Sink", "Local focus, 1 back".
QString measure_title(const std::string& name);

/// The heads that differ most, first those that do most. Of one measure, or of all: then each head shows the one that
/// contributes most. Heads that do not differ are left out.
class ChangesModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        rank_column,
        head_column,
        size_column,
        measure_column,
        left_column,
        right_column,
        change_column,
        columns
    };
    using QAbstractTableModel::QAbstractTableModel;

    /// `measure`: index, empty: all.
    void set_comparison(HeadComparison comparison, std::optional<std::size_t> measure);
    /// Row of the tables of the model's row `at`.
    std::size_t head_row(int at) const { return rows_.at(static_cast<std::size_t>(at)); }
    /// -1: that head is not listed.
    int row_of(std::size_t head_row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::size_t measure_of(std::size_t row) const;
    double size_of(std::size_t row) const;

    HeadComparison comparison_;
    std::optional<std::size_t> measure_;
    std::vector<std::size_t> rows_;
};

}  // namespace headscope::widgets

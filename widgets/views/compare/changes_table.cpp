// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/changes_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/workspace/measures.h"

namespace headscope::widgets {
namespace {

using workspace::HeadChanges;

QString number(double value, double size) {
    return number_format(std::array{size}).text(value);
}

}  // namespace

QString measure_title(const std::string& name) {
    const workspace::Measure* measure = workspace::find_measure(name);
    if (!measure) return QString::fromStdString(name);
    return QString::fromUtf8(measure->title.data(), static_cast<qsizetype>(measure->title.size()));
}

QString HeadComparison::text(const workspace::HeadTable& table, std::size_t row, std::size_t measure) const {
    const auto column = table.column(changes->measures.at(measure));
    if (!column) return QStringLiteral("–");
    const double value = table.value(row, *column);
    QString text = number(value, value);
    if (table.deviation.empty()) return text;
    const double deviation = table.deviation[row * table.columns.size() + *column];
    return std::isnan(deviation) ? text : text + QStringLiteral(" ± ") + number(deviation, value);
}

QString HeadComparison::difference_text(std::size_t row, std::size_t measure) const {
    const double change = changes->change(row, measure);
    return (change > 0 ? QStringLiteral("+") : QString()) + number(change, change);
}

void ChangesModel::set_comparison(HeadComparison comparison, std::optional<std::size_t> measure) {
    if (comparison == comparison_ && measure == measure_) return;
    beginResetModel();
    comparison_ = std::move(comparison);
    measure_ = measure;
    rows_.clear();
    if (comparison_) {
        for (const std::size_t row : comparison_.changes->ranking)
            if (size_of(row) > 0) rows_.push_back(row);
        if (measure_)
            std::stable_sort(rows_.begin(), rows_.end(),
                             [this](std::size_t a, std::size_t b) { return size_of(a) > size_of(b); });
    }
    endResetModel();
}

std::size_t ChangesModel::measure_of(std::size_t row) const {
    return measure_.value_or(comparison_.changes->largest[row]);
}

/// In deviations of the measure over all heads of both sides; 0 where nothing varies.
double ChangesModel::size_of(std::size_t row) const {
    const HeadChanges& changes = *comparison_.changes;
    if (!measure_) return changes.score[row];
    const double deviation = changes.deviation[*measure_];
    return deviation > 0 ? std::abs(changes.change(row, *measure_)) / deviation : 0;
}

int ChangesModel::row_of(std::size_t head_row) const {
    const auto found = std::find(rows_.begin(), rows_.end(), head_row);
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int ChangesModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int ChangesModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : columns;
}

QVariant ChangesModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const std::size_t row = head_row(index.row()), measure = measure_of(row);
    const workspace::HeadRow& head = comparison_.left->rows[row];
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>((index.column() == measure_column ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole)
        return tr("%1, head %2").arg(QString::fromStdString(head.site_heading), QString::number(head.head));
    if (role != Qt::DisplayRole) return {};
    const bool known = measure != HeadChanges::kNoMeasure;
    switch (index.column()) {
        case rank_column:
            return index.row() + 1;
        case head_column:
            return QString::fromStdString(head.site_name) + QStringLiteral(" · ") + QString::number(head.head);
        case size_column:
            return QString::number(size_of(row), 'f', 2);
        case measure_column:
            return known ? measure_title(comparison_.changes->measures[measure]) : QString();
        case left_column:
            return known ? comparison_.left_text(row, measure) : QString();
        case right_column:
            return known ? comparison_.right_text(row, measure) : QString();
        case change_column:
            return known ? comparison_.difference_text(row, measure) : QString();
        default:
            return {};
    }
}

QVariant ChangesModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
    static const std::array names{tr("Rank"),     tr("Head"),     tr("Differs by"), tr("Most in"),
                                  tr("Baseline"), tr("Compared"), tr("Change")};
    static const std::array tips{tr("1: differs most"),
                                 tr("Layer and head"),
                                 tr("In standard deviations of the measure over all heads of both sides; of all "
                                    "measures: the root of the sum of "
                                    "their squares"),
                                 tr("The measure that contributes most"),
                                 tr("Its value in the baseline, on the left"),
                                 tr("Its value in what is compared, on the right"),
                                 tr("The compared value minus the baseline")};
    if (role == Qt::DisplayRole) return names[static_cast<std::size_t>(section)];
    if (role == Qt::ToolTipRole) return tips[static_cast<std::size_t>(section)];
    return {};
}

}  // namespace headscope::widgets

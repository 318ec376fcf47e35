// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace headscope::widgets {
namespace {

QString text_in(std::string_view text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// Broken at the space nearest to its middle: headers are two lines.
QString two_lines(QString title) {
    qsizetype best = -1;
    for (qsizetype at = title.indexOf(QLatin1Char(' ')); at >= 0; at = title.indexOf(QLatin1Char(' '), at + 1))
        if (best < 0 || std::abs(2 * at - title.size()) < std::abs(2 * best - title.size())) best = at;
    if (best >= 0 && title.size() > 8) title[best] = QLatin1Char('\n');
    return title;
}

bool same_places(const workspace::HeadTable& a, const workspace::HeadTable& b) {
    const auto same = [](const workspace::HeadRow& left, const workspace::HeadRow& right) {
        return left.site == right.site && left.head == right.head && left.site_name == right.site_name;
    };
    return a.columns == b.columns && std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), same);
}

}  // namespace

void HeadTableModel::set_table(std::shared_ptr<const workspace::HeadTable> table, std::vector<bool> done) {
    const bool same = table && table_ && same_places(*table, *table_);
    if (!same) beginResetModel();
    table_ = std::move(table);
    done_ = std::move(done);
    about_.clear();
    for (std::size_t c = 0; table_ && c < table_->columns.size(); ++c) {
        std::vector<double> values;
        for (std::size_t row = 0; row < table_->rows.size(); ++row) values.push_back(table_->value(row, c));
        About about{number_format(values), std::numeric_limits<double>::infinity(),
                    -std::numeric_limits<double>::infinity()};
        for (const double value : values) {
            if (!std::isfinite(value)) continue;
            about.low = std::min(about.low, value);
            about.high = std::max(about.high, value);
        }
        about_.push_back(about);
    }
    if (!same)
        endResetModel();
    else if (rowCount() > 0)
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

void HeadTableModel::set_marked(std::vector<bool> marked) {
    if (marked == marked_) return;
    marked_ = std::move(marked);
    if (rowCount() > 0) Q_EMIT headerDataChanged(Qt::Vertical, 0, rowCount() - 1);
}

QString HeadTableModel::name(int column) const {
    if (column == kLayer) return QStringLiteral("layer");
    if (column == kHead) return QStringLiteral("head");
    const auto measure = static_cast<std::size_t>(column - kMeasures);
    return table_ && measure < table_->columns.size() ? QString::fromStdString(table_->columns[measure]) : QString();
}

QString HeadTableModel::title(int column) const {
    if (column == kLayer) return tr("Layer");
    if (column == kHead) return tr("Head");
    const QString known = name(column);
    return table_ ? text_in(table_->words(known.toStdString()).title) : known;
}

int HeadTableModel::column(const QString& wanted) const {
    for (int column = 0; column < columnCount(); ++column)
        if (name(column) == wanted) return column;
    return -1;
}

double HeadTableModel::number(int row, int column) const {
    const auto& place = table_->rows[static_cast<std::size_t>(row)];
    if (column == kLayer) return static_cast<double>(place.site);
    if (column == kHead) return place.head;
    return table_->value(static_cast<std::size_t>(row), static_cast<std::size_t>(column - kMeasures));
}

bool HeadTableModel::defined(int column) const {
    if (column < kMeasures) return true;
    const auto& about = about_.at(static_cast<std::size_t>(column - kMeasures));
    return about.low <= about.high;
}

int HeadTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !table_ ? 0 : static_cast<int>(table_->rows.size());
}

int HeadTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() || !table_ ? 0 : kMeasures + static_cast<int>(table_->columns.size());
}

QString HeadTableModel::text(int row, int column) const {
    const auto& place = table_->rows[static_cast<std::size_t>(row)];
    if (column == kLayer) return QString::fromStdString(place.site_name);
    if (column == kHead) return QString::number(place.head);
    const auto site = static_cast<std::size_t>(place.site);
    if (site < done_.size() && !done_[site]) return QStringLiteral("…");
    const auto measure = static_cast<std::size_t>(column - kMeasures);
    const NumberFormat& format = about_[measure].format;
    QString text = format.text(number(row, column));
    if (table_->deviation.empty()) return text;
    const double deviation = table_->deviation[static_cast<std::size_t>(row) * table_->columns.size() + measure];
    if (!std::isnan(deviation)) text += QStringLiteral(" ± ") + format.text(deviation);
    return text;
}

QVariant HeadTableModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const int row = index.row(), column = index.column();
    switch (role) {
        case Qt::DisplayRole:
            return text(row, column);
        case kNumberRole:
            return number(row, column);
        case Qt::TextAlignmentRole:
            return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
        case kShareRole: {
            if (column < kMeasures) return {};
            const About& about = about_[static_cast<std::size_t>(column - kMeasures)];
            const double value = number(row, column);
            if (!std::isfinite(value) || !(about.high > about.low)) return {};
            return (value - about.low) / (about.high - about.low);
        }
        case Qt::AccessibleTextRole:
            return title(column) + QLatin1Char(' ') + text(row, column);
        default:
            return {};
    }
}

QVariant HeadTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (section < 0 || section >= (orientation == Qt::Horizontal ? columnCount() : rowCount())) return {};
    if (orientation == Qt::Vertical) {
        const auto row = static_cast<std::size_t>(section);
        const auto& place = table_->rows[row];
        const bool marked = row < marked_.size() && marked_[row];
        if (role == Qt::DisplayRole)
            return QString(marked ? QStringLiteral("★ ") : QString()) + QString::fromStdString(place.site_name) +
                   QStringLiteral(" · ") + QString::number(place.head);
        if (role == Qt::ToolTipRole)
            return tr("%1, head %2").arg(QString::fromStdString(place.site_heading)).arg(place.head);
        return {};
    }
    switch (role) {
        case Qt::DisplayRole:
            return two_lines(title(section));
        case Qt::AccessibleTextRole:
            return title(section);
        case Qt::ToolTipRole: {
            const workspace::ColumnWords words = table_->words(name(section).toStdString());
            if (section < kMeasures || words.definition.empty()) return title(section);
            const QString unit = words.unit.empty() ? QString() : tr(" (%1)").arg(text_in(words.unit));
            return tr("<b>%1</b>%2<br>%3<br>In filters: <tt>%4</tt><br>Source: %5")
                .arg(text_in(words.title).toHtmlEscaped(), unit, text_in(words.definition).toHtmlEscaped(),
                     name(section), text_in(words.source).toHtmlEscaped());
        }
        default:
            return {};
    }
}

HeadTableOrder::HeadTableOrder(HeadTableModel* model, QObject* parent) : QSortFilterProxyModel(parent), model_(model) {
    // Each layer that is done changes all rows at once; they are sorted then, once.
    setDynamicSortFilter(false);
    setSourceModel(model);
}

void HeadTableOrder::set_shown(std::vector<bool> shown) {
    if (shown == shown_) return;
    shown_ = std::move(shown);
    invalidateFilter();
}

void HeadTableOrder::sort_again() {
    if (sortColumn() >= 0) sort(sortColumn(), sortOrder());
}

bool HeadTableOrder::lessThan(const QModelIndex& left, const QModelIndex& right) const {
    const double a = model_->number(left.row(), left.column()), b = model_->number(right.row(), right.column());
    // Descending, the base class asks with its arguments exchanged.
    if (std::isnan(a) != std::isnan(b)) return std::isnan(a) == (sortOrder() == Qt::DescendingOrder);
    return a < b;
}

bool HeadTableOrder::filterAcceptsRow(int row, const QModelIndex&) const {
    const auto at = static_cast<std::size_t>(row);
    return at >= shown_.size() || shown_[at];
}

}  // namespace headscope::widgets

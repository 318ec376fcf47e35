// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/fitted_columns.h"

#include <QAbstractItemModel>
#include <QEvent>
#include <QHeaderView>
#include <QHelpEvent>
#include <QMenu>
#include <QScrollBar>
#include <QTableView>
#include <QToolTip>
#include <QTreeView>
#include <algorithm>
#include <numeric>
#include <utility>

namespace headscope::widgets {
namespace {

constexpr int kLeastWords = 56, kWidestWords = 420;  ///< pixels of a column of words
constexpr int kMeasuredRows = 100;                   ///< from the first in sight on

/// Cells of a column are words: of its first row.
bool has_words(const QAbstractItemView& list, int column) {
    const QModelIndex first = list.model()->index(0, column, list.rootIndex());
    if (list.indexWidget(first)) return false;
    const QVariant alignment = first.data(Qt::TextAlignmentRole);
    if (!alignment.isValid()) return true;
    const bool flags = alignment.metaType() == QMetaType::fromType<Qt::Alignment>();
    return !(flags ? alignment.value<Qt::Alignment>() : Qt::Alignment::fromInt(alignment.toInt()))
                .testFlag(Qt::AlignRight);
}

QString heading_of(const QAbstractItemView& list, int column) {
    return list.model()->headerData(column, Qt::Horizontal).toString().simplified();
}

}  // namespace

FittedColumns::FittedColumns(QTableView* table) : QObject(table), list_(table), header_(table->horizontalHeader()) {
    watch();
}

FittedColumns::FittedColumns(QTreeView* tree) : QObject(tree), list_(tree), header_(tree->header()) {
    connect(tree, &QTreeView::expanded, &soon_, qOverload<>(&QTimer::start));
    watch();
}

const FittedColumns* FittedColumns::of(const QAbstractItemView& list) {
    return list.findChild<const FittedColumns*>(QString(), Qt::FindDirectChildrenOnly);
}

/// The list has its model.
void FittedColumns::watch() {
    soon_.setSingleShot(true);
    soon_.setInterval(0);
    connect(&soon_, &QTimer::timeout, this, [this] {
        outdated_ = true;
        if (list_->isVisible()) fit();
    });
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list_->setTextElideMode(Qt::ElideRight);
    header_->setTextElideMode(Qt::ElideRight);
    header_->setStretchLastSection(false);
    header_->setSectionResizeMode(QHeaderView::Interactive);
    header_->setResizeContentsPrecision(kMeasuredRows);
    const QAbstractItemModel* model = list_->model();
    const auto later = qOverload<>(&QTimer::start);
    connect(model, &QAbstractItemModel::modelReset, this, &FittedColumns::forget);
    connect(model, &QAbstractItemModel::columnsInserted, this, &FittedColumns::forget);
    connect(model, &QAbstractItemModel::columnsRemoved, this, &FittedColumns::forget);
    connect(model, &QAbstractItemModel::rowsInserted, &soon_, later);
    connect(model, &QAbstractItemModel::layoutChanged, &soon_, later);
    connect(model, &QAbstractItemModel::dataChanged, &soon_, later);
    connect(model, &QAbstractItemModel::headerDataChanged, &soon_, later);
    connect(list_->verticalScrollBar(), &QScrollBar::valueChanged, &soon_, later);
    connect(header_, &QHeaderView::sectionResized, this, &FittedColumns::take_width);
    list_->viewport()->installEventFilter(this);
    header_->viewport()->installEventFilter(this);
    if (header_->contextMenuPolicy() != Qt::DefaultContextMenu) return;
    header_->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(header_, &QHeaderView::customContextMenuRequested, this, &FittedColumns::open_menu);
}

int FittedColumns::columns() const {
    return list_->model()->columnCount(list_->rootIndex());
}

/// Other columns: widths of the former ones say nothing.
void FittedColumns::forget() {
    measured_.clear();
    if (!chosen_.empty() && chosen_.rbegin()->first >= columns()) chosen_.clear();
    soon_.start();
}

void FittedColumns::set_order(std::vector<int> columns) {
    order_ = std::move(columns);
    soon_.start();
}

void FittedColumns::set_stretched(std::set<int> columns) {
    stretched_ = std::move(columns);
    soon_.start();
}

void FittedColumns::set_whole(std::set<int> columns) {
    whole_ = std::move(columns);
    soon_.start();
}

void FittedColumns::set_wanted(int column, bool wanted) {
    if (wanted == this->wanted(column)) return;
    if (wanted)
        unwanted_.erase(column);
    else
        unwanted_.insert(column);
    soon_.start();
}

void FittedColumns::prefer(int column) {
    std::erase(order_, column);
    order_.insert(order_.begin(), column);
    fit();
}

int FittedColumns::needed() const {
    int width = 0;
    for (const auto& [column, one] : measured_) width += wanted(column) ? one.width : 0;
    return width;
}

void FittedColumns::fit() {
    soon_.stop();
    outdated_ = false;
    if (std::exchange(fitting_, true)) return;
    measure();
    place();
    fitting_ = false;
}

/// Columns only grow while their model is the same: rows that scroll into sight are measured then.
void FittedColumns::measure() {
    left_out_.clear();
    for (int column = 0; column < columns(); ++column) {
        header_->setSectionHidden(column, !wanted(column));
        if (!wanted(column)) continue;
        const int heading = header_->isHidden() ? 0 : header_->sectionSizeHint(column);
        const auto chosen = chosen_.find(column);
        Column& known = measured_[column];
        known.number = column;
        known.cells = std::max(known.cells, list_->sizeHintForColumn(column));
        known.whole = std::max({known.cells, heading, header_->minimumSectionSize()});
        const bool words = !whole_.contains(column) && has_words(*list_, column);
        known.width = words ? std::min(known.whole, kWidestWords) : known.whole;
        known.least = words ? std::min(known.width, std::max(kLeastWords, header_->minimumSectionSize())) : known.width;
        if (chosen != chosen_.end()) known.least = known.width = chosen->second;
    }
}

std::vector<int> FittedColumns::by_importance() const {
    std::vector<int> all;
    const auto add = [&](int column) {
        if (column < columns() && wanted(column) && std::find(all.begin(), all.end(), column) == all.end())
            all.push_back(column);
    };
    for (const int column : order_) add(column);
    for (int column = 0; column < columns(); ++column) add(column);
    return all;
}

void FittedColumns::place() {
    const int room = list_->viewport()->width();
    std::vector<Column> shown;
    int needed = 0;
    for (const int column : by_importance()) {
        Column one = measured_.at(column);
        if (shown.empty()) one.least = std::max(one.least, std::min(one.width, room / 3));
        // A narrower one may fit where one that is more important does not; but then the list would change its order.
        if (!shown.empty() && (!left_out_.empty() || needed + one.least > room)) {
            left_out_.insert(column);
            continue;
        }
        shown.push_back(one);
        needed += one.least;
    }
    for (const int column : left_out_) header_->setSectionHidden(column, true);
    int rest = room - needed;
    // The same for all words, until each has what it needs.
    std::vector<int> widths;
    for (const Column& one : shown) widths.push_back(std::min(one.least, std::max(room, 1)));
    for (bool given = true; given && rest > 0;) {
        given = false;
        const auto short_of = [&](std::size_t i) { return shown[i].width - widths[i]; };
        int wanting = 0;
        for (std::size_t i = 0; i < shown.size(); ++i) wanting += short_of(i) > 0 ? 1 : 0;
        const int share = std::max(1, rest / std::max(1, wanting));
        for (std::size_t i = 0; i < shown.size() && rest > 0; ++i) {
            if (short_of(i) <= 0) continue;
            const int more = std::min({short_of(i), share, rest});
            widths[i] += more;
            rest -= more;
            given = true;
        }
    }
    std::vector<std::size_t> stretched;
    for (std::size_t i = 0; i < shown.size(); ++i)
        if (stretched_.contains(shown[i].number) && !chosen_.contains(shown[i].number)) stretched.push_back(i);
    for (std::size_t s = 0; s < stretched.size() && rest > 0; ++s) {
        const int more = rest / static_cast<int>(stretched.size() - s);
        widths[stretched[s]] += more;
        rest -= more;
    }
    for (std::size_t i = 0; i < shown.size(); ++i) header_->resizeSection(shown[i].number, widths[i]);
}

/// A width that the user gave stays.
void FittedColumns::take_width(int column, int before, int now) {
    if (fitting_ || before == 0 || now == 0) return;
    chosen_[column] = now;
    soon_.start();
}

void FittedColumns::open_menu(const QPoint& place) {
    auto* menu = new QMenu(list_);
    menu->setObjectName(QStringLiteral("columns_menu"));
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (int column = 0; column < columns(); ++column) {
        const QString heading = heading_of(*list_, column);
        if (heading.isEmpty()) continue;
        QAction* action = menu->addAction(left_out(column) ? tr("%1 (no room)").arg(heading) : heading);
        action->setCheckable(true);
        action->setChecked(wanted(column) && !left_out(column));
        connect(action, &QAction::toggled, this, [this, column](bool on) {
            set_wanted(column, on);
            if (on)
                prefer(column);
            else
                fit();
        });
    }
    menu->popup(header_->viewport()->mapToGlobal(place));
}

/// The whole text of a cell or heading that has no tip of its own and is elided. False: nothing is to be added.
bool FittedColumns::show_tip(QObject* viewport, const QPoint& place, const QPoint& at_screen) {
    const auto show = [&](int column, const QVariant& tip, const QString& text) {
        const auto known = measured_.find(column);
        if (tip.isValid() || known == measured_.end() || header_->sectionSize(column) >= known->second.whole)
            return false;
        QToolTip::showText(at_screen, text, list_);
        return true;
    };
    if (viewport == header_->viewport()) {
        const int column = header_->logicalIndexAt(place);
        if (column < 0) return false;
        return show(column, list_->model()->headerData(column, Qt::Horizontal, Qt::ToolTipRole),
                    heading_of(*list_, column));
    }
    const QModelIndex index = list_->indexAt(place);
    return index.isValid() && show(index.column(), index.data(Qt::ToolTipRole), index.data().toString());
}

bool FittedColumns::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (show_tip(object, help->pos(), help->globalPos())) return true;
    }
    const bool shown = event->type() == QEvent::Show && outdated_;
    if (object == list_->viewport() && (shown || event->type() == QEvent::Resize)) {
        if (outdated_ || measured_.empty())
            fit();
        else if (!std::exchange(fitting_, true)) {
            for (const int column : std::exchange(left_out_, {})) header_->setSectionHidden(column, false);
            place();
            fitting_ = false;
        }
    }
    return QObject::eventFilter(object, event);
}

}  // namespace headscope::widgets

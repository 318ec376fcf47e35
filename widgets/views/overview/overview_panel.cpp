// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_panel.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QJsonArray>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "widgets/fitted_columns.h"
#include "widgets/views/overview/overview_delegate.h"

namespace headscope::widgets {
namespace {

QPushButton* menu_button(const QString& text, const char* name, const QString& tip, QMenu* menu, QWidget* parent) {
    auto* button = new QPushButton(parent);
    button->setText(text);
    button->setObjectName(QLatin1String(name));
    button->setAccessibleName(text);
    button->setToolTip(tip);
    button->setMenu(menu);
    return button;
}

}  // namespace

TablePanel::TablePanel(Desk* desk, QWidget* parent)
    : QWidget(parent),
      desk_(desk),
      model_(new HeadTableModel(this)),
      order_(new HeadTableOrder(model_, this)),
      filter_(new FilterField(this)),
      view_(new QTableView(this)),
      count_(new QLabel(this)) {
    make_table();
    count_->setObjectName(QStringLiteral("count"));
    count_->setAccessibleName(tr("Number of heads that match"));
    count_->setWordWrap(true);
    count_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addWidget(filter_);
    column->addWidget(make_buttons());
    column->addWidget(view_, 1);
    connect(filter_, &FilterField::changed, this, &TablePanel::apply_filter);
    connect(filter_, &FilterField::changed, this, &TablePanel::state_changed);
}

QWidget* TablePanel::make_buttons() {
    columns_menu_ = new QMenu(this);
    copy_menu_ = new QMenu(this);
    connect(columns_menu_, &QMenu::aboutToShow, this, &TablePanel::fill_columns_menu);
    connect(copy_menu_, &QMenu::aboutToShow, this, &TablePanel::fill_copy_menu);
    auto* bar = new QWidget(this);
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(count_, 1);
    row->addWidget(menu_button(tr("Columns"), "columns", tr("Choose the measures in the table"), columns_menu_, bar));
    row->addWidget(menu_button(tr("Copy"), "copy", tr("Copy or save the table as it is shown"), copy_menu_, bar));
    return bar;
}

void TablePanel::make_table() {
    view_->setObjectName(QStringLiteral("table"));
    view_->setAccessibleName(tr("Table of all heads"));
    view_->setModel(order_);
    view_->setItemDelegate(new ShareDelegate(view_));
    view_->setSelectionBehavior(QAbstractItemView::SelectRows);
    view_->setSelectionMode(QAbstractItemView::ExtendedSelection);
    view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view_->setAlternatingRowColors(false);
    view_->setShowGrid(false);
    view_->setWordWrap(false);
    view_->setContextMenuPolicy(Qt::CustomContextMenu);
    view_->setTabKeyNavigation(false);
    view_->setCornerButtonEnabled(false);
    QHeaderView* rows = view_->verticalHeader();
    rows->setSectionResizeMode(QHeaderView::Fixed);
    rows->setDefaultSectionSize(view_->fontMetrics().height() + 6);
    rows->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter);
    rows->setHighlightSections(false);
    QHeaderView* header = view_->horizontalHeader();
    header->setHighlightSections(false);
    header->setSectionsMovable(true);
    header->setSortIndicatorClearable(true);
    header->setSortIndicator(-1, Qt::DescendingOrder);
    header->setContextMenuPolicy(Qt::CustomContextMenu);
    fitted_ = new FittedColumns(view_);
    view_->setSortingEnabled(true);
    connect(header, &QHeaderView::customContextMenuRequested, this,
            [this, header](const QPoint& place) { columns_menu_->popup(header->viewport()->mapToGlobal(place)); });
    connect(header, &QHeaderView::sortIndicatorChanged, this, [this] {
        if (view_->currentIndex().isValid()) view_->scrollTo(view_->currentIndex());
        if (updating_) return;
        wanted_sort_.clear();
        Q_EMIT state_changed();
    });
    connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& index) {
        if (updating_ || !index.isValid()) return;
        current_ = static_cast<std::size_t>(order_->mapToSource(index).row());
        Q_EMIT chosen(static_cast<qint64>(*current_));
    });
    connect(view_, &QTableView::doubleClicked, this,
            [this](const QModelIndex& index) { Q_EMIT opened(order_->mapToSource(index).row()); });
    connect(view_, &QTableView::customContextMenuRequested, this,
            [this](const QPoint& place) { Q_EMIT menu_wanted(view_->viewport()->mapToGlobal(place)); });
    const auto act = [this](const QString& text, const QKeySequence& keys, auto slot) {
        auto* action = new QAction(text, view_);
        action->setShortcut(keys);
        action->setShortcutContext(Qt::WidgetShortcut);
        connect(action, &QAction::triggered, this, slot);
        view_->addAction(action);
    };
    act(tr("Copy selected rows"), QKeySequence::Copy, [this] { copy(TableFormat::tabs, true); });
    act(tr("Mark"), Qt::Key_Space, [this] { Q_EMIT mark_wanted(); });
    act(tr("Open the map"), Qt::Key_Return, [this] {
        if (current_) Q_EMIT opened(static_cast<qint64>(*current_));
    });
}

/// The measure that the grid shows has room before all others, then those that were chosen by hand and those of ask
/// files.
void TablePanel::order_columns() {
    std::vector<int> order;
    if (const int column = model_->column(measure_); column >= 0) order.push_back(column);
    for (auto at = chosen_columns_.constBegin(); at != chosen_columns_.constEnd(); ++at)
        if (const int column = model_->column(at.key()); at.value() && column >= 0) order.push_back(column);
    if (model_->table())
        for (const workspace::AddedColumn& added : model_->table()->added)
            if (!added.minor) order.push_back(model_->column(QString::fromStdString(added.name)));
    fitted_->set_order(std::move(order));
}

void TablePanel::set_table(std::shared_ptr<const workspace::HeadTable> table, std::vector<bool> done) {
    const bool was = std::exchange(updating_, true);
    const QString sorted = order_->sortColumn() >= 0 ? model_->name(order_->sortColumn()) : wanted_sort_;
    const Qt::SortOrder sort_order = order_->sortColumn() >= 0 ? order_->sortOrder() : wanted_order_;
    bool other = false;
    const auto reset = connect(model_, &QAbstractItemModel::modelReset, this, [&other] { other = true; });
    model_->set_table(table, std::move(done));
    disconnect(reset);
    filter_->set_table(std::move(table));
    if (other) {
        const int column = sorted.isEmpty() ? -1 : model_->column(sorted);
        view_->horizontalHeader()->setSortIndicator(column, sort_order);
        wanted_sort_ = column < 0 ? sorted : QString();  // its ask file may come, or come back
        wanted_order_ = sort_order;
    }
    order_->sort_again();
    if (other) order_columns();
    show_columns();
    updating_ = was;
    const auto current = current_;
    current_.reset();
    set_current(current && *current < static_cast<std::size_t>(model_->rowCount()) ? current : std::nullopt);
    show_count();
}

void TablePanel::set_current(std::optional<std::size_t> row) {
    const QModelIndex shown = row ? order_->mapFromSource(model_->index(static_cast<int>(*row), 0)) : QModelIndex();
    current_ = row;
    const bool was = std::exchange(updating_, true);
    if (!shown.isValid()) {
        view_->selectionModel()->clear();
    } else if (view_->currentIndex().row() != shown.row() || !view_->selectionModel()->hasSelection()) {
        // The column stays where the keyboard is.
        const int column = std::max(0, view_->currentIndex().column());
        const QModelIndex index = order_->index(shown.row(), view_->isColumnHidden(column) ? 0 : column);
        view_->selectionModel()->setCurrentIndex(index,
                                                 QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
        view_->scrollTo(index);
    }
    updating_ = was;
}

void TablePanel::show_measure(const QString& name) {
    measure_ = name;
    if (const int column = model_->column(name); column >= 0) fitted_->prefer(column);
}

void TablePanel::apply_filter() {
    const bool was = std::exchange(updating_, true);
    order_->set_shown(filter_->matches());
    updating_ = was;
    if (!updating_) set_current(current_);
    show_count();
    Q_EMIT filtered();
}

void TablePanel::set_note(const QString& note) {
    if (note == note_) return;
    note_ = note;
    show_count();
}

void TablePanel::show_count() {
    const auto all = static_cast<qulonglong>(model_->rowCount());
    QString text =
        filter_->matches().empty() ? tr("%1 heads").arg(all) : tr("%1 of %2 heads").arg(filter_->count()).arg(all);
    if (!note_.isEmpty()) text += QStringLiteral(" · ") + note_;
    count_->setText(text);
    count_->setToolTip(text);
}

bool TablePanel::shows(int column) const {
    const auto chosen = chosen_columns_.constFind(model_->name(column));
    if (chosen != chosen_columns_.constEnd()) return *chosen;
    // The vertical header says layer and head; what this model has no values of waits in the menu.
    return column >= HeadTableModel::kMeasures && model_->defined(column);
}

void TablePanel::show_columns() {
    for (int column = 0; column < model_->columnCount(); ++column) fitted_->set_wanted(column, shows(column));
    fitted_->fit();
}

void TablePanel::fill_columns_menu() {
    columns_menu_->clear();
    for (int column = 0; column < model_->columnCount(); ++column) {
        const QString title = model_->title(column);
        QAction* action = columns_menu_->addAction(!model_->defined(column)    ? tr("%1 (no values)").arg(title)
                                                   : fitted_->left_out(column) ? tr("%1 (no room)").arg(title)
                                                                               : title);
        action->setCheckable(true);
        action->setChecked(shows(column) && !fitted_->left_out(column));
        action->setToolTip(model_->headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString());
        connect(action, &QAction::toggled, this, [this, column](bool on) {
            chosen_columns_[model_->name(column)] = on;
            show_columns();
            if (on) fitted_->prefer(column);
            Q_EMIT state_changed();
        });
    }
    columns_menu_->setToolTipsVisible(true);
    columns_menu_->addSeparator();
    columns_menu_->addAction(tr("Reset"), this, [this] {
        chosen_columns_.clear();
        order_columns();
        show_columns();
        Q_EMIT state_changed();
    });
}

void TablePanel::fill_copy_menu() {
    copy_menu_->clear();
    const auto rows = selected_rows().size();
    const auto add = [this](const QString& text, auto what) { return copy_menu_->addAction(text, this, what); };
    add(tr("Copy selected rows (%1)").arg(rows), [this] { copy(TableFormat::tabs, true); })->setEnabled(rows > 0);
    add(tr("Copy as CSV"), [this] { copy(TableFormat::csv, false); });
    add(tr("Copy as LaTeX"), [this] { copy(TableFormat::latex, false); });
    copy_menu_->addSeparator();
    add(tr("Save as CSV…"), [this] { ask_where_to_save(TableFormat::csv); });
    add(tr("Save as LaTeX…"), [this] { ask_where_to_save(TableFormat::latex); });
}

std::vector<std::size_t> TablePanel::shown_rows() const {
    std::vector<std::size_t> rows;
    for (int row = 0; row < order_->rowCount(); ++row)
        rows.push_back(static_cast<std::size_t>(order_->mapToSource(order_->index(row, 0)).row()));
    return rows;
}

std::vector<std::size_t> TablePanel::selected_rows() const {
    std::vector<std::size_t> rows;
    QModelIndexList selected = view_->selectionModel()->selectedRows();
    std::sort(selected.begin(), selected.end(),
              [](const QModelIndex& a, const QModelIndex& b) { return a.row() < b.row(); });
    for (const QModelIndex& index : selected)
        rows.push_back(static_cast<std::size_t>(order_->mapToSource(index).row()));
    return rows;
}

TableCut TablePanel::cut(bool selected_only) const {
    TableCut cut{model_->table(), selected_rows(), {}};
    if (!selected_only && cut.rows.size() < 2) cut.rows = shown_rows();
    const QHeaderView* header = view_->horizontalHeader();
    for (int place = 0; place < header->count(); ++place) {
        const int column = header->logicalIndex(place);
        if (column >= HeadTableModel::kMeasures && shows(column))
            cut.columns.push_back(model_->name(column).toStdString());
    }
    return cut;
}

void TablePanel::copy(TableFormat format, bool selected_only) {
    const TableCut wanted = cut(selected_only);
    if (!wanted.table || wanted.rows.empty()) return;
    QApplication::clipboard()->setText(QString::fromStdString(wanted.text(format)));
    Q_EMIT desk_->told(tr("%1 heads copied").arg(wanted.rows.size()));
}

void TablePanel::ask_where_to_save(TableFormat format) {
    ask_for_path(this, tr("Save the table of heads"), QStringLiteral("heads"), format,
                 [this, format](const std::filesystem::path& path) { save(path, format); });
}

void TablePanel::save(const std::filesystem::path& path, TableFormat format) {
    save_text(desk_, mailbox_.sender(), path, [wanted = cut(false), format] { return wanted.text(format); });
}

void TablePanel::select(const std::vector<std::size_t>& rows) {
    QItemSelection chosen;
    for (const std::size_t row : rows) {
        const QModelIndex index = order_->mapFromSource(model_->index(static_cast<int>(row), 0));
        if (index.isValid()) chosen.select(index, index);
    }
    if (chosen.isEmpty()) return;
    const QModelIndex first = chosen.indexes().front();
    view_->selectionModel()->setCurrentIndex(first, QItemSelectionModel::NoUpdate);
    view_->selectionModel()->select(chosen, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

QJsonObject TablePanel::state() const {
    QJsonObject columns;
    for (auto at = chosen_columns_.constBegin(); at != chosen_columns_.constEnd(); ++at) columns[at.key()] = at.value();
    const bool sorted = order_->sortColumn() >= 0;
    return {{QStringLiteral("filter"), filter_->text()},
            {QStringLiteral("sort"), sorted ? model_->name(order_->sortColumn()) : wanted_sort_},
            {QStringLiteral("descending"), (sorted ? order_->sortOrder() : wanted_order_) == Qt::DescendingOrder},
            {QStringLiteral("columns"), columns}};
}

void TablePanel::restore(const QJsonObject& state) {
    if (state[QStringLiteral("filter")].isString()) filter_->set_text(state[QStringLiteral("filter")].toString());
    if (state[QStringLiteral("columns")].isObject()) {
        chosen_columns_.clear();
        const QJsonObject columns = state[QStringLiteral("columns")].toObject();
        for (auto at = columns.begin(); at != columns.end(); ++at)
            if (at->isBool()) chosen_columns_[at.key()] = at->toBool();
        order_columns();
        show_columns();
    }
    if (!state[QStringLiteral("sort")].isString()) return;
    wanted_sort_ = state[QStringLiteral("sort")].toString();
    wanted_order_ = state[QStringLiteral("descending")].toBool() ? Qt::DescendingOrder : Qt::AscendingOrder;
    const int column = wanted_sort_.isEmpty() ? -1 : model_->column(wanted_sort_);
    if (model_->rowCount() == 0) return;
    const QString missing = column < 0 ? wanted_sort_ : QString();
    view_->horizontalHeader()->setSortIndicator(column, wanted_order_);
    wanted_sort_ = missing;
}

}  // namespace headscope::widgets

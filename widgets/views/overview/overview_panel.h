// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QMap>
#include <QWidget>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"
#include "widgets/views/overview/overview_files.h"
#include "widgets/views/overview/overview_filter.h"
#include "widgets/views/overview/overview_table.h"

class QLabel;
class QMenu;
class QTableView;

namespace headscope::widgets {

class FittedColumns;

/// The overview's right side: the filter, the table of all heads, what it is copied and saved as.
class TablePanel : public QWidget {
    Q_OBJECT
public:
    TablePanel(Desk* desk, QWidget* parent);

    void set_table(std::shared_ptr<const workspace::HeadTable> table, std::vector<bool> done);
    void set_marked(std::vector<bool> marked) { model_->set_marked(std::move(marked)); }
    /// Row of the table; nothing: none.
    void set_current(std::optional<std::size_t> row);
    /// Gives that column room before all others.
    void show_measure(const QString& name);
    /// Shows `note` beside the number of heads: "2 of 4 layers so far".
    void set_note(const QString& note);

    FilterField* filter() const { return filter_; }
    QTableView* table() const { return view_; }
    HeadTableModel* model() const { return model_; }

    /// Rows as shown, top to bottom; those selected, in that order.
    std::vector<std::size_t> shown_rows() const;
    std::vector<std::size_t> selected_rows() const;
    /// Shown or selected rows (the latter when there are several), and the columns that are shown where there is room.
    TableCut cut(bool selected_only) const;
    void copy(TableFormat format, bool selected_only);
    /// Those of the rows that are shown; the first of them becomes the current one.
    void select(const std::vector<std::size_t>& rows);
    /// Saves on the reader's thread; then the desk shows a status line or emits failed().
    void save(const std::filesystem::path& path, TableFormat format);
    void ask_where_to_save(TableFormat format);

    QJsonObject state() const;
    void restore(const QJsonObject& state);

Q_SIGNALS:
    void chosen(qint64 row);
    void opened(qint64 row);
    void mark_wanted();
    void filtered();  ///< other heads match
    void menu_wanted(const QPoint& global);
    void state_changed();

private:
    QWidget* make_buttons();
    void make_table();
    void fill_columns_menu();
    void fill_copy_menu();
    void apply_filter();
    void order_columns();
    void show_columns();
    void show_count();
    bool shows(int column) const;

    Desk* desk_;
    HeadTableModel* model_;
    HeadTableOrder* order_;
    FilterField* filter_;
    QTableView* view_;
    FittedColumns* fitted_ = nullptr;
    QLabel* count_;
    QMenu *columns_menu_ = nullptr, *copy_menu_ = nullptr;
    QString note_;
    QMap<QString, bool> chosen_columns_;  ///< shown or hidden by hand
    std::optional<std::size_t> current_;
    bool updating_ = false;
    QString measure_;      ///< that the grid shows
    QString wanted_sort_;  ///< of a column that the table lacks so far
    Qt::SortOrder wanted_order_ = Qt::AscendingOrder;
    Mailbox mailbox_{this};
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <map>
#include <set>
#include <vector>

class QAbstractItemView;
class QHeaderView;
class QTableView;
class QTreeView;

namespace headscope::widgets {

/// Keeps the columns of a list within its width: it never scrolls sideways. Words, which are cells that are not aligned
/// to the right, are elided down to a least width, those of the most important column to a third of the list's; then
/// the least important columns are left out. Numbers and buttons are never cut. The pointer reads elided texts, and the
/// header's menu lists all columns. Belongs to the list.
class FittedColumns : public QObject {
    Q_OBJECT
public:
    explicit FittedColumns(QTableView* table);
    explicit FittedColumns(QTreeView* tree);
    /// Null: the list has none.
    static const FittedColumns* of(const QAbstractItemView& list);

    /// The most important first; others come behind these in their order.
    void set_order(std::vector<int> columns);
    /// Columns that share the room that is left over; none: it stays empty.
    void set_stretched(std::set<int> columns);
    /// Words that are cut as little as numbers are.
    void set_whole(std::set<int> columns);
    /// False: the column is hidden, whatever the room. Call fit() afterwards.
    void set_wanted(int column, bool wanted);
    bool wanted(int column) const { return !unwanted_.contains(column); }
    /// Makes a column the most important one.
    void prefer(int column);
    /// Wanted, and hidden for lack of room.
    bool left_out(int column) const { return left_out_.contains(column); }

    /// Width in which nothing is cut.
    int needed() const;

    /// Measures the columns and fits them. Without a call, when the model, the size or the rows in sight change.
    void fit();

    bool eventFilter(QObject* object, QEvent* event) override;

private:
    struct Column {
        int number = 0, least = 0, width = 0;
        int cells = 0;  ///< width of the widest one so far
        int whole = 0;  ///< width that shows all of it
    };
    void watch();
    int columns() const;
    void forget();
    void measure();
    void place();
    std::vector<int> by_importance() const;
    void take_width(int column, int before, int now);
    void open_menu(const QPoint& place);
    bool show_tip(QObject* viewport, const QPoint& place, const QPoint& at_screen);

    QAbstractItemView* list_;
    QHeaderView* header_;
    QTimer soon_;
    std::vector<int> order_;
    std::set<int> stretched_, whole_, unwanted_, left_out_;
    std::map<int, int> chosen_;  ///< widths that the user gave
    std::map<int, Column> measured_;
    bool fitting_ = false, outdated_ = true;
};

}  // namespace headscope::widgets

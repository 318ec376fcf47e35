// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "core/workspace/switched_off.h"
#include "widgets/views/compare/changes_table.h"
#include "widgets/views/compare/sides.h"

class QComboBox;
class QLabel;
class QSplitter;
class QTableView;

namespace headscope::widgets {

class Banner;
class FittedColumns;
class HeadGrid;
class ScaleBar;

/// Every head of two analyses of one shape: the difference of a measure as a signed heat map, the heads that differ
/// most as a list, the loss of both; heads that were switched off are crossed out.
class CompareHeads : public QWidget {
    Q_OBJECT
public:
    CompareHeads(Desk* desk, QWidget* parent);

    /// Asks for what is missing; call it again when values have arrived.
    void show_sides(const CompareSides& sides);

    HeadGrid* grid() const { return grid_; }
    QTableView* list() const { return list_; }
    const HeadComparison& comparison() const { return shown_; }
    /// Name of the chosen measure; empty: all together.
    QString measure() const;
    void set_measure(const QString& name);

    QJsonObject state() const;
    void restore(const QJsonObject& state);

Q_SIGNALS:
    void state_changed();
    void opened();  ///< the selected head, in another mode

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void make_widgets();
    bool ask(const CompareSides& sides);
    void fill_measures();
    void show_grid();
    void show_words(const CompareSides& sides);
    void show_pointed(std::int64_t site, std::int64_t head);
    void select_row();
    std::optional<std::size_t> row_of(std::int64_t site, std::int64_t head) const;
    std::optional<std::size_t> measure_index() const;
    QString loss_words(const CompareSides& sides) const;
    QString switched_words() const;

    Desk* desk_;
    CompareSides sides_;
    HeadComparison asked_, shown_;
    std::uint64_t revision_ = 0;
    std::vector<bool> done_;
    std::vector<std::size_t> first_;  ///< row of head 0, by site
    std::vector<workspace::SwitchedOffHead> off_left_, off_right_;
    QString wanted_measure_, pending_;
    bool updating_ = false;
    QComboBox* measures_ = nullptr;
    QLabel *loss_ = nullptr, *switched_ = nullptr, *pointed_ = nullptr, *list_title_ = nullptr;
    Banner* banner_ = nullptr;
    HeadGrid* grid_ = nullptr;
    ScaleBar* bar_ = nullptr;
    QTableView* list_ = nullptr;
    FittedColumns* fitted_ = nullptr;
    ChangesModel* model_ = nullptr;
    QSplitter* split_ = nullptr;
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/workspace/head_sets.h"
#include "widgets/desk/view.h"
#include "widgets/views/overview/overview_cells.h"

class QComboBox;
class QLabel;
class QMenu;
class QSplitter;

namespace headscope::widgets {

class HeadGrid;
class HeadSetMenu;
class HeadStrip;
class ScaleBar;
class TablePanel;

/// Every head of an analysis: one measure as a heat map of layers and heads, all of them as a table.
class Overview : public View {
    Q_OBJECT
public:
    Overview(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

    HeadGrid* grid() const { return grid_; }
    HeadSetMenu* sets() const { return sets_; }
    TablePanel* panel() const { return panel_; }
    void set_measure(const QString& name);
    /// The same for a column that may come later, with its table or its ask file.
    void want_measure(const QString& name);
    void set_normalise(figures::Normalise normalise);
    QString measure() const;
    figures::Normalise normalise() const;

    /// Puts the selected heads (of the table; else the one of the desk) among those of the next run; nothing: on again.
    void switch_off(std::optional<bool> mean);
    void edit_interventions();
    void run_again();

protected:
    void refresh() override;

private:
    QWidget* make_left();
    void make_commands();
    /// The study that the table is of; null while another one is to be shown.
    Study* shown() const;
    void fill_measures();
    void fill_switch_menu(QMenu* menu);
    void fill_menu(QMenu* menu);
    void show_grid();
    void show_head();
    void show_pointed(std::int64_t site, std::int64_t head);
    void show_switched();
    void choose(std::int64_t site, std::int64_t head);
    void open(std::int64_t site, std::int64_t head);
    void popup(const QPoint& global);
    std::vector<bool> sites_done() const;
    /// Row of the table of a head; nothing: there is none.
    std::optional<std::size_t> row_of(std::int64_t site, std::int64_t head) const;
    std::vector<std::size_t> rows_meant() const;
    workspace::Heads heads_meant() const;
    void select(const workspace::Heads& heads);
    QString head_name(std::int64_t site, std::int64_t head) const;

    QComboBox *measures_, *scales_;
    QLabel *title_, *pointed_;
    HeadGrid* grid_;
    ScaleBar* bar_;
    TablePanel* panel_;
    HeadStrip* strip_;
    QSplitter* splitter_;
    QMenu *menu_, *mark_menu_, *switch_menu_;
    HeadSetMenu* sets_;
    std::shared_ptr<const workspace::HeadTable> table_;
    HeatCells cells_;
    std::vector<bool> done_;
    std::vector<std::size_t> first_;  ///< row of the table of head 0, by site
    int study_ = 0;                   ///< of the table, and of the heads to be switched off
    std::vector<RunRequest::Switch> switched_;
    QString wanted_measure_;  ///< restored before a table had it
};

}  // namespace headscope::widgets

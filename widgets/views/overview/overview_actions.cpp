// SPDX-License-Identifier: GPL-3.0-or-later
// What is done with the selected heads: switched off, marked, selected by what was said of them.
#include <QMenu>
#include <algorithm>
#include <functional>

#include "widgets/views/overview/overview.h"
#include "widgets/views/overview/overview_panel.h"
#include "widgets/views/overview/overview_sets.h"
#include "widgets/views/overview/overview_strip.h"

namespace headscope::widgets {

std::vector<std::size_t> Overview::rows_meant() const {
    std::vector<std::size_t> rows = panel_->selected_rows();
    const auto own = row_of(selection().site, selection().head);
    // A selection of several counts only while the chosen head is one of them.
    if (own && std::find(rows.begin(), rows.end(), *own) == rows.end()) rows = {*own};
    return rows;
}

workspace::Heads Overview::heads_meant() const {
    workspace::Heads heads;
    if (!shown()) return heads;
    for (const std::size_t row : rows_meant()) heads.insert(workspace::key_of(table_->rows[row]));
    return heads;
}

void Overview::select(const workspace::Heads& heads) {
    if (shown()) panel_->select(workspace::rows_of(heads, *table_));
}

void Overview::switch_off(std::optional<bool> mean) {
    if (!shown()) return;
    for (const std::size_t row : rows_meant()) {
        const auto& place = table_->rows[row];
        std::erase_if(switched_, [&](const auto& one) { return one.site == place.site && one.head == place.head; });
        if (mean) switched_.push_back({place.site, place.head, *mean});
    }
    std::sort(switched_.begin(), switched_.end(),
              [](const auto& a, const auto& b) { return std::pair(a.site, a.head) < std::pair(b.site, b.head); });
    show_switched();
}

void Overview::show_switched() {
    QStringList names;
    constexpr std::size_t kNamed = 12;
    for (const auto& one : switched_) {
        if (static_cast<std::size_t>(names.size()) == kNamed) {
            names << tr("and %1 more").arg(switched_.size() - kNamed);
            break;
        }
        names << tr("%1 · %2 (%3)")
                     .arg(study()->site_name(one.site))
                     .arg(one.head)
                     .arg(one.mean ? tr("mean") : tr("zero"));
    }
    strip_->show_switched(names);
    show_grid();
}

void Overview::run_again() {
    if (!shown() || switched_.empty()) return;
    RunRequest request;
    request.study = study_;
    request.switched_off = switched_;
    Q_EMIT desk().run_wanted(request);
}

void Overview::edit_interventions() {
    if (!shown()) return;
    RunRequest request;
    request.study = study_;
    request.switched_off = switched_;
    if (switched_.empty())
        for (const std::size_t row : rows_meant())
            request.switched_off.push_back({table_->rows[row].site, table_->rows[row].head, false});
    Q_EMIT desk().interventions_wanted(request);
}

void Overview::fill_switch_menu(QMenu* menu) {
    if (!shown()) return;
    const auto rows = rows_meant();
    const QString what = rows.size() == 1 ? tr("this head") : tr("%1 heads").arg(rows.size());
    const auto off = [&](std::size_t row) {
        return std::any_of(switched_.begin(), switched_.end(), [&](const auto& one) {
            return one.site == table_->rows[row].site && one.head == table_->rows[row].head;
        });
    };
    menu->addAction(tr("Switch off %1: output zero").arg(what), this, [this] { switch_off(false); });
    menu->addAction(tr("Switch off %1: output its mean").arg(what), this, [this] { switch_off(true); });
    menu->addAction(tr("Leave %1 on").arg(what), this, [this] { switch_off(std::nullopt); })
        ->setEnabled(std::any_of(rows.begin(), rows.end(), off));
    menu->addSeparator();
    menu->addAction(tr("Run again with %1 heads off").arg(switched_.size()), this, &Overview::run_again)
        ->setEnabled(!switched_.empty());
    menu->addAction(switched_.empty() ? tr("Edit %1 as interventions…").arg(what)
                                      : tr("Edit %1 heads as interventions…").arg(switched_.size()),
                    this, &Overview::edit_interventions);
}

void Overview::make_commands() {
    const auto some = [this] { return shown() && !rows_meant().empty(); };
    const auto add = [this](const char* name, const QString& text, const QString& tip, std::function<void()> act,
                            std::function<bool()> possible) {
        add_command(name, text, {}, tip, std::move(act), std::move(possible));
    };
    const QString heads = tr("Mark the heads selected in the table, or the chosen head");
    add(
        "overview_open_map", tr("Open the head's map"), tr("Open the head in the view Map"),
        [this] { open(selection().site, selection().head); }, some);
    add(
        "overview_mark", tr("Mark the selected heads"), tr("Mark the selected heads, or remove their marks"),
        [this] { sets_->toggle(heads_meant()); }, some);
    add(
        "overview_new_set", tr("New set of the selected heads…"), heads, [this] { sets_->ask_for_set(heads_meant()); },
        some);
    add(
        "overview_note", tr("Note on the head…"), tr("Write a note on the head; the session keeps it"),
        [this] { sets_->ask_for_note(*heads_meant().begin()); }, [this] { return heads_meant().size() == 1; });
    add(
        "overview_zero", tr("Switch off the selected heads: output zero"), heads, [this] { switch_off(false); }, some);
    add(
        "overview_mean", tr("Switch off the selected heads: output their mean"), heads, [this] { switch_off(true); },
        some);
    add(
        "overview_on", tr("Leave the selected heads on"), heads, [this] { switch_off(std::nullopt); },
        [this, some] { return some() && !switched_.empty(); });
    add(
        "overview_run_again", tr("Run again with heads off"), tr("Run again and compare the changes"),
        [this] { run_again(); }, [this] { return shown() && !switched_.empty(); });
    add(
        "overview_interventions", tr("Edit the heads as interventions…"),
        tr("The heads that are off, or the selected ones, as edits of the next runs"), [this] { edit_interventions(); },
        some);
    const auto table = [this] { return shown() && !panel_->shown_rows().empty(); };
    add(
        "overview_copy_rows", tr("Copy selected rows"), tr("Copy for a spreadsheet"),
        [this] { panel_->copy(TableFormat::tabs, true); }, [this] { return !panel_->selected_rows().empty(); });
    add(
        "overview_copy_csv", tr("Copy the table as CSV"), tr("Copy the table as shown"),
        [this] { panel_->copy(TableFormat::csv, false); }, table);
    add(
        "overview_copy_latex", tr("Copy the table as LaTeX"), tr("Copy the table as shown"),
        [this] { panel_->copy(TableFormat::latex, false); }, table);
    add(
        "overview_save_csv", tr("Save the table as CSV…"), tr("Copy the table as shown"),
        [this] { panel_->ask_where_to_save(TableFormat::csv); }, table);
    add(
        "overview_save_latex", tr("Save the table as LaTeX…"), tr("Copy the table as shown"),
        [this] { panel_->ask_where_to_save(TableFormat::latex); }, table);
    const auto said = [this] { return shown() && !sets_->empty(); };
    add(
        "overview_copy_sets", tr("Copy marks, sets and notes as CSV"), tr("Copy those of all heads"),
        [this] { sets_->copy(); }, said);
    add(
        "overview_save_sets", tr("Save marks, sets and notes…"), tr("Copy those of all heads"),
        [this] { sets_->ask_where_to_save(); }, said);
}

void Overview::popup(const QPoint& global) {
    menu_->clear();
    menu_->addAction(tr("Open map"), this, [this] { open(selection().site, selection().head); });
    menu_->addSeparator();
    sets_->fill(menu_, heads_meant());
    menu_->addSeparator();
    fill_switch_menu(menu_);
    menu_->addSeparator();
    menu_->addAction(tr("Copy row"), this, [this] { panel_->copy(TableFormat::tabs, true); })
        ->setEnabled(!panel_->selected_rows().empty());
    add_figure_actions(menu_);
    menu_->popup(global);
}

}  // namespace headscope::widgets

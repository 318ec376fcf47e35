// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_sets.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>
#include <algorithm>

#include "core/base/error.h"
#include "core/figures/table.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/views/overview/overview_edit.h"
#include "widgets/views/overview/overview_files.h"

namespace headscope::widgets {
namespace {

using workspace::HeadKey;
using workspace::Heads;
using workspace::HeadSets;

/// Error message of `change`; empty if it succeeded.
template <class Change>
QString trouble(const Change& change) {
    try {
        change();
        return {};
    } catch (const Error& error) {
        return QString::fromStdString(error.expected() + "; " + error.found());
    }
}

QString shown(const std::string& name) {
    return QString::fromStdString(name).replace(QLatin1Char('&'), QStringLiteral("&&"));
}

}  // namespace

HeadSetMenu::HeadSetMenu(Desk* desk, InlineEdit* edit, QObject* parent) : QObject(parent), desk_(desk), edit_(edit) {}

HeadSets HeadSetMenu::sets() const {
    return desk_->current() ? desk_->head_sets().of(*desk_->current()) : HeadSets{};
}

std::pair<std::string, std::string> HeadSetMenu::model() const {
    const HeadSets all = sets();
    return {all.model_sha256, all.model_name};
}

void HeadSetMenu::toggle(const Heads& heads) {
    if (!desk_->current() || heads.empty()) return;
    HeadSets all = sets();
    const bool marked =
        std::all_of(heads.begin(), heads.end(), [&](const HeadKey& head) { return all.is_marked(head); });
    for (const HeadKey& head : heads) all.mark(head, !marked);
    desk_->head_sets().put(std::move(all));
}

void HeadSetMenu::add_to(const std::string& name, const Heads& heads) {
    if (!desk_->current()) return;
    HeadSets all = sets();
    const auto found = all.sets().find(name);
    all.put(name, found == all.sets().end() ? heads : workspace::united(found->second, heads));
    desk_->head_sets().put(std::move(all));
}

void HeadSetMenu::ask_for_set(const Heads& heads) {
    edit_->ask(tr("Name of the new set of %1 heads").arg(heads.size()), {}, false,
               [this, heads, of = model()](const QString& name) {
                   if (model() == of) return trouble([&] { add_to(name.toStdString(), heads); });
                   return tr("Another model's analysis is chosen now");
               });
}

void HeadSetMenu::ask_for_note(const HeadKey& head) {
    edit_->ask(tr("Note on this head"), QString::fromStdString(sets().note(head)), true,
               [this, head, of = model()](const QString& text) {
                   if (model() != of) return tr("Another model's analysis is chosen now");
                   return trouble([&] {
                       HeadSets all = sets();
                       all.set_note(head, text.toStdString());
                       desk_->head_sets().put(std::move(all));
                   });
               });
}

void HeadSetMenu::fill(QMenu* menu, const Heads& heads) {
    if (!desk_->current() || heads.empty()) return;
    const HeadSets all = sets();
    const QString what = heads.size() == 1 ? tr("this head") : tr("%1 heads").arg(heads.size());
    const bool marked =
        std::all_of(heads.begin(), heads.end(), [&](const HeadKey& head) { return all.is_marked(head); });
    menu->addAction(marked ? tr("Remove the mark of %1").arg(what) : tr("★ Mark %1").arg(what), this,
                    [this, heads] { toggle(heads); });
    fill_sets(menu, heads);
    if (heads.size() == 1) menu->addAction(tr("Note…"), this, [this, head = *heads.begin()] { ask_for_note(head); });
    menu->addSeparator();
    menu->addAction(tr("Select the marked heads (%1)").arg(all.marked().size()), this,
                    [this, all] { Q_EMIT select_wanted(all.marked()); })
        ->setEnabled(!all.marked().empty());
    menu->addAction(tr("Copy marks, sets and notes as CSV"), this, &HeadSetMenu::copy)->setEnabled(!all.empty());
    menu->addAction(tr("Save marks, sets and notes…"), this, &HeadSetMenu::ask_where_to_save)->setEnabled(!all.empty());
}

void HeadSetMenu::fill_sets(QMenu* menu, const Heads& heads) {
    const HeadSets all = sets();
    QMenu* add = menu->addMenu(tr("Add to set"));
    for (const auto& [name, members] : all.sets())
        add->addAction(shown(name), this, [this, set = name, heads] { add_to(set, heads); });
    add->addSeparator();
    add->addAction(tr("New set…"), this, [this, heads] { ask_for_set(heads); });
    if (all.sets().empty()) return;
    QMenu* take = menu->addMenu(tr("Remove from set"));
    QMenu* select = menu->addMenu(tr("Select set"));
    QMenu* remove = menu->addMenu(tr("Delete set"));
    for (const auto& [name, members] : all.sets()) {
        const Heads own = members;
        take->addAction(shown(name), this,
                        [this, set = name, own, heads] {
                            HeadSets changed = sets();
                            changed.put(set, workspace::without(own, heads));
                            desk_->head_sets().put(std::move(changed));
                        })
            ->setEnabled(!workspace::common(own, heads).empty());
        select->addAction(tr("%1 (%2)").arg(shown(name)).arg(own.size()), this,
                          [this, own] { Q_EMIT select_wanted(own); });
        remove->addAction(shown(name), this, [this, set = name] {
            HeadSets changed = sets();
            changed.remove(set);
            desk_->head_sets().put(std::move(changed));
        });
    }
}

void HeadSetMenu::copy() const {
    QApplication::clipboard()->setText(QString::fromStdString(figures::csv(sets().plain_table())));
    Q_EMIT desk_->told(tr("Marks, sets and notes copied"));
}

void HeadSetMenu::ask_where_to_save() {
    ask_for_path(qobject_cast<QWidget*>(parent()), tr("Save marks, sets and notes"), QStringLiteral("head-sets"),
                 TableFormat::csv, [this](const std::filesystem::path& path) { save(path); });
}

void HeadSetMenu::save(const std::filesystem::path& path) {
    save_text(desk_, mailbox_.sender(), path, [all = sets()] { return figures::csv(all.plain_table()); });
}

}  // namespace headscope::widgets

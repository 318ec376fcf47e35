// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <filesystem>
#include <string>
#include <utility>

#include "core/workspace/head_sets.h"
#include "widgets/desk/desk.h"
#include "widgets/mailbox.h"

class QMenu;

namespace headscope::widgets {

class InlineEdit;

/// Marks, named sets and notes of heads: what the overview's menu does with them. Always of the desk's current study.
class HeadSetMenu : public QObject {
    Q_OBJECT
public:
    HeadSetMenu(Desk* desk, InlineEdit* edit, QObject* parent);

    /// Adds its actions; `heads` are those that are meant.
    void fill(QMenu* menu, const workspace::Heads& heads);
    /// Marks them all, or takes the marks off where all have one.
    void toggle(const workspace::Heads& heads);
    void add_to(const std::string& name, const workspace::Heads& heads);
    void ask_for_set(const workspace::Heads& heads);
    void ask_for_note(const workspace::HeadKey& head);
    /// On the reader's thread.
    void save(const std::filesystem::path& path);
    void copy() const;
    void ask_where_to_save();
    bool empty() const { return sets().empty(); }

Q_SIGNALS:
    void select_wanted(const headscope::workspace::Heads& heads);

private:
    workspace::HeadSets sets() const;
    /// Identity of the current study's model: its checksum and name.
    std::pair<std::string, std::string> model() const;
    void fill_sets(QMenu* menu, const workspace::Heads& heads);

    Desk* desk_;
    InlineEdit* edit_;
    Mailbox mailbox_{this};
};

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QList>
#include <functional>
#include <initializer_list>
#include <map>

class QMenu;
class QWidget;

namespace headscope::app {

/// The actions of the window by name. Controllers add them; the window places them in menus.
class Actions {
public:
    /// Shortcuts work in `window`.
    explicit Actions(QWidget* window) : window_(window) {}

    QAction* add(const char* name, const QString& text, const QKeySequence& keys, const QString& tip,
                 std::function<void()> act);
    /// Adds an action that exists, such as a dock's.
    void add(const char* name, QAction* action);
    QAction* at(const char* name) const { return by_name_.at(QLatin1String(name)); }
    /// Null: no action has that name.
    QAction* find(const QString& name) const;
    void enable(const char* name, bool on) { at(name)->setEnabled(on); }

    /// Appends actions to a menu; an empty name is a separator.
    void place(QMenu* menu, std::initializer_list<const char*> names);
    /// All that lie in menus, in the menus' order: for the palette, the list of keys and tests.
    const QList<QAction*>& placed() const { return placed_; }

private:
    QWidget* window_;
    std::map<QString, QAction*> by_name_;
    QList<QAction*> placed_;
};

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <vector>

#include "app/window/context.h"
#include "app/window/session/path_states.h"
#include "app/window/session/session.h"

class QMenu;

namespace headscope::app {

/// Items that were open before, the last one first: the list of the start page and a menu.
class RecentItems : public QObject {
    Q_OBJECT
public:
    explicit RecentItems(Context& context);

    const std::vector<Recent>& all() const { return items_; }
    void set(const std::vector<Recent>& items);
    void remember(const Recent& item);
    void remember(const widgets::Study& study);
    /// Adds a picture of a complete analysis, once it is drawn.
    void picture(widgets::Study* study);
    bool contain(const QString& path) const;
    QMenu* menu() const { return menu_; }

Q_SIGNALS:
    void chosen(const QString& path);

private:
    void show();
    void fill_menu();
    void forget(const QString& path);

    Context& context_;
    std::vector<Recent> items_;
    QMenu* menu_;
    PathStates states_;  ///< of the worker's thread
    Worker worker_;      ///< queries whether the items still exist
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app

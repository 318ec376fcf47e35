// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/actions.h"

#include <QMenu>
#include <QWidget>
#include <utility>

namespace headscope::app {

QAction* Actions::add(const char* name, const QString& text, const QKeySequence& keys, const QString& tip,
                      std::function<void()> act) {
    auto* action = new QAction(text, window_);
    action->setShortcut(keys);
    action->setToolTip(tip);
    action->setStatusTip(tip);
    QObject::connect(action, &QAction::triggered, window_, [act = std::move(act)] { act(); });
    window_->addAction(action);
    add(name, action);
    return action;
}

void Actions::add(const char* name, QAction* action) {
    action->setObjectName(QLatin1String(name));
    by_name_[action->objectName()] = action;
}

QAction* Actions::find(const QString& name) const {
    const auto place = by_name_.find(name);
    return place == by_name_.end() ? nullptr : place->second;
}

void Actions::place(QMenu* menu, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (*name == '\0') {
            menu->addSeparator();
            continue;
        }
        menu->addAction(at(name));
        placed_ << at(name);
    }
}

}  // namespace headscope::app

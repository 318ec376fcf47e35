// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QDialog>
#include <QList>
#include <QString>
#include <utility>
#include <vector>

class QLineEdit;
class QListWidget;

namespace headscope::widgets {

/// Every action of the window by name: type some letters of it, Enter does it. Also the list of shortcuts.
class CommandPalette : public QDialog {
    Q_OBJECT
public:
    explicit CommandPalette(QList<QAction*> actions, QWidget* parent = nullptr);

    /// How well `text` fits what was typed: all words must occur, in any order; earlier and whole-word hits are better.
    /// -1: not at all.
    static int score(const QString& text, const QString& typed);

private:
    void list(const QString& typed);
    void run();
    bool eventFilter(QObject* object, QEvent* event) override;

    QList<QAction*> actions_;
    QLineEdit* field_;
    QListWidget* list_;
};

/// A dialog with all shortcuts of `actions`, those of the views' own commands (title of the view, commands), and keys
/// that the views use themselves.
void show_shortcuts(const QList<QAction*>& actions, const std::vector<std::pair<QString, QList<QAction*>>>& of_views,
                    QWidget* parent);

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QStringList>

class QLabel;
class QPushButton;
class QMenu;

namespace headscope::widgets {

class InlineEdit;

/// Under the overview: the selected head in words, what can be done with it, and the heads to be switched off.
class HeadStrip : public QFrame {
    Q_OBJECT
public:
    explicit HeadStrip(QWidget* parent = nullptr);

    void show_head(const QString& title, const QStringList& words);
    /// Shows the user's note; empty: none.
    void show_note(const QString& note);
    InlineEdit* edit() const { return edit_; }
    /// Nothing to run again: that line is hidden.
    void show_switched(const QStringList& heads);
    /// Menus of the buttons; their owner fills them.
    void set_menus(QMenu* mark, QMenu* switch_off);

Q_SIGNALS:
    void map_wanted();
    void run_wanted();
    void clear_wanted();

private:
    QLabel *title_, *words_, *note_, *switched_;
    QPushButton *map_, *mark_, *switch_;
    QWidget* run_line_;
    InlineEdit* edit_;
};

}  // namespace headscope::widgets

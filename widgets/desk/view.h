// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QString>
#include <QWidget>
#include <functional>
#include <optional>
#include <vector>

#include "widgets/desk/desk.h"

class QAbstractButton;
class QAction;
class QKeySequence;
class QContextMenuEvent;
class QLabel;
class QMenu;
class QPushButton;
class QStackedLayout;

namespace headscope::widgets {

/// One way of looking at the desk's selection. A view is a class from this one and a line in views/list.inc. It draws
/// what the study has, says in its own place what is missing and what can be done, and never waits.
class View : public QWidget {
    Q_OBJECT
public:
    /// Input of the view: analyses and the selection, or only its own sources (and the theme).
    enum class Of { analyses, training };
    View(Desk* desk, QWidget* parent, Of of = Of::analyses);

    /// Choices made in this view (zoom, indicator, ...), for sessions and undo. restore() takes the result of state(),
    /// perhaps of another version: it ignores unknown or wrong values.
    virtual QJsonObject state() const { return {}; }
    virtual void restore(const QJsonObject& state) { Q_UNUSED(state); }
    /// Request for the figure that Export draws of the shown content; empty: nothing is shown.
    virtual std::optional<FigureRequest> figure() const { return std::nullopt; }

    /// The least height at a width: a scroll area around the view leaves the rest to plots and lists.
    int heightForWidth(int width) const override;

    /// Puts the view's figure on the clipboard, as Export draws it; where there is none, a picture of the screen.
    void copy_picture();
    /// Puts the numbers of the figure on the clipboard, as CSV. False: there is no figure.
    bool copy_numbers();
    /// The figure can be made by the command line: all analyses that it is of are complete.
    bool can_export() const;

    /// Commands that are possible now, by name: for the palette.
    QList<QAction*> commands() const;
    /// Possible or not: for the list of keys.
    QList<QAction*> all_commands() const;

Q_SIGNALS:
    void state_changed();  ///< state() gives something else

protected:
    /// Brings the view up to date with the desk. Called when it is shown, and in a turn of its own when
    /// something changed while it is.
    virtual void refresh() = 0;
    /// Ask for refresh().
    void refresh_later();

    Desk& desk() const { return *desk_; }
    Study* study() const { return desk_->current(); }
    const Selection& selection() const { return desk_->selection_in_one(); }

    /// Put the view's widgets or layout in here.
    QWidget* content() const { return content_; }
    void show_content();
    /// In place of the content: what is the matter, and what can be done about it.
    void show_notice(const QString& title, const QString& text = {}, const QString& action = {},
                     std::function<void()> act = {});
    /// The usual notices: no analysis open; still reading; the failure of a reply. True: one is shown.
    template <class T>
    bool notice_for(const Reply<T>& reply) {
        if (reply) return false;
        if (reply.failure.isEmpty())
            show_reading();
        else
            show_failure(reply.failure);
        return true;
    }
    bool notice_without_study();
    void show_reading();
    void show_failure(const QString& text);

    /// A command of the view. The palette has it while the view is in front, shows its content and `possible` does not
    /// say no; `keys` do it wherever the view's own widgets do not use them.
    QAction* add_command(const char* name, const QString& text, const QKeySequence& keys, const QString& tip,
                         std::function<void()> act, std::function<bool()> possible = {});
    /// Makes a button a command, possible while the button is enabled. `text` replaces the button's text.
    QAction* add_command(QAbstractButton* button, const QString& text = {});

    /// Adds the names that the user gave to the analyses.
    FigureRequest named(FigureRequest wish) const;
    /// The end of every menu of a view: the copies, and Export.
    void add_figure_actions(QMenu* menu);

    void contextMenuEvent(QContextMenuEvent* event) override;
    void showEvent(QShowEvent* event) override;
    /// Ctrl+C copies the picture, arrows step through layers and heads, wherever a view's own widgets do not use them.
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Command {
        QAction* action;
        std::function<void()> act;
        std::function<bool()> possible;  ///< empty: always
        QAbstractButton* button;         ///< whose text it has; null: its own
    };
    bool possible(const Command& command) const;

    Desk* desk_;
    QStackedLayout* stack_;
    QWidget* content_;
    QWidget* notice_;
    QLabel *title_, *text_;
    QPushButton *action_, *copy_;
    std::function<void()> act_;
    std::vector<Command> commands_;
    bool waiting_ = false, outdated_ = true;
};

/// Availability of a view's content among the open items.
enum class Presence {
    none,        ///< nothing open has it
    unrecorded,  ///< the analysis lacks it; another run of the same text records it
    filled,
};

/// Views on one tab of the window, in the order of tabs. The last group of each page has no tab of its own.
enum class ViewGroup { heads, map, text, distributions, layers, asked, compare, other, job, runs, results, cost };
inline constexpr int kViewGroups = 12;

/// A kind of view, as the window lists it.
struct ViewKind {
    const char* name;   ///< in session files and object names
    const char* title;  ///< on its tab
    const char* hint;   ///< one sentence: the question that it answers
    View* (*make)(Desk* desk, QWidget* parent);
    ViewGroup group;
    /// Reads headers of what is open, no values: asked whenever something is opened, closed or chosen.
    Presence (*presence)(const Desk& desk);
    /// The tool of `headscope ask` whose files it draws; null: it draws none.
    const char* ask_tool = nullptr;
    /// The page of the window that it is on.
    enum class Area { analysis, training };
    Area area() const { return group >= ViewGroup::job ? Area::training : Area::analysis; }
};

/// All of views/list.inc, in their order.
const std::vector<const ViewKind*>& view_kinds();

}  // namespace headscope::widgets

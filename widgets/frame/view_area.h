// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QWidget>
#include <map>
#include <vector>

#include "widgets/desk/view.h"

class QHBoxLayout;
class QMenu;
class QSplitter;
class QStackedWidget;
class QToolButton;

namespace headscope::widgets {

class TabButton;

/// One page of the window: its views on tabs by group, one of them in view, or two beside each other. Tabs are of the
/// views that what is open fills (ViewKind::presence), and of what is shown; a menu at their end has all others. Each
/// view scrolls in its own place: the page asks for little room.
class ViewArea : public QWidget {
    Q_OBJECT
public:
    ViewArea(Desk* desk, ViewKind::Area area, QWidget* parent = nullptr);

    /// All views of the page, on a tab or not.
    const std::map<QString, View*>& views() const { return views_; }
    /// Brings a view to the front: where it is if it is shown, else in the left place. Other names change nothing.
    void show_view(const QString& name);
    /// The view that has the keys.
    const QString& front() const { return second_in_front_ ? second_ : first_; }
    View* front_view() const { return views_.at(front()); }
    /// The names of both shown views; the second one empty: one is shown alone.
    std::pair<QString, QString> shown() const { return {first_, second_}; }
    /// A second view beside the first. The map takes the text beside it, all others the map.
    void set_split(bool split);
    bool split() const { return !second_.isEmpty(); }
    void show_beside(const QString& name);
    /// Names of the views on tabs, in their order.
    QStringList on_tabs() const;

    /// At the right end of the tabs.
    void add_corner(QWidget* widget);

    /// Views on tabs and side by side. restore() ignores unknown values.
    QJsonObject state() const;
    void restore(const QJsonObject& state);

    QSize minimumSizeHint() const override;
    /// Rows of tabs wrap, but views take what is left: their usual height must not push others aside.
    bool hasHeightForWidth() const override { return false; }

    /// "Heads", "Map", ...
    static QString group_title(ViewGroup group);

Q_SIGNALS:
    void changed();  ///< another view is in front, or the views are in other places

private:
    const ViewKind* kind(const QString& name) const;
    bool on_tab(const ViewKind& kind) const;
    void follow_analyses();
    void follow_training();
    void build_tabs();
    void build_places();
    void place_views();
    void update_tabs();
    void choose_group(ViewGroup group);
    void fill_more();
    void fill_second_menu();
    void add_entry(QMenu* menu, const ViewKind& kind, const std::function<void()>& act);
    void follow_focus(QWidget* now);
    void set_second_in_front(bool second);

    Desk* desk_;
    const ViewKind::Area area_;
    std::vector<const ViewKind*> kinds_;
    std::map<QString, View*> views_;
    std::map<QString, QWidget*> scrolls_;  ///< by the name of the view inside
    std::map<ViewGroup, TabButton*> groups_;
    std::map<QString, TabButton*> tabs_;
    std::map<ViewGroup, QString> last_;  ///< that was shown of the group
    TabButton* more_ = nullptr;
    QWidget *tab_row_ = nullptr, *view_row_ = nullptr;
    QHBoxLayout* corner_ = nullptr;
    QToolButton* split_ = nullptr;
    QSplitter* places_ = nullptr;
    QStackedWidget *left_ = nullptr, *right_ = nullptr;
    QWidget* right_place_ = nullptr;
    TabButton* second_title_ = nullptr;
    QString first_, second_;
    bool second_in_front_ = false;
    int study_ = 0;  ///< that the tabs were made for
};

}  // namespace headscope::widgets

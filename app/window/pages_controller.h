// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QPointer>
#include <array>
#include <map>

#include "app/window/asks/step_service.h"
#include "app/window/context.h"
#include "app/window/pages/tensor_service.h"
#include "widgets/desk/history.h"
#include "widgets/desk/view.h"

class QStackedWidget;
class QToolButton;

namespace headscope::widgets {
class SelectionBar;
class ViewArea;
}  // namespace headscope::widgets

namespace headscope::app {

/// The start page and the two pages of views: which one is in front, their history and their colors.
class PagesController : public QObject {
    Q_OBJECT
public:
    enum class Page { start, analysis, training };

    explicit PagesController(Context& context);
    ~PagesController() override;

    QWidget* widget() const { return widget_; }
    /// Buttons that choose the group of views, for the end of the menu bar.
    QWidget* switches() const { return switches_; }
    std::array<widgets::ViewArea*, 2> areas() const { return {area_, training_area_}; }

    Page page() const;
    void show_page(Page page);
    /// Brings a view and its page to the front. Without an open analysis a view of analyses stays behind the start page
    /// unless `empty_too`.
    void show_view(const QString& name, bool empty_too = false);
    void show_tensors(int model);

    const std::map<QString, widgets::View*>& views() const { return views_; }
    widgets::View* front_view() const;      ///< null: the start page
    QString front_name() const;             ///< empty: the start page
    QList<QAction*> view_commands() const;  ///< actions that the view in front offers now

    /// Selection and states of the views.
    QJsonObject looks() const;
    void restore_looks(const QJsonObject& looks);
    widgets::History& history() { return history_; }
    /// Places of the views on both pages.
    QJsonObject state() const;
    void restore(const QJsonObject& state);

    const QString& theme() const { return theme_; }  ///< system, light or dark
    void set_theme(const QString& theme);

Q_SIGNALS:
    /// Before the page of training comes to the front (true) or leaves it.
    void training_comes(bool comes);

private:
    void build();
    bool has_analyses() const;  ///< an analysis or an ask file is open
    void build_switches();
    void build_actions();
    void build_theme_actions();
    void apply_theme();
    void update();
    widgets::ViewArea* front_area() const;  ///< null: the start page

    Context& context_;
    TensorService tensors_;
    StepService steps_;
    QPointer<QWidget> widget_;
    QWidget* switches_ = nullptr;
    QStackedWidget* pages_ = nullptr;
    widgets::SelectionBar* bar_ = nullptr;
    widgets::ViewArea *area_ = nullptr, *training_area_ = nullptr;  ///< views of analyses, and of training
    QToolButton *analysis_switch_ = nullptr, *training_switch_ = nullptr;
    std::map<QString, widgets::View*> views_;  ///< of both pages
    widgets::History history_;
    QString theme_ = QStringLiteral("system");
};

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <map>

#include "app/window/context.h"
#include "app/window/pages/task_service.h"

namespace headscope::widgets {
class AskDialog;
class ConvertDialog;
class ReproduceDialog;
class TaskDialog;
}  // namespace headscope::widgets

namespace headscope::app {

/// Commands of the command line as dialogs: ask, reproduce, convert, swap.
class TasksController : public QObject {
    Q_OBJECT
public:
    explicit TasksController(Context& context);

    bool running() const { return service_.running(); }
    const QString& title() const { return service_.title(); }
    QString status() const;  ///< progress of the running command; empty: none runs

Q_SIGNALS:
    void open_wanted(const QString& path);

private:
    void build_actions();
    /// `tool`: the one that is chosen; empty: stays.
    void show_ask(const QString& tool);
    void offer_asked();
    void show_reproduce();
    void show_convert(widgets::ConvertDialog*& dialog, bool mixers);
    void connect_dialog(widgets::TaskDialog* dialog);
    void show(widgets::TaskDialog* dialog);
    void look_ahead(const QString& paper, double minutes, int seeds, int threads);
    void offer_models();
    void update();
    void ended(const QString& failure);
    void show_report(const QString& folder);
    /// `pages`: of the report's folder, by name.
    void show_pages(const QString& folder, const std::map<QString, QString>& pages);

    Context& context_;
    TaskService service_;
    widgets::AskDialog* ask_ = nullptr;
    widgets::ReproduceDialog* reproduce_ = nullptr;
    widgets::ConvertDialog *convert_ = nullptr, *swap_ = nullptr;
    widgets::TaskDialog* running_ = nullptr;  ///< its command runs or ran last
    QString output_;                          ///< of that command
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>

#include "app/window/analysis_controller.h"
#include "app/window/asks/asks_controller.h"
#include "app/window/context.h"
#include "app/window/evaluations_controller.h"
#include "app/window/figures_controller.h"
#include "app/window/files_controller.h"
#include "app/window/help_controller.h"
#include "app/window/pages_controller.h"
#include "app/window/runs_controller.h"
#include "app/window/session_controller.h"
#include "app/window/status_line.h"
#include "app/window/tasks_controller.h"
#include "app/window/watchdog.h"

class QDockWidget;
class QMenu;

namespace headscope::widgets {
class LogPanel;
}

namespace headscope::app {

/// The frame: docks, menus, status bar, dropped files, and the question before it closes. Controllers do the rest.
class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    struct Options {
        QStringList paths;    ///< to open
        std::string program;  ///< argv[0], for child processes
        bool restore = true;  ///< bring the last session back
        int threads = 0;      ///< 0: all processors
        bool watch = false;   ///< report when the window does not answer
    };
    explicit MainWindow(const Options& options);
    ~MainWindow() override;

    widgets::Desk& desk() { return context_.desk; }
    Engine& engine() { return context_.engine; }
    Watchdog& watchdog() { return watchdog_; }
    RunService& training() { return runs_.service(); }
    const PagesController& pages() const { return pages_; }
    FilesController& files() { return files_; }
    /// Every action in a menu, for tests.
    QList<QAction*> all_actions() const { return context_.actions.placed(); }
    int problems() const;  ///< errors reported so far

    /// Closes without a question: the system requests it.
    void end();
    /// After the end: waits for the session to be on the disk, not for slow disks of others.
    void let_go() { session_.let_go(); }

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool eventFilter(QObject* object, QEvent* event) override;
    void closeEvent(QCloseEvent* event) override;

private:
    void take_first_size();
    void build_docks();
    void build_actions();
    void build_menus();
    void build_view_menu(QMenu* menu);
    void connect_status();
    void show_status();
    void show_problem(const QString& text);
    void take_text(const QString& path);
    void share_left(bool training);
    QJsonObject layout() const;
    void restore_layout(const QJsonObject& layout);
    bool ask_about_work();  ///< true: the window may close now

    Context context_;
    PagesController pages_;
    FiguresController figures_;
    TasksController tasks_;
    HelpController help_;
    AnalysisController analysis_;
    FilesController files_;
    RunsController runs_;
    EvaluationsController evaluations_;
    AsksController asks_;
    SessionController session_;
    Watchdog watchdog_;
    StatusLine status_;
    widgets::LogPanel* log_ = nullptr;
    QDockWidget *tree_dock_ = nullptr, *text_dock_ = nullptr, *log_dock_ = nullptr;
    bool closing_ = false;     ///< the user has agreed
    /// Panels on the left.
    struct {
        bool text_wanted = true;  ///< the text panel shows with the views of analyses
        int width = 300;
    } left_;
};

}  // namespace headscope::app

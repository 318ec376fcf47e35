// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of the window: which action lies where.
#include <QDockWidget>
#include <QMenuBar>
#include <map>

#include "app/window/main_window.h"
#include "widgets/frame/view_area.h"

namespace headscope::app {

void MainWindow::build_actions() {
    Actions& actions = context_.actions;
    actions.add("quit", tr("&Quit"), QKeySequence(tr("Ctrl+Q")), tr("The session is saved"), [this] { close(); });
    actions.add("type_text", tr("&Type a text"), QKeySequence(tr("Ctrl+T")), tr("To the text panel"), [this] {
        text_dock_->show();
        text_dock_->raise();
        context_.text->focus_text();
    });
    actions.add("full_screen", tr("&Full screen"), QKeySequence(Qt::Key_F11), tr("And back"),
                [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
    const auto panel = [&](const char* name, QDockWidget* dock, const QString& text) {
        QAction* toggle = dock->toggleViewAction();
        toggle->setText(text);
        toggle->setToolTip(tr("Show or hide this panel"));
        actions.add(name, toggle);
    };
    panel("panel_project", tree_dock_, tr("Pro&ject panel"));
    panel("panel_text", text_dock_, tr("Te&xt panel"));
    panel("panel_log", log_dock_, tr("Lo&g panel"));
}

void MainWindow::build_menus() {
    Actions& actions = context_.actions;
    QMenu* file = menuBar()->addMenu(tr("&File"));
    actions.place(file, {"open_model", "apply_adapter", "open_analysis"});
    file->addMenu(files_.recent().menu());
    actions.place(file, {"open_sample", "start_page", "", "rename_analysis", "save_copy", "export", "copy_picture",
                         "copy_numbers", "print", "close_analysis", "", "quit"});
    actions.place(menuBar()->addMenu(tr("&Edit")), {"undo", "redo", "", "commands"});
    actions.place(menuBar()->addMenu(tr("&Run")), {"run", "stop", "type_text", "interventions"});
    actions.place(menuBar()->addMenu(tr("&Train")), {"train_new",
                                                     "train_start",
                                                     "train_measure",
                                                     "train_open",
                                                     "train_read_job",
                                                     "train_save_job",
                                                     "",
                                                     "train_pause",
                                                     "train_resume",
                                                     "train_stop",
                                                     "train_snapshot",
                                                     "train_evaluate",
                                                     "train_analyse",
                                                     "train_close",
                                                     "",
                                                     "open_evaluation",
                                                     "evaluate_models",
                                                     "evaluate_runs",
                                                     "stop_evaluating",
                                                     "close_evaluations"});
    actions.place(menuBar()->addMenu(tr("T&ools")),
                  {"ask", "open_ask", "close_asks", "", "reproduce", "convert", "swap_mixers", "stop_task"});
    actions.place(menuBar()->addMenu(tr("&Go")),
                  {"next_head", "previous_head", "next_layer", "previous_layer", "next_analysis"});
    build_view_menu(menuBar()->addMenu(tr("&View")));
    actions.place(menuBar()->addMenu(tr("&Help")), {"guide", "keys", "about"});
    menuBar()->setCornerWidget(pages_.switches(), Qt::TopRightCorner);
}

/// A submenu for each group: thirty views in one menu would be longer than the screen.
void MainWindow::build_view_menu(QMenu* menu) {
    Actions& actions = context_.actions;
    std::map<widgets::ViewGroup, QMenu*> groups;
    for (int at = 0; at < widgets::kViewGroups; ++at) {
        const auto group = static_cast<widgets::ViewGroup>(at);
        if (group == widgets::ViewGroup::job) menu->addSeparator();
        groups[group] = menu->addMenu(widgets::ViewArea::group_title(group));
    }
    for (const widgets::ViewKind* kind : widgets::view_kinds())
        actions.place(groups[kind->group], {("view_" + std::string(kind->name)).c_str()});
    actions.place(menu, {"", "side_by_side", "", "panel_project", "panel_text", "panel_log", ""});
    actions.place(menu->addMenu(tr("&Colors")), {"theme_system", "theme_light", "theme_dark"});
    actions.place(menu, {"full_screen"});
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
// The window's actions: menus, keys, palette.
#include <QApplication>
#include <QDockWidget>
#include <QLabel>
#include <QMenuBar>
#include <QMessageBox>

#include "app/version.h"
#include "app/window/main_window.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/command_palette.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {

QAction* MainWindow::add_action(const char* name, const QString& text, const QKeySequence& keys, const QString& tip,
                                std::function<void()> act) {
    auto* action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setShortcut(keys);
    action->setToolTip(tip);
    action->setStatusTip(tip);
    connect(action, &QAction::triggered, this, [act = std::move(act)] { act(); });
    addAction(action);
    actions_ << action;
    by_name_[QLatin1String(name)] = action;
    return action;
}

void MainWindow::build_actions() {
    build_file_menu();
    build_edit_and_run_menus();
    build_training_actions();
    build_task_actions();
    build_go_menu();
    build_view_menu();
    build_help_menu();
}

void MainWindow::build_file_menu() {
    QMenu* file = menuBar()->addMenu(tr("&File"));
    file->addAction(add_action("open_model", tr("&Open checkpoint…"), QKeySequence::Open,
                               tr("A folder or file of weights"), [this] { choose_model(); }));
    file->addAction(add_action("apply_adapter", tr("Apply a&dapter…"), {},
                               tr("A folder with a LoRA adapter, merged into the chosen checkpoint"),
                               [this] { choose_adapter(); }));
    file->addAction(add_action("open_analysis", tr("Open &analysis…"), QKeySequence(tr("Ctrl+Shift+O")),
                               tr("A file NAME.headscope.h5"), [this] { choose_analysis(); }));
    recent_menu_ = file->addMenu(tr("Open &recent"));
    recent_menu_->setObjectName(QStringLiteral("recent_menu"));
    recent_menu_->setToolTipsVisible(true);
    connect(recent_menu_, &QMenu::aboutToShow, this, &MainWindow::fill_recent_menu);
    file->addAction(add_action("open_sample", tr("Open the &sample"), {}, tr("A small checkpoint with a text"),
                               [this] { open_sample(); }));
    file->addAction(add_action("start_page", tr("S&tart page"), QKeySequence(tr("Ctrl+Home")),
                               tr("What can be opened, and what was"), [this] { show_page(Page::start); }));
    file->addSeparator();
    file->addAction(add_action("rename_analysis", tr("Re&name the analysis…"), QKeySequence(Qt::Key_F2),
                               tr("Its name in lists and figures; the file keeps its own"),
                               [this] { ask_name(desk_.selection().study); }));
    file->addAction(add_action("save_copy", tr("Save a &copy of the analysis…"), QKeySequence::SaveAs,
                               tr("The shown analysis, to a place of your own"),
                               [this] { save_copy(desk_.selection().study); }));
    file->addAction(add_action("export", tr("&Export a figure…"), QKeySequence(tr("Ctrl+E")),
                               tr("The view in front as PDF, SVG, PNG or CSV, or any other figure"),
                               [this] { export_front(); }));
    // Without a key: in a list or a text Ctrl+C is theirs, and views have it for their picture.
    file->addAction(add_action("copy_picture", tr("Copy the p&icture") + QStringLiteral("\tCtrl+C"), {},
                               tr("The figure of the view in front, as Export draws it"), [this] {
                                   if (widgets::View* view = front_view()) view->copy_picture();
                               }));
    file->addAction(add_action("copy_numbers", tr("Copy the &numbers as CSV"), {},
                               tr("The numbers of the figure of the view in front"), [this] {
                                   widgets::View* view = front_view();
                                   if (!view || !view->copy_numbers())
                                       tell(tr("There is no figure of what is shown, and so no numbers of it"));
                               }));
    file->addAction(add_action("print", tr("&Print the figure…"), QKeySequence::Print, tr("The view in front"),
                               [this] { print_front(); }));
    file->addAction(add_action("close_analysis", tr("&Close the analysis"), QKeySequence::Close, tr("Its file stays"),
                               [this] { desk_.remove(desk_.selection().study); }));
    file->addSeparator();
    file->addAction(
        add_action("quit", tr("&Quit"), QKeySequence(tr("Ctrl+Q")), tr("The session is saved"), [this] { close(); }));
}

void MainWindow::build_edit_and_run_menus() {
    QMenu* edit = menuBar()->addMenu(tr("&Edit"));
    edit->addAction(add_action("undo", tr("&Undo"), QKeySequence::Undo, tr("Back to what was shown before"),
                               [this] { history_->undo(); }));
    edit->addAction(
        add_action("redo", tr("&Redo"), QKeySequence::Redo, tr("Forward again"), [this] { history_->redo(); }));
    edit->addSeparator();
    edit->addAction(
        add_action("commands", tr("&Commands…"), QKeySequence(tr("Ctrl+K")), tr("Every action by name"), [this] {
            auto* palette = new widgets::CommandPalette(actions_ + view_commands(), this);
            palette->setAttribute(Qt::WA_DeleteOnClose);
            palette->open();
        }));

    QMenu* run = menuBar()->addMenu(tr("&Run"));
    run->addAction(add_action("run", tr("&Run"), QKeySequence(tr("Ctrl+Return")), tr("Analyze the chosen texts"),
                              [this] { this->run(text_->choice()); }));
    run->addAction(add_action("stop", tr("&Stop"), QKeySequence(tr("Ctrl+.")), tr("What is done stays"),
                              [this] { engine_.stop(); }));
    run->addAction(
        add_action("type_text", tr("&Type a text"), QKeySequence(tr("Ctrl+T")), tr("To the text panel"), [this] {
            text_dock_->show();
            text_dock_->raise();
            text_->focus_text();
        }));
}

void MainWindow::build_go_menu() {
    QMenu* go = menuBar()->addMenu(tr("&Go"));
    const auto step = [&](const char* name, const QString& text, const char* keys, int sites, int heads) {
        go->addAction(add_action(name, text, QKeySequence(QLatin1String(keys)), text,
                                 [this, sites, heads] { desk_.step(sites, heads); }));
    };
    step("next_head", tr("&Next head"), "Alt+Right", 0, 1);
    step("previous_head", tr("&Previous head"), "Alt+Left", 0, -1);
    step("next_layer", tr("Next &layer"), "Alt+Down", 1, 0);
    step("previous_layer", tr("Previous l&ayer"), "Alt+Up", -1, 0);
    go->addAction(add_action("next_analysis", tr("Next anal&ysis"), QKeySequence(tr("Ctrl+Tab")),
                             tr("The next open analysis"), [this] {
                                 const auto studies = desk_.studies();
                                 for (std::size_t i = 0; i < studies.size(); ++i)
                                     if (studies[i] == desk_.current()) {
                                         desk_.select_study(studies[(i + 1) % studies.size()]->id());
                                         return;
                                     }
                             }));
}

void MainWindow::build_view_menu() {
    QMenu* view = menuBar()->addMenu(tr("&View"));
    // A menu of each group: thirty views in one would be longer than the screen.
    std::map<widgets::ViewGroup, QMenu*> groups;
    for (int at = 0; at < widgets::kViewGroups; ++at) {
        const auto group = static_cast<widgets::ViewGroup>(at);
        if (group == widgets::ViewGroup::job) view->addSeparator();
        groups[group] = view->addMenu(widgets::ViewArea::group_title(group));
    }
    int number = 1;
    for (const widgets::ViewKind* kind : widgets::view_kinds()) {
        const QString name = QString::fromLatin1(kind->name);
        const QKeySequence keys = number <= 9 ? QKeySequence(tr("Ctrl+%1").arg(number)) : QKeySequence();
        groups[kind->group]->addAction(add_action(("view_" + std::string(kind->name)).c_str(), tr(kind->title), keys,
                                                  tr(kind->hint), [this, name] { show_view(name, true); }));
        ++number;
    }
    view->addSeparator();
    view->addAction(add_action("side_by_side", tr("Two views side &by side"), QKeySequence(tr("Ctrl+\\")),
                               tr("The map with the text, or any other two; again: the left one alone"), [this] {
                                   if (page() == Page::start) return;
                                   auto* area = page() == Page::training ? training_area_ : area_;
                                   area->set_split(!area->split());
                               }));
    view->addSeparator();
    const auto panel = [&](const char* name, QDockWidget* dock, const QString& text) {
        QAction* toggle = dock->toggleViewAction();
        toggle->setObjectName(QLatin1String(name));
        toggle->setText(text);
        toggle->setToolTip(tr("Show or hide this panel"));
        view->addAction(toggle);
        actions_ << toggle;
        by_name_[QLatin1String(name)] = toggle;
    };
    panel("panel_project", tree_dock_, tr("Pro&ject panel"));
    panel("panel_text", text_dock_, tr("Te&xt panel"));
    panel("panel_log", log_dock_, tr("Lo&g panel"));
    view->addSeparator();
    themes_ = new QActionGroup(this);
    QMenu* colours = view->addMenu(tr("&Colors"));
    const auto theme = [&](const char* name, const QString& text) {
        QAction* action = add_action(name, text, {}, text, [this, name] {
            theme_ = QString::fromLatin1(name).section(QLatin1Char('_'), 1);
            apply_theme();
            save_soon();
        });
        action->setCheckable(true);
        themes_->addAction(action);
        colours->addAction(action);
    };
    theme("theme_system", tr("As the &system"));
    theme("theme_light", tr("&Light"));
    theme("theme_dark", tr("&Dark"));
    by_name_[QStringLiteral("theme_system")]->setChecked(true);
    view->addAction(add_action("full_screen", tr("&Full screen"), QKeySequence(Qt::Key_F11), tr("And back"),
                               [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); }));
}

void MainWindow::build_help_menu() {
    QMenu* help = menuBar()->addMenu(tr("&Help"));
    help->addAction(add_action("guide", tr("&User guide"), QKeySequence::HelpContents,
                               tr("At the place that is about the view in front"), [this] { show_guide(); }));
    help->addAction(add_action("keys", tr("&Keys"), QKeySequence(Qt::Key_Question), tr("All keys"), [this] {
        std::vector<std::pair<QString, QList<QAction*>>> of_views;
        for (const widgets::ViewKind* kind : widgets::view_kinds())
            of_views.emplace_back(tr(kind->title), views_.at(QLatin1String(kind->name))->all_commands());
        widgets::show_shortcuts(actions_, of_views, this);
    }));
    help->addAction(add_action("about", tr("&About Headscope"), {}, tr("Version and license"), [this] {
        auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Headscope"),
                                    tr("Headscope %1\n\nA workbench for looking inside attention.\nGPL-3.0-or-later.")
                                        .arg(QLatin1String(kVersion)),
                                    QMessageBox::Close, this);
        box->setAttribute(Qt::WA_DeleteOnClose);
        box->open();
    }));
}

QList<QAction*> MainWindow::view_commands() const {
    const widgets::View* front = front_view();
    return front ? front->commands() : QList<QAction*>();
}

void MainWindow::update_actions() {
    if (!by_name_.contains(QStringLiteral("about"))) return;  // not all of them are there yet
    const widgets::Study* study = desk_.current();
    const auto enable = [this](const char* name, bool on) { by_name_.at(QLatin1String(name))->setEnabled(on); };
    enable("save_copy", study && study->complete());
    enable("close_analysis", study != nullptr);
    enable("rename_analysis", study != nullptr);
    enable("print", page() != Page::start);
    enable("side_by_side", page() != Page::start);
    enable("export",
           study != nullptr || !engine_.models().empty() || !desk_.runs().runs().empty() || page() == Page::training);
    enable("undo", history_ && history_->can_undo());
    enable("redo", history_ && history_->can_redo());
    enable("run", !engine_.running() && !engine_.models().empty());
    enable("stop", engine_.running());
    for (const char* name : {"next_head", "previous_head", "next_layer", "previous_layer", "next_analysis"})
        enable(name, study != nullptr);
    update_tasks();
    constexpr int kMostModel = 200;  ///< pixels: the status bar must fit a narrow window
    const QString model = study ? study->model_name() : QString();
    model_status_->setText(fontMetrics().elidedText(model, Qt::ElideMiddle, kMostModel));
    model_status_->setToolTip(model);
    setWindowTitle(study ? tr("%1 – Headscope").arg(widgets::study_labels({study}).front())
                         : QStringLiteral("Headscope"));
}

}  // namespace headscope::app

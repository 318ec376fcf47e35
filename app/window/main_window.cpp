// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/main_window.h"

#include <QApplication>
#include <QDockWidget>
#include <QLabel>
#include <QLocale>
#include <QMenuBar>
#include <QStackedWidget>
#include <QStatusBar>
#include <QStyleHints>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/analysis/input.h"
#include "core/base/error.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/desk/palette.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/panels/figure_maker.h"
#include "widgets/panels/log_panel.h"
#include "widgets/panels/project_tree.h"
#include "widgets/panels/selection_bar.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

QDockWidget* make_dock(QMainWindow* window, const char* name, const QString& title, QWidget* content) {
    auto* dock = new QDockWidget(title, window);
    dock->setObjectName(QLatin1String(name));
    dock->setWidget(content);
    dock->setAcceptDrops(true);  // for when it floats
    return dock;
}

}  // namespace

MainWindow::MainWindow(const Options& options)
    : options_(options),
      engine_(options.threads),
      opener_(&desk_, options.program),
      service_(&desk_.runs(), options.program),
      costs_(&desk_.runs(), options.program),
      evaluations_(&desk_, options.program),
      tasks_(options.program),
      watchdog_(options.watch) {
    setObjectName(QStringLiteral("main_window"));
    setWindowTitle(QStringLiteral("Headscope"));
    setAcceptDrops(true);
    setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
    take_first_size();
    qApp->installEventFilter(this);
    build_panels();
    build_views();
    build_status();
    build_actions();
    connect_engine();
    connect_desk();
    connect_training();
    connect_evaluations();
    build_figure_handles();
    history_ = std::make_unique<widgets::History>([this] { return looks(); },
                                                  [this](const QJsonObject& looks) { restore_looks(looks); });
    connect(history_.get(), &widgets::History::moved, this, &MainWindow::update_actions);
    save_timer_.setSingleShot(true);
    connect(&save_timer_, &QTimer::timeout, this, [this] { save_now(false); });
    restoring_timer_.setSingleShot(true);
    connect(&restoring_timer_, &QTimer::timeout, this, &MainWindow::stop_restoring);
    apply_theme();
    show_page(Page::start);
    update_actions();
    load_state();
}

MainWindow::~MainWindow() {
    let_go();
    desk_.writer().finish();  // what was saved; where its disk does not answer the process ends all the same (EndGuard)
    mailbox_.close();
    // Views and panels use the desk until they go: before it, not after as children would.
    delete export_;
    delete printed_;
    delete dragged_;
    delete takeCentralWidget();
    for (QDockWidget* dock : {tree_dock_, text_dock_, log_dock_}) delete dock;
}

void MainWindow::build_panels() {
    auto* central = new QWidget(this);
    auto* column = new QVBoxLayout(central);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    bar_ = new widgets::SelectionBar(&desk_, central);
    pages_ = new QStackedWidget(central);
    start_ = new widgets::StartPage(pages_);
    const auto make_area = [this](const char* name, widgets::ViewKind::Area which) {
        auto* area = new widgets::ViewArea(&desk_, which, pages_);
        area->setObjectName(QLatin1String(name));
        return area;
    };
    area_ = make_area("views", widgets::ViewKind::Area::analysis);
    training_area_ = make_area("training_views", widgets::ViewKind::Area::training);
    pages_->addWidget(start_);
    pages_->addWidget(area_);
    pages_->addWidget(training_area_);
    column->addWidget(bar_);
    column->addWidget(pages_, 1);
    setCentralWidget(central);

    tree_ = new widgets::ProjectTree(&desk_, this);
    text_ = new widgets::TextPanel(this);
    log_ = new widgets::LogPanel(this);
    tree_dock_ = make_dock(this, "dock_project", tr("Project"), tree_);
    text_dock_ = make_dock(this, "dock_text", tr("Text"), text_);
    log_dock_ = make_dock(this, "dock_log", tr("Log"), log_);
    addDockWidget(Qt::LeftDockWidgetArea, tree_dock_);
    addDockWidget(Qt::LeftDockWidgetArea, text_dock_);
    addDockWidget(Qt::BottomDockWidgetArea, log_dock_);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    log_dock_->hide();
    resizeDocks({tree_dock_, text_dock_}, {150, 500}, Qt::Vertical);
    resizeDocks({tree_dock_}, {left_width_}, Qt::Horizontal);

    looker_.post(this, [this, folder = engine_.resources(), send = mailbox_.sender()](const Cancellation&) {
        std::vector<widgets::TextExample> examples;
        QString message;
        try {
            for (const auto& name : analysis::bundled_texts(folder))
                examples.push_back(
                    {QString::fromStdString(name), QString::fromStdString(analysis::bundled_text(folder, name))});
        } catch (const Error& error) {
            message = QString::fromUtf8(error.what());
        }
        send([this, examples, message] {
            text_->set_examples(examples);
            if (!message.isEmpty()) log_->problem(message);
        });
    });
    text_->set_examples({});

    connect(start_, &widgets::StartPage::open_model_wanted, this, &MainWindow::choose_model);
    connect(start_, &widgets::StartPage::open_analysis_wanted, this, &MainWindow::choose_analysis);
    connect(start_, &widgets::StartPage::sample_wanted, this, &MainWindow::open_sample);
    connect(start_, &widgets::StartPage::path_wanted, this, &MainWindow::open_path);
    connect(start_, &widgets::StartPage::session_wanted, this, [this] { settle_lost_session(true); });
    connect(start_, &widgets::StartPage::session_declined, this, [this] { settle_lost_session(false); });
    connect(start_, &widgets::StartPage::removal_wanted, this, &MainWindow::remove_leftover);
    connect(start_, &widgets::StartPage::forget_wanted, this, [this](const QString& path) {
        std::erase_if(recent_, [&](const Recent& item) { return item.path == path; });
        show_recent();
        save_soon();
    });
    connect(text_, &widgets::TextPanel::open_model_wanted, this, &MainWindow::choose_model);
    connect(text_, &widgets::TextPanel::preview_wanted, &engine_, &Engine::preview);
    connect(text_, &widgets::TextPanel::refused, this, &MainWindow::problem);
    connect(text_, &widgets::TextPanel::run_wanted, this, [this](const widgets::TextChoice& choice) { run(choice); });
    connect(text_, &widgets::TextPanel::stop_wanted, &engine_, &Engine::stop);
    connect(text_, &widgets::TextPanel::changed, this, [this] {
        tree_->set_texts(text_->labels());
        save_soon();
    });
    connect(tree_, &widgets::ProjectTree::text_chosen, this, [this](int row) {
        text_dock_->show();
        text_->choose_source(row);
    });
    connect(tree_, &widgets::ProjectTree::model_chosen, text_, &widgets::TextPanel::begin_with_model);
    connect(tree_, &widgets::ProjectTree::tensors_wanted, this, &MainWindow::show_tensors);
    connect(tree_, &widgets::ProjectTree::model_close_wanted, &engine_, &Engine::close_model);
    connect(tree_, &widgets::ProjectTree::study_close_wanted, this, [this](int id) { desk_.remove(id); });
    connect(tree_, &widgets::ProjectTree::study_rename_wanted, this, &MainWindow::ask_name);
    connect(tree_, &widgets::ProjectTree::study_save_wanted, this, &MainWindow::save_copy);
    connect(tree_, &widgets::ProjectTree::folder_wanted, this, &MainWindow::show_folder);
    connect(log_, &widgets::LogPanel::problem_noted, this, [this](const QString& text) { show_message(text, 12000); });
}

void MainWindow::build_views() {
    for (widgets::ViewArea* area : {area_, training_area_}) {
        views_.insert(area->views().begin(), area->views().end());
        connect(area, &widgets::ViewArea::changed, this, &MainWindow::save_soon);
    }
    for (const auto& [name, view] : views_) {
        connect(view, &widgets::View::state_changed, this, [this] {
            if (history_) history_->note();
            save_soon();
        });
    }
}

void MainWindow::build_status() {
    model_status_ = new QLabel(this);
    training_status_ = new QLabel(this);
    training_status_->setObjectName(QStringLiteral("status_training"));
    compute_status_ = new QLabel(this);
    memory_status_ = new QLabel(this);
    model_status_->setObjectName(QStringLiteral("status_model"));
    memory_status_->setObjectName(QStringLiteral("status_memory"));
    for (QLabel* label : {training_status_, model_status_, compute_status_, memory_status_})
        statusBar()->addPermanentWidget(label);
    const int threads = engine_.threads();
    compute_status_->setText(threads == 1 ? tr("CPU, 1 thread") : tr("CPU, %1 threads").arg(threads));
    connect(&watchdog_, &Watchdog::memory_read, this, [this](double bytes) {
        memory_status_->setText(
            tr("memory %1")
                .arg(QLocale::c().formattedDataSize(static_cast<qint64>(bytes), 1, QLocale::DataSizeSIFormat)));
    });
    connect(&watchdog_, &Watchdog::stalled, this, [this](const Stall& stall) {
        log_->note(tr("The window did not answer for %1 ms; for %2 ms of that others had the processors")
                       .arg(qRound(stall.seconds * 1000))
                       .arg(qRound(stall.queued * 1000)));
    });
}

void MainWindow::connect_engine() {
    desk_.set_tensors(&tensors_);
    connect(&engine_, &Engine::models_changed, this, [this] {
        text_->set_models(engine_.models());
        tree_->set_models(engine_.models());
        save_soon();
        give_spelling();
        update_actions();
    });
    connect(&engine_, &Engine::model_opened, this, [this](int id) {
        bool back = false;
        for (const auto& card : engine_.models()) {
            if (card.id != id) continue;
            tell(card.tensors_only ? tr("Opened %1. %2").arg(card.name, card.note)
                                   : tr("Opened %1. Ctrl+Enter runs the text").arg(card.name));
            back = brought_back(card.path);
            remember({card.path,
                      card.name,
                      card.tensors_only ? tr("tensors only") : tr("%1, %2 layers").arg(card.family).arg(card.layers),
                      QStringLiteral("model"),
                      {}});
        }
        if (!back)
            show_model(id);
        else if (restoring_ && !touched_)
            text_->choose_model(id);
        if (!waiting_snapshot_.isEmpty()) run_snapshot(id);
        if (waiting_item_) run_item(id);
        if (waiting_wish_) {
            const widgets::RunWish wish = *waiting_wish_;
            waiting_wish_.reset();
            run_again(wish);
        }
        for (const auto& card : engine_.models())
            if (card.id == id) settled(QString(card.path));
    });
    connect(&engine_, &Engine::model_failed, this, [this](const QString& path, const QString& message) {
        waiting_wish_.reset();
        waiting_item_.reset();
        waiting_snapshot_.clear();
        problem(message);
        settled(path);
    });
    connect(&engine_, &Engine::rate_measured, this, &MainWindow::keep_rate);
    connect(&engine_, &Engine::previewed, text_, &widgets::TextPanel::show_preview);
    connect(&engine_, &Engine::progressed, text_, &widgets::TextPanel::show_progress);
    connect(&engine_, &Engine::run_began, this, &MainWindow::began);
    connect(&engine_, &Engine::run_ended, this, &MainWindow::ended);
    connect(&engine_, &Engine::site_done, this, [this](qint64 sequence, qint64 site) {
        if (widgets::Study* study = desk_.study(running_study_))
            study->tell_site_done(sequence, site);
        else
            early_sites_.emplace_back(sequence, site);
    });
    connect(&engine_, &Engine::loss_done, this, [this](qint64 sequence) {
        if (widgets::Study* study = desk_.study(running_study_)) study->tell_loss_done(sequence);
    });
}

void MainWindow::connect_desk() {
    connect(&opener_, &Opener::opened, this, &MainWindow::opened_study);
    connect(&opener_, &Opener::was_open, this, [this](const QString& path, widgets::Study* study) {
        brought_back(path) ? remember(*study) : show_study(study);
        settled(path);
    });
    connect(&opener_, &Opener::failed, this, [this](const QString& path, const QString& message) {
        if (path == run_file_) run_file_.clear();
        problem(message);
        settled(path);
    });
    connect(&desk_, &widgets::Desk::studies_changed, this, [this] {
        if (page() != Page::training) show_page(desk_.studies().empty() ? Page::start : Page::analysis);
        give_spelling();
        update_actions();
    });
    connect(&desk_, &widgets::Desk::selection_changed, this, &MainWindow::update_actions);
    connect(&desk_, &widgets::Desk::changed, this, [this] {
        if (history_) history_->note();
        save_soon();
    });
    connect(&desk_.head_sets(), &widgets::HeadSetStore::changed, this, &MainWindow::save_soon);
    connect(&desk_, &widgets::Desk::told, this, &MainWindow::tell);
    connect(&desk_, &widgets::Desk::failed, this, &MainWindow::problem);
    connect(&desk_, &widgets::Desk::view_wanted, this, [this](const QString& name) { show_view(name); });
    connect(&desk_, &widgets::Desk::export_wanted, this, &MainWindow::export_figure);
    connect(&desk_, &widgets::Desk::copy_wanted, this,
            [this](const widgets::FigureWish& wish, const QString& format) { export_dialog()->copy(wish, format); });
    connect(&desk_, &widgets::Desk::run_wanted, this, &MainWindow::run_again);
}

void MainWindow::apply_theme() {
    // Qt 6.4 does not tell the system's scheme: its palette does.
    static const bool system_is_dark = QApplication::palette().color(QPalette::Window).lightness() < 128;
    const bool dark = theme_ == QLatin1String("dark") || (theme_ == QLatin1String("system") && system_is_dark);
    desk_.set_dark(dark);
    qApp->setPalette(widgets::make_palette(desk_.theme()));
    text_->set_theme(desk_.theme());
    show_recent();
}

int MainWindow::problems() const {
    return log_->problems();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/main_window.h"

#include <QApplication>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QGuiApplication>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QStatusBar>
#include <algorithm>

#include "widgets/panels/log_panel.h"

namespace headscope::app {
namespace {

constexpr int kLeft = 300, kNarrowLeft = 210;  ///< pixels, of the panels at the left edge
constexpr int kLogHeight = 110;
constexpr QSize kUsual(1280, 720), kLargest(1920, 1200);
constexpr const char* kFloatingGroup = "QDockWidgetGroupWindow";  ///< Qt's, of docks that float together

bool can_take(const QMimeData& data) {
    return data.hasUrls() || data.hasText();
}

QDockWidget* make_dock(QMainWindow* window, const char* name, const QString& title, QWidget* content) {
    auto* dock = new QDockWidget(title, window);
    dock->setObjectName(QLatin1String(name));
    dock->setWidget(content);
    dock->setAcceptDrops(true);  // for when it floats
    return dock;
}

}  // namespace

MainWindow::MainWindow(const Options& options)
    : context_(this, options.program, options.threads),
      pages_(context_),
      figures_(context_, pages_),
      tasks_(context_),
      help_(context_, pages_),
      analysis_(context_, pages_),
      files_(context_, pages_, analysis_),
      runs_(context_, pages_, files_, analysis_),
      evaluations_(context_, pages_, files_),
      asks_(context_, pages_, files_),
      session_(context_, {pages_, analysis_, files_, runs_, evaluations_, asks_},
               {[this] { return layout(); }, [this](const QJsonObject& stored) { restore_layout(stored); }}),
      watchdog_(options.watch),
      status_(statusBar(), context_.engine.threads()) {
    setObjectName(QStringLiteral("main_window"));
    setWindowTitle(QStringLiteral("Headscope"));
    setAcceptDrops(true);
    setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
    take_first_size();
    qApp->installEventFilter(this);
    build_docks();
    build_actions();
    build_menus();
    connect_status();
    connect(&pages_, &PagesController::training_comes, this, &MainWindow::share_left);
    connect(&tasks_, &TasksController::open_wanted, &files_, &FilesController::open);
    connect(&files_, &FilesController::text_found, this, &MainWindow::take_text);
    Q_EMIT context_.updated();
    session_.begin(options.restore, options.paths);
}

MainWindow::~MainWindow() {
    context_.blockSignals(true);  // controllers and panels go one after the other
    let_go();
    context_.desk.writer().finish();  // EndGuard ends the process if its disk does not answer
}

void MainWindow::build_docks() {
    setCentralWidget(pages_.widget());
    log_ = new widgets::LogPanel(this);
    tree_dock_ = make_dock(this, "dock_project", tr("Project"), context_.tree);
    text_dock_ = make_dock(this, "dock_text", tr("Text"), context_.text);
    log_dock_ = make_dock(this, "dock_log", tr("Log"), log_);
    addDockWidget(Qt::LeftDockWidgetArea, tree_dock_);
    addDockWidget(Qt::LeftDockWidgetArea, text_dock_);
    addDockWidget(Qt::BottomDockWidgetArea, log_dock_);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    log_dock_->hide();
    resizeDocks({tree_dock_, text_dock_}, {150, 500}, Qt::Vertical);
    resizeDocks({tree_dock_}, {left_.width}, Qt::Horizontal);
    connect(context_.tree, &widgets::ProjectTree::text_chosen, this, [this](int row) {
        text_dock_->show();
        context_.text->choose_source(row);
    });
}

void MainWindow::connect_status() {
    connect(&context_, &Context::updated, this, &MainWindow::show_status);
    connect(&context_, &Context::reported, this, [this](const QString& text) {
        log_->note(text);
        status_.show(text, 8000);
    });
    connect(&context_, &Context::problem_found, this, &MainWindow::show_problem);
    connect(log_, &widgets::LogPanel::problem_noted, this, [this](const QString& text) { status_.show(text, 12000); });
    connect(&watchdog_, &Watchdog::memory_read, this, [this](double bytes) { status_.set_memory(bytes); });
    connect(&watchdog_, &Watchdog::stalled, this, [this](const Stall& stall) {
        log_->note(tr("The window did not answer for %1 ms; for %2 ms of that others had the processors")
                       .arg(qRound(stall.seconds * 1000))
                       .arg(qRound(stall.queued * 1000)));
    });
}

void MainWindow::show_status() {
    const widgets::Study* study = context_.desk.current();
    status_.set_model(study ? study->model_name() : QString());
    setWindowTitle(study ? tr("%1 – Headscope").arg(widgets::study_labels({study}).front())
                         : QStringLiteral("Headscope"));
    QString work = runs_.status();
    if (work.isEmpty()) work = evaluations_.status();
    status_.set_work(work.isEmpty() ? tasks_.status() : work);
}

int MainWindow::problems() const {
    return log_->problems();
}

void MainWindow::show_problem(const QString& text) {
    log_->problem(text);
    if (!log_dock_->isHidden()) return;
    log_dock_->show();
    resizeDocks({log_dock_}, {kLogHeight}, Qt::Vertical);
}

/// Most of the screen; where that is small, all of it.
void MainWindow::take_first_size() {
    const QScreen* screen = QGuiApplication::primaryScreen();
    resize(kUsual);
    if (!screen || QGuiApplication::platformName() == QLatin1String("offscreen")) return;
    const QSize room = screen->availableGeometry().size();
    if (room.width() < kUsual.width() * 9 / 8 || room.height() < kUsual.height() * 9 / 8)
        setWindowState(windowState() | Qt::WindowMaximized);
    else
        resize((room * 3 / 4).expandedTo(kUsual).boundedTo(kLargest));
}

/// Training reads no text of the text panel: its views get that room, and the panel is back with the others.
void MainWindow::share_left(bool training) {
    if (training) {
        left_.text_wanted = !text_dock_->isHidden();
        if (!tree_dock_->isHidden()) left_.width = tree_dock_->width();
        text_dock_->hide();
    } else if (left_.text_wanted) {
        text_dock_->show();
    }
    resizeDocks({tree_dock_}, {training ? kNarrowLeft : std::max(kLeft, left_.width)}, Qt::Horizontal);
}

QJsonObject MainWindow::layout() const {
    QJsonObject layout = pages_.state();
    layout["geometry"] = QString::fromLatin1(saveGeometry().toBase64());
    layout["docks"] = QString::fromLatin1(saveState().toBase64());
    layout["text_panel"] = pages_.page() == PagesController::Page::training ? left_.text_wanted : !text_dock_->isHidden();
    return layout;
}

void MainWindow::restore_layout(const QJsonObject& layout) {
    const auto bytes = [&](const char* name) {
        return QByteArray::fromBase64(layout[QLatin1String(name)].toString().toLatin1());
    };
    if (const QByteArray geometry = bytes("geometry"); !geometry.isEmpty()) restoreGeometry(geometry);
    restoreState(bytes("docks"));
    text_dock_->setVisible(layout["text_panel"].toBool(!text_dock_->isHidden()));
    pages_.restore(layout);
}

/// A text for the analyses, or for the job to train on where that is in front.
void MainWindow::take_text(const QString& path) {
    if (pages_.front_name() == QLatin1String("train")) return runs_.train_on(path);
    context_.text->add_file(path);
    text_dock_->show();
}

/// Files are the window's, wherever on it they are dropped: a field to type into would take their address for a text.
/// Docks that float are windows of their own, up to which Qt looks for one that takes them.
bool MainWindow::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::Show && object->inherits(kFloatingGroup))
        static_cast<QWidget*>(object)->setAcceptDrops(true);
    const bool drop =
        event->type() == QEvent::DragEnter || event->type() == QEvent::DragMove || event->type() == QEvent::Drop;
    const auto* widget = drop && object != this ? qobject_cast<const QWidget*>(object) : nullptr;
    const QWidget* top = widget ? widget->window() : nullptr;
    const bool floats = top && (qobject_cast<const QDockWidget*>(top) || top->inherits(kFloatingGroup));
    if (top != this && !floats) return QMainWindow::eventFilter(object, event);
    auto* dropped = static_cast<QDropEvent*>(event);
    if (widget == top) {  // itself is not seen here: a dock that floats
        if (!can_take(*dropped->mimeData())) return QMainWindow::eventFilter(object, event);
        if (event->type() == QEvent::Drop)
            dropEvent(dropped);
        else
            dropped->acceptProposedAction();
        return true;
    }
    if (!dropped->mimeData()->hasUrls()) return QMainWindow::eventFilter(object, event);
    event->ignore();
    return true;
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (can_take(*event->mimeData())) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    if (event->mimeData()->hasUrls()) {
        for (const QUrl& url : event->mimeData()->urls()) {
            const QString path = url.toLocalFile();
            if (path.isEmpty()) {
                context_.problem(tr("[%1] expected a file of this machine").arg(url.toString()));
                continue;
            }
            files_.open(path);
        }
    } else {
        context_.text->add_text(event->mimeData()->text());
    }
    event->acceptProposedAction();
}

bool MainWindow::ask_about_work() {
    if (closing_) return true;
    const QStringList names = runs_.at_work();
    QStringList words;
    if (const QString running = analysis_.work(); !running.isEmpty()) words << running;
    if (evaluations_.running()) words << tr("An evaluation is running. It stops, and its results are lost.");
    if (tasks_.running()) words << tr("%1 is running. It stops.").arg(tasks_.title());
    if (words.isEmpty() && names.isEmpty()) return true;
    if (!names.isEmpty())
        words << names.join(QLatin1Char('\n')) +
                     tr("\nA training process does not need the window: it can be watched again later.");
    auto* box = new QMessageBox(QMessageBox::Question, names.isEmpty() ? tr("Quit?") : tr("Training goes on"),
                                words.join(QStringLiteral("\n\n")), QMessageBox::NoButton, this);
    box->setObjectName(QStringLiteral("close_question"));
    box->setAttribute(Qt::WA_DeleteOnClose);
    auto* leave =
        box->addButton(names.isEmpty() ? tr("Stop it and quit") : tr("Leave it running"), QMessageBox::AcceptRole);
    leave->setObjectName(names.isEmpty() ? QStringLiteral("close_quit") : QStringLiteral("close_leave"));
    box->addButton(QMessageBox::Cancel);
    box->setDefaultButton(leave);
    connect(leave, &QAbstractButton::clicked, this, &MainWindow::end);
    if (!names.isEmpty()) {
        auto* stop = box->addButton(tr("Stop it"), QMessageBox::DestructiveRole);
        stop->setObjectName(QStringLiteral("close_stop"));
        connect(stop, &QAbstractButton::clicked, this, [this] {
            runs_.stop_all();
            end();
        });
    }
    box->open();
    return false;
}

void MainWindow::end() {
    closing_ = true;
    close();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (!ask_about_work()) {
        event->ignore();
        return;
    }
    runs_.service().stop_calibrating();
    session_.close();
    context_.engine.stop();
    event->accept();
    // Not left to the last window: an open dialog would keep the process, with nothing to end it by.
    QMetaObject::invokeMethod(
        qApp, [] { QCoreApplication::exit(0); }, Qt::QueuedConnection);
}

}  // namespace headscope::app

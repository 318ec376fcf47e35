// SPDX-License-Identifier: GPL-3.0-or-later
// Which page and view is in front, what is told below them, and what is dropped onto them.
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QGuiApplication>
#include <QLabel>
#include <QMimeData>
#include <QScreen>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "app/window/main_window.h"
#include "core/training/job/toml_document.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/log_panel.h"
#include "widgets/panels/selection_bar.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {
namespace {

constexpr int kLeft = 300, kNarrowLeft = 210;  ///< pixels, of the panels at the left edge
constexpr int kLogHeight = 110;
constexpr int kLeastMessage = 200;  ///< pixels
constexpr QSize kUsual(1280, 720), kLargest(1920, 1200);
constexpr const char* kFloatingGroup = "QDockWidgetGroupWindow";  ///< Qt's, of docks that float together

bool can_take(const QMimeData& data) {
    return data.hasUrls() || data.hasText();
}

/// Meant for what is shown; Alt alone may be on its way to another window.
bool is_typed(const QEvent& event) {
    if (event.type() != QEvent::KeyPress && event.type() != QEvent::ShortcutOverride) return false;
    const int key = static_cast<const QKeyEvent&>(event).key();
    return key < Qt::Key_Shift || key > Qt::Key_Alt;
}

bool is_pointed(QEvent::Type type) {
    return type == QEvent::MouseButtonPress || type == QEvent::MouseButtonRelease ||
           type == QEvent::MouseButtonDblClick || type == QEvent::Wheel;
}

}  // namespace

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

void MainWindow::show_page(Page page) {
    const bool training = page == Page::training;
    if (training != (this->page() == Page::training)) share_left(training);
    QWidget* shown = start_;
    if (page != Page::start) shown = training ? training_area_ : area_;
    pages_->setCurrentWidget(shown);
    bar_->setVisible(page == Page::analysis);
    analysis_switch_->setChecked(!training);
    training_switch_->setChecked(training);
    update_actions();
}

/// Training reads no text of the text panel: its views get that room, and the panel is back with the others.
void MainWindow::share_left(bool training) {
    if (training) {
        text_wanted_ = !text_dock_->isHidden();
        if (!tree_dock_->isHidden()) left_width_ = tree_dock_->width();
        text_dock_->hide();
    } else if (text_wanted_) {
        text_dock_->show();
    }
    resizeDocks({tree_dock_}, {training ? kNarrowLeft : std::max(kLeft, left_width_)}, Qt::Horizontal);
}

MainWindow::Page MainWindow::page() const {
    if (pages_->currentWidget() == training_area_) return Page::training;
    return pages_->currentWidget() == area_ ? Page::analysis : Page::start;
}

void MainWindow::show_view(const QString& name, bool empty_too) {
    const bool training = training_area_->views().contains(name);
    if (!training && !area_->views().contains(name)) return;
    if (training || empty_too || !desk_.studies().empty()) show_page(training ? Page::training : Page::analysis);
    (training ? training_area_ : area_)->show_view(name);
}

void MainWindow::show_tensors(int model) {
    tensors_.choose(model);
    show_view(QStringLiteral("tensors"), true);
}

widgets::View* MainWindow::front_view() const {
    if (page() == Page::start) return nullptr;
    return (page() == Page::training ? training_area_ : area_)->front_view();
}

QString MainWindow::front_name() const {
    if (page() == Page::start) return {};
    return (page() == Page::training ? training_area_ : area_)->front();
}

void MainWindow::tell(const QString& text) {
    log_->note(text);
    show_message(text, 8000);
}

/// As much of it as there is room for beside what always stands in the status bar.
void MainWindow::show_message(const QString& text, int milliseconds) {
    int room = statusBar()->width() - 40;
    for (const QLabel* label : {training_status_, model_status_, compute_status_, memory_status_})
        room -= label->sizeHint().width() + 8;
    statusBar()->showMessage(fontMetrics().elidedText(text, Qt::ElideMiddle, std::max(kLeastMessage, room)),
                             milliseconds);
}

void MainWindow::problem(const QString& text) {
    log_->problem(text);
    if (!log_dock_->isHidden()) return;
    log_dock_->show();
    resizeDocks({log_dock_}, {kLogHeight}, Qt::Vertical);
}

/// A text for the analyses, or, where the job is in front, for it to train on.
void MainWindow::take_text(const QString& path) {
    if (front_name() != QLatin1String("train")) {
        text_->add_file(path);
        text_dock_->show();
        return;
    }
    widgets::JobDraft& draft = desk_.runs().draft();
    nlohmann::json texts = draft.job().data.text;
    texts.push_back(path.toStdString());
    if (const auto refused = draft.set("data.text", training::toml_value(texts)))
        problem(refused->text);
    else
        tell(tr("The job trains on %1").arg(path));
}

/// Files are the window's, wherever on it they are dropped: a field to type into would take their address for a text.
/// Docks that float are windows of their own, up to which Qt looks for one that takes them.
bool MainWindow::eventFilter(QObject* object, QEvent* event) {
    if (is_typed(*event)) touched_ = true;
    if (is_pointed(event->type())) see_deed();
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
                problem(tr("[%1] expected a file of this machine").arg(url.toString()));
                continue;
            }
            open_path(path);
        }
    } else {
        text_->add_text(event->mimeData()->text());
    }
    event->acceptProposedAction();
}

}  // namespace headscope::app

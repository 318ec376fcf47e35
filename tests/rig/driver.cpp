// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/rig/driver.h"

#include <unistd.h>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPlainTextEdit>
#include <cstdio>

#include "app/window/main_window.h"
#include "tests/rig/layout_faults.h"
#include "tests/rig/synthetic.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/frame/view_area.h"
#include "widgets/idle_queue.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/views/overview/overview_grid.h"

namespace headscope::app {
namespace {

QString text_of(const QWidget* widget) {
    if (const auto* label = qobject_cast<const QLabel*>(widget)) return label->text();
    if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) return button->text();
    if (const auto* line = qobject_cast<const QLineEdit*>(widget)) return line->text();
    if (const auto* box = qobject_cast<const QComboBox*>(widget)) return box->currentText();
    if (const auto* edit = qobject_cast<const QPlainTextEdit*>(widget)) return edit->toPlainText();
    if (const auto* list = qobject_cast<const QListWidget*>(widget)) {
        QStringList lines;
        for (int row = 0; row < list->count(); ++row) lines << list->item(row)->text();
        return lines.join(QLatin1Char('\n'));
    }
    return widget->windowTitle();
}

QJsonValue optional(const std::optional<std::int64_t>& value) {
    return value ? QJsonValue(static_cast<double>(*value)) : QJsonValue();
}

/// Text of the current entry of an open menu or list; null: none is open.
QJsonValue popup_entry() {
    const QWidget* popup = QApplication::activePopupWidget();
    if (!popup) return {};
    if (const auto* menu = qobject_cast<const QMenu*>(popup))
        return menu->activeAction() ? menu->activeAction()->text() : QString();
    const auto* list = popup->findChild<QAbstractItemView*>();
    return list ? list->currentIndex().data().toString() : QString();
}

}  // namespace

Driver::Driver(MainWindow* window)
    : QObject(window), window_(window), input_(STDIN_FILENO, QSocketNotifier::Read, this) {
    connect(&input_, &QSocketNotifier::activated, this, &Driver::read);
}

void Driver::read() {
    char block[4096];
    const ssize_t size = ::read(STDIN_FILENO, block, sizeof block);
    if (size <= 0) {
        input_.setEnabled(false);
        return;
    }
    waiting_.append(block, static_cast<qsizetype>(size));
    for (qsizetype end = waiting_.indexOf('\n'); end >= 0; end = waiting_.indexOf('\n')) {
        const QJsonObject request = QJsonDocument::fromJson(waiting_.left(end)).object();
        waiting_.remove(0, end + 1);
        const QByteArray line = QJsonDocument(answer(request)).toJson(QJsonDocument::Compact) + '\n';
        std::fwrite(line.constData(), 1, static_cast<std::size_t>(line.size()), stdout);
        std::fflush(stdout);
    }
}

QJsonObject Driver::answer(const QJsonObject& request) {
    if (request.contains("find")) return find(request["find"].toString());
    if (request.contains("shot")) return {{"done", window_->grab().save(request["shot"].toString())}};
    if (request.contains("actions")) return actions();
    if (request.contains("action")) {
        for (QAction* action : window_->all_actions() + window_->pages().view_commands()) {
            if (action->objectName() != request["action"].toString() || !action->isEnabled()) continue;
            action->trigger();
            return {{"done", true}};
        }
        return {{"done", false}};
    }
    if (request.contains("click")) {
        QWidget* widget = find_widget(request["click"].toString());
        if (!widget || !widget->isVisible() || !widget->isEnabled()) return {{"done", false}};
        const QJsonArray at = request["at"].toArray();
        QPoint place = at.size() == 2 ? QPoint(at[0].toInt(), at[1].toInt()) : widget->rect().center();
        widget = widget_under(widget, place);
        send_click(widget, place, Qt::LeftButton, request["twice"].toBool());
        return {{"done", true}};
    }
    if (request.contains("resize")) {
        const QJsonArray size = request["resize"].toArray();
        window_->setWindowState(Qt::WindowNoState);
        window_->resize(size[0].toInt(), size[1].toInt());
        QCoreApplication::sendPostedEvents();
        return {{"size", QJsonArray{window_->width(), window_->height()}}};
    }
    if (request.contains("faults")) {
        // The window, or a dialog of that name.
        const QJsonArray most = request["most"].toArray();
        QWidget* top = request["faults"].toString().isEmpty() ? window_ : find_widget(request["faults"].toString());
        if (!top) return {{"faults", QJsonArray{QStringLiteral("there is no such widget")}}};
        return {{"faults", QJsonArray::fromStringList(
                               tests::layout_faults(top->window(), QSize(most[0].toInt(), most[1].toInt())))}};
    }
    if (request.contains("wheel")) {
        int walked = 0;
        const QStringList faults = tests::wheel_faults(walked);
        return {{"faults", QJsonArray::fromStringList(faults)}, {"walked", walked}};
    }
    if (request.contains("cell")) {
        const auto* grid = qobject_cast<widgets::HeadGrid*>(find_widget(QStringLiteral("heat_map")));
        const QJsonArray at = request["cell"].toArray();
        const QRect rect = grid ? grid->cell(at[0].toInt(), at[1].toInt()) : QRect();
        return {{"rect", QJsonArray{rect.x(), rect.y(), rect.width(), rect.height()}}};
    }
    if (request.contains("menu")) {
        auto* menu = qobject_cast<QMenu*>(find_widget(request["menu"].toString()));
        if (!menu) return {{"done", false}};
        Q_EMIT menu->aboutToShow();
        for (QAction* entry : menu->actions()) {
            if (entry->objectName() != request["entry"].toString() || !entry->isEnabled()) continue;
            entry->trigger();
            return {{"done", true}};
        }
        return {{"done", false}};
    }
    if (request.contains("tabs")) {
        const widgets::ViewArea* area = nullptr;
        for (const auto* one : window_->findChildren<widgets::ViewArea*>())
            if (one->isVisible()) area = one;
        if (!area) return {{"tabs", QJsonArray()}};
        return {{"tabs", QJsonArray::fromStringList(area->on_tabs())},
                {"shown", QJsonArray{area->shown().first, area->shown().second}}};
    }
    if (request.contains("drop")) {
        QWidget* widget = find_widget(request["on"].toString());
        return {{"done", widget && send_drop(widget, request["drop"].toString())}};
    }
    if (request.contains("key")) {
        send_keys(QKeySequence(request["key"].toString()));
        return {{"done", true}};
    }
    if (request.contains("type")) {
        send_text(request["type"].toString());
        return {{"done", true}};
    }
    return state();
}

QJsonObject Driver::find(const QString& name) const {
    // All fields in every answer: who waits for a widget asks for it before it was made.
    const QWidget* widget = find_widget(name);
    const QPoint corner = widget ? widget->mapToGlobal(QPoint(0, 0)) : QPoint(0, 0);
    return {{"found", widget != nullptr},
            {"visible", widget && is_seen(widget)},
            {"enabled", widget && widget->isEnabled()},
            {"focus", widget && widget->hasFocus()},
            {"window", widget ? widget->window()->objectName() : QString()},
            {"rect", QJsonArray{corner.x(), corner.y(), widget ? widget->width() : 0, widget ? widget->height() : 0}},
            {"text", widget ? text_of(widget) : QString()}};
}

QJsonObject Driver::actions() const {
    QJsonArray list;
    for (const QAction* action : window_->all_actions() + window_->pages().view_commands())
        list.append(QJsonObject{{"name", action->objectName()},
                                {"text", QString(action->text()).remove(QLatin1Char('&'))},
                                {"keys", action->shortcut().toString(QKeySequence::PortableText)},
                                {"enabled", action->isEnabled()}});
    return {{"actions", list}};
}

QJsonObject Driver::state() const {
    const widgets::Selection& selection = window_->desk().selection();
    QJsonArray studies;
    for (const widgets::Study* study : window_->desk().studies())
        studies.append(QJsonObject{{"id", study->id()},
                                   {"name", study->name()},
                                   {"path", QString::fromStdString(study->path().string())},
                                   {"complete", study->complete()},
                                   {"running", study->running()},
                                   {"done_sites", static_cast<double>(study->done_sites())}});
    QJsonArray runs;
    const widgets::RunShelf& shelf = window_->desk().runs();
    for (const widgets::Run& run : shelf.runs())
        runs.append(QJsonObject{{"name", run.name},
                                {"path", run.path},
                                {"status", QLatin1String(workspace::status_name(run.status()))},
                                {"step", static_cast<double>(run.record->last_step())},
                                {"snapshots", static_cast<double>(run.record->snapshots.size())},
                                {"probes", static_cast<double>(run.record->probes.size())},
                                {"waiting", static_cast<double>(run.waiting.size())}});
    QJsonArray asks;
    for (const widgets::OpenAsk& one : window_->desk().asks().all())
        asks.append(QJsonObject{{"name", one.name}, {"path", one.path}});
    QJsonArray evaluations;
    for (const widgets::OpenEvaluation& one : window_->desk().evaluations().all())
        evaluations.append(QJsonObject{{"name", one.name}, {"path", one.path}});
    return {{"study", selection.study},
            {"evaluations", evaluations},
            {"asks", asks},
            {"runs", runs},
            {"starting", shelf.starting()},
            {"sequence", optional(selection.sequence)},
            {"site", static_cast<double>(selection.site)},
            {"head", static_cast<double>(selection.head)},
            {"query", optional(selection.query)},
            {"key", optional(selection.key)},
            {"studies", studies},
            {"models", static_cast<int>(window_->engine().models().size())},
            {"running", window_->engine().running()},
            {"front", window_->pages().front_name()},
            {"problems", window_->problems()},
            {"stalls", window_->watchdog().stalls()},
            {"longest_stall", window_->watchdog().longest()},
            {"longest_own_stall", window_->watchdog().longest_own()},
            {"busy", !window_->desk().reader().idle() || !window_->desk().writer().idle() ||
                         !window_->desk().runs().worker().idle() || window_->desk().telling() ||
                         !widgets::IdleQueue::of_window().empty() || widgets::FigureView::any_waits()},
            {"popup", popup_entry()},
            {"dark", window_->desk().theme().dark}};
}

}  // namespace headscope::app

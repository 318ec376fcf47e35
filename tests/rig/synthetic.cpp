// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/rig/synthetic.h"

#include <QAction>
#include <QApplication>
#include <QDialog>
#include <QDropEvent>
#include <QKeyEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QPointer>
#include <QUrl>
#include <QWheelEvent>
#include <algorithm>

namespace headscope::app {
namespace {

void send_mouse(QWidget* widget, QEvent::Type type, const QPoint& place, Qt::MouseButton button,
                Qt::MouseButtons buttons) {
    QMouseEvent event(type, place, widget->mapToGlobal(place), button, buttons, Qt::NoModifier);
    QApplication::sendEvent(widget, &event);
}

QWidget* focused() {
    if (QWidget* popup = QApplication::activePopupWidget()) return popup->focusWidget() ? popup->focusWidget() : popup;
    if (QWidget* modal = QApplication::activeModalWidget()) return modal->focusWidget() ? modal->focusWidget() : modal;
    if (QWidget* widget = QApplication::focusWidget(); widget && widget->isVisible()) return widget;
    // Without a window manager no window becomes active when a dialog closes: then it is an open dialog, or the main
    // window.
    QWidget* window = QApplication::activeWindow();
    if (window && window->isVisible()) return window->focusWidget() ? window->focusWidget() : window;
    window = nullptr;
    for (QWidget* one : QApplication::topLevelWidgets()) {
        if (!one->isVisible()) continue;
        if (qobject_cast<QDialog*>(one) || (!window && one->objectName() == QLatin1String("main_window"))) window = one;
    }
    return window && window->focusWidget() ? window->focusWidget() : window;
}

/// An enabled action of the widget's window with these keys.
QAction* shortcut_of(const QWidget* widget, const QKeySequence& keys) {
    for (QAction* action : widget->window()->actions())
        if (action->isEnabled() && action->shortcut() == keys) return action;
    return nullptr;
}

}  // namespace

bool is_seen(const QWidget* widget) {
    if (!widget->isVisible()) return false;
    if (!widget->visibleRegion().isEmpty()) return true;
    const auto parts = widget->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly);
    return std::any_of(parts.begin(), parts.end(), is_seen);
}

QWidget* find_widget(const QString& name) {
    QWidget* hidden = nullptr;
    for (QWidget* widget : QApplication::allWidgets()) {
        if (widget->objectName() != name) continue;
        if (is_seen(widget)) return widget;
        if (!hidden || widget->isVisible()) hidden = widget;
    }
    return hidden;
}

QWidget* widget_under(QWidget* top, QPoint& place) {
    QWidget* child = top->childAt(place);
    if (!child) return top;
    place = child->mapFrom(top, place);
    return child;
}

void send_click(QWidget* widget, const QPoint& place, Qt::MouseButton button, bool twice) {
    const QPointer<QWidget> alive(widget);
    // As a real click: what takes no focus itself is a part of something that may.
    for (QWidget* one = widget; one; one = one->isWindow() ? nullptr : one->parentWidget()) {
        if (!one->isEnabled() || !(one->focusPolicy() & Qt::ClickFocus)) continue;
        one->setFocus(Qt::MouseFocusReason);
        break;
    }
    send_mouse(widget, QEvent::MouseMove, place, Qt::NoButton, Qt::NoButton);
    if (alive) send_mouse(widget, QEvent::MouseButtonPress, place, button, button);
    if (alive) send_mouse(widget, QEvent::MouseButtonRelease, place, button, Qt::NoButton);
    if (twice && alive) send_mouse(widget, QEvent::MouseButtonDblClick, place, button, button);
    if (twice && alive) send_mouse(widget, QEvent::MouseButtonRelease, place, button, Qt::NoButton);
    if (button == Qt::RightButton && alive) {
        QContextMenuEvent event(QContextMenuEvent::Mouse, place, widget->mapToGlobal(place));
        QApplication::sendEvent(widget, &event);
    }
}

void send_drag(QWidget* widget, const QPoint& from, const QPoint& to) {
    const QPointer<QWidget> alive(widget);
    send_mouse(widget, QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
    for (int step = 1; step <= 4 && alive; ++step)
        send_mouse(widget, QEvent::MouseMove, from + (to - from) * step / 4, Qt::NoButton, Qt::LeftButton);
    if (alive) send_mouse(widget, QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
}

void send_wheel(QWidget* widget, const QPoint& place, int steps) {
    QWheelEvent event(place, widget->mapToGlobal(place), QPoint(), QPoint(0, 120 * steps), Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(widget, &event);
}

bool send_drop(QWidget* widget, const QString& path) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(path)});
    const QPoint place = widget->rect().center();
    QDragEnterEvent enter(place, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(widget, &enter);
    if (!enter.isAccepted()) return false;
    QDropEvent drop(place, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(widget, &drop);
    return drop.isAccepted();
}

void send_keys(const QKeySequence& keys) {
    for (int i = 0; i < keys.count(); ++i) {
        QWidget* widget = focused();
        if (!widget) return;
        const QKeyCombination combination = keys[static_cast<uint>(i)];
        const Qt::Key key = combination.key();
        const bool plain = combination.keyboardModifiers() == Qt::NoModifier;
        const QString text = plain && key >= Qt::Key_Space && key <= Qt::Key_AsciiTilde
                                 ? QString(QChar(static_cast<ushort>(key))).toLower()
                             : plain && (key == Qt::Key_Return || key == Qt::Key_Enter) ? QStringLiteral("\r")
                                                                                        : QString();
        QKeyEvent wish(QEvent::ShortcutOverride, key, combination.keyboardModifiers(), text);
        wish.ignore();
        QApplication::sendEvent(widget, &wish);
        if (!wish.isAccepted()) {
            if (QAction* action = shortcut_of(widget, QKeySequence(combination))) {
                action->trigger();
                continue;
            }
        }
        const QPointer<QWidget> alive(widget);
        QKeyEvent press(QEvent::KeyPress, key, combination.keyboardModifiers(), text);
        QApplication::sendEvent(widget, &press);
        if (!alive) return;
        QKeyEvent release(QEvent::KeyRelease, key, combination.keyboardModifiers(), text);
        QApplication::sendEvent(widget, &release);
    }
}

void send_text(const QString& text) {
    for (const QChar letter : text) {
        QWidget* widget = focused();
        if (!widget) return;
        QKeyEvent press(QEvent::KeyPress, 0, Qt::NoModifier, QString(letter));
        QApplication::sendEvent(widget, &press);
    }
}

}  // namespace headscope::app

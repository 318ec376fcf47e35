// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QKeySequence>
#include <QPoint>
#include <QString>
#include <QWidget>

namespace headscope::app {

// Events as a person's hands make them, for platforms that have no mouse and no keyboard.

/// Some part of it is on the screen, its own or one of what lies in it: what is on another tab is only out of sight.
bool is_seen(const QWidget* widget);
/// The widget with that object name: one that is seen before others, of any window; null: none.
QWidget* find_widget(const QString& name);
/// The child of `top` under a point, which gets the events.
QWidget* widget_under(QWidget* top, QPoint& place);

void send_click(QWidget* widget, const QPoint& place, Qt::MouseButton button = Qt::LeftButton, bool twice = false);
void send_drag(QWidget* widget, const QPoint& from, const QPoint& to);
void send_wheel(QWidget* widget, const QPoint& place, int steps);
/// Drops a file onto a widget; false: no widget there takes it.
bool send_drop(QWidget* widget, const QString& path);
/// To the widget that has the focus, shortcuts of the window first.
void send_keys(const QKeySequence& keys);
void send_text(const QString& text);

}  // namespace headscope::app

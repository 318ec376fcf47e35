// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/wheel_filter.h"

#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QEvent>
#include <QScrollBar>
#include <QTabBar>

namespace headscope::widgets {

void WheelFilter::install(QCoreApplication* application) {
    if (application->findChild<WheelFilter*>(QString(), Qt::FindDirectChildrenOnly)) return;
    application->installEventFilter(new WheelFilter(application));
}

bool WheelFilter::guards(const QWidget& widget) {
    if (qobject_cast<const QScrollBar*>(&widget)) return false;
    return qobject_cast<const QComboBox*>(&widget) || qobject_cast<const QAbstractSpinBox*>(&widget) ||
           qobject_cast<const QAbstractSlider*>(&widget) || qobject_cast<const QTabBar*>(&widget);
}

bool WheelFilter::eventFilter(QObject* object, QEvent* event) {
    if (event->type() != QEvent::Wheel) return false;
    const auto* widget = qobject_cast<const QWidget*>(object);
    if (!widget || !guards(*widget)) return false;
    event->ignore();  // QApplication::notify() goes on to the parent
    return true;
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QCoreApplication;
class QWidget;

namespace headscope::widgets {

/// Keeps the wheel from changing what a control holds: combo boxes, spin boxes, sliders and tab bars pass it on to the
/// area that they lie in, with the focus and without it. Scroll bars, lists and plots have it as before.
class WheelFilter : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;
    /// One for all widgets of the application, which owns it. A second call changes nothing.
    static void install(QCoreApplication* application);
    /// True if the wheel would change the widget's value.
    static bool guards(const QWidget& widget);

    bool eventFilter(QObject* object, QEvent* event) override;
};

}  // namespace headscope::widgets

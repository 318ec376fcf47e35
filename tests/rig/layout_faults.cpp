// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/rig/layout_faults.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractScrollArea>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QDateTimeEdit>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSpinBox>
#include <QTabBar>
#include <QTableView>
#include <QTextEdit>
#include <QToolButton>
#include <QTreeView>
#include <QVariant>
#include <QWheelEvent>

namespace headscope::tests {
namespace {

constexpr int kSlack = 1;  ///< pixels that styles round away

QString name_of(const QWidget* widget) {
    QString name = QLatin1String(widget->metaObject()->className());
    if (!widget->objectName().isEmpty()) name += QLatin1Char(' ') + widget->objectName();
    for (const QWidget* up = widget->parentWidget(); up && !up->isWindow(); up = up->parentWidget()) {
        if (up->objectName().isEmpty() || up->objectName().startsWith(QLatin1String("qt_"))) continue;
        return name + QStringLiteral(" in ") + up->objectName();
    }
    return name;
}

QString text_of(const QSize& size) {
    return QStringLiteral("%1 x %2").arg(size.width()).arg(size.height());
}

/// Lists of one column, and texts that are not broken into lines.
bool scrolls_by_nature(const QAbstractScrollArea* area) {
    return qobject_cast<const QListView*>(area) || qobject_cast<const QPlainTextEdit*>(area) ||
           qobject_cast<const QTextEdit*>(area);
}

/// Something that people read or press, not a frame around such things.
bool is_control(const QWidget* widget) {
    return qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QComboBox*>(widget) ||
           qobject_cast<const QAbstractSpinBox*>(widget) || qobject_cast<const QLineEdit*>(widget) ||
           qobject_cast<const QLabel*>(widget) || qobject_cast<const QTabBar*>(widget) ||
           qobject_cast<const QAbstractSlider*>(widget);
}

/// Parts of other controls are theirs to place: the line of a spin box, buttons of a tab bar.
bool is_part(const QWidget* widget) {
    const QWidget* parent = widget->parentWidget();
    return qobject_cast<const QScrollBar*>(widget) || qobject_cast<const QComboBox*>(parent) ||
           qobject_cast<const QAbstractSpinBox*>(parent) || qobject_cast<const QLineEdit*>(parent) ||
           qobject_cast<const QTabBar*>(parent);
}

/// In a view of items, a row or column of which may be out of sight.
bool in_items(const QWidget* widget, const QWidget* top) {
    for (const QWidget* up = widget->parentWidget(); up && up != top; up = up->parentWidget())
        if (qobject_cast<const QAbstractItemView*>(up)) return true;
    return false;
}

void find_cut(const QWidget* widget, const QWidget* top, QStringList& faults) {
    // Up to the content of a scroll area, which may be higher than what is in sight of it, but not wider.
    QRect rect(QPoint(0, 0), widget->size());
    for (const QWidget* at = widget; at != top; at = at->parentWidget()) {
        rect.translate(at->pos());
        const QWidget* parent = at->parentWidget();
        if (!parent) return;
        const auto* area = qobject_cast<const QAbstractScrollArea*>(parent->parentWidget());
        const bool content = area && area->viewport() == parent;
        const QRect room = parent->rect().adjusted(-kSlack, -kSlack, kSlack, kSlack);
        const bool inside = content ? rect.left() >= room.left() && rect.right() <= room.right() : room.contains(rect);
        if (!inside) {
            faults << QStringLiteral("%1 is cut off: %2 at %3, %4 in %5")
                          .arg(name_of(widget), text_of(rect.size()))
                          .arg(rect.x())
                          .arg(rect.y())
                          .arg(text_of(parent->size()));
            return;
        }
        if (content) return;
    }
}

void find_narrow(const QWidget* widget, QStringList& faults) {
    const auto* label = qobject_cast<const QLabel*>(widget);
    if (label && (label->wordWrap() || label->text().isEmpty() || label->textFormat() == Qt::RichText)) return;
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    if (button && button->text().isEmpty()) return;
    if (qobject_cast<const QTabBar*>(widget)) return;
    const QSize least = widget->minimumSizeHint().boundedTo(widget->maximumSize());
    if (widget->width() + kSlack >= least.width() && widget->height() + kSlack >= least.height()) return;
    faults << QStringLiteral("%1 is clipped: it has %2 and needs %3")
                  .arg(name_of(widget), text_of(widget->size()), text_of(least));
}

void find_elided(const QTabBar* bar, QStringList& faults) {
    for (const QToolButton* button : bar->findChildren<QToolButton*>())
        if (button->isVisible()) faults << QStringLiteral("%1 has more tabs than room").arg(name_of(bar));
    for (int tab = 0; tab < bar->count(); ++tab) {
        if (!bar->isTabVisible(tab)) continue;
        const int text = bar->fontMetrics().size(Qt::TextShowMnemonic, bar->tabText(tab)).width();
        if (text + 8 > bar->tabRect(tab).width())
            faults << QStringLiteral("the tab %1 is elided").arg(bar->tabText(tab));
    }
}

QVariant value_of(const QWidget* widget) {
    if (const auto* combo = qobject_cast<const QComboBox*>(widget))
        return QVariantList{combo->currentIndex(), combo->currentText()};
    if (const auto* box = qobject_cast<const QSpinBox*>(widget)) return box->value();
    if (const auto* box = qobject_cast<const QDoubleSpinBox*>(widget)) return box->value();
    if (const auto* box = qobject_cast<const QDateTimeEdit*>(widget)) return box->dateTime();
    if (const auto* slider = qobject_cast<const QAbstractSlider*>(widget)) return slider->value();
    if (const auto* bar = qobject_cast<const QTabBar*>(widget)) return bar->currentIndex();
    return {};
}

void turn_wheel(QWidget* widget, int steps) {
    const QPointF place = QRectF(widget->rect()).center();
    QWheelEvent event(place, widget->mapToGlobal(place), {}, {0, 120 * steps}, Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(widget, &event);
}

}  // namespace

QStringList layout_faults(QWidget* top, const QSize& most) {
    QStringList faults;
    const QSize least = top->minimumSizeHint().expandedTo(top->minimumSize());
    if (least.width() > most.width() || least.height() > most.height())
        faults << QStringLiteral("%1 needs %2, more than %3").arg(name_of(top), text_of(least), text_of(most));
    for (QWidget* widget : top->findChildren<QWidget*>()) {
        if (!widget->isVisible() || widget->window() != top->window()) continue;
        if (const auto* area = qobject_cast<const QAbstractScrollArea*>(widget); area && !scrolls_by_nature(area)) {
            const QScrollBar* bar = area->horizontalScrollBar();
            // Tables hide the bar and must not need it.
            const bool table = qobject_cast<const QTableView*>(area) || qobject_cast<const QTreeView*>(area);
            if ((bar->isVisible() || table) && bar->maximum() > bar->minimum())
                faults << QStringLiteral("%1 has a horizontal scroll bar").arg(name_of(widget));
        }
        if (const auto* bar = qobject_cast<const QTabBar*>(widget)) find_elided(bar, faults);
        if (!is_control(widget) || is_part(widget) || in_items(widget, top)) continue;
        find_cut(widget, top, faults);
        find_narrow(widget, faults);
    }
    return faults;
}

QStringList wheel_faults(int& walked) {
    QStringList faults;
    walked = 0;
    for (QWidget* widget : QApplication::allWidgets()) {
        const QVariant before = value_of(widget);
        if (!before.isValid() || qobject_cast<const QScrollBar*>(widget)) continue;
        ++walked;
        for (const bool focused : {false, true}) {
            if (focused) widget->setFocus();
            for (const int steps : {1, -1, -1}) turn_wheel(widget, steps);
            if (value_of(widget) == before) continue;
            faults << QStringLiteral("%1 went from %2 to %3 by the wheel%4")
                          .arg(name_of(widget), before.toString(), value_of(widget).toString(),
                               focused ? QStringLiteral(", with the focus") : QString());
            break;
        }
    }
    return faults;
}

}  // namespace headscope::tests

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSize>
#include <QStringList>

class QWidget;

namespace headscope::tests {

/// Faults of a shown window, or of a view in one, one line each: a minimum size above `most`, a control that is cut off
/// or narrower than its text, a tab whose text is elided, a horizontal scroll bar, a table or tree that can be scrolled
/// sideways. Leaves out content that people scroll by nature: texts that are edited, lists.
QStringList layout_faults(QWidget* top, const QSize& most);

/// Turns the wheel over each control that holds a value, of all windows, shown or not, with the focus and without. A
/// line for each whose value changed. `walked`: how many there were.
QStringList wheel_faults(int& walked);

}  // namespace headscope::tests

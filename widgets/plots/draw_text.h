// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QFont>
#include <QPainter>
#include <QRectF>
#include <QString>

namespace headscope::widgets {

/// One line of text into `rect`; turned: reading upwards. The text may be larger than the rectangle: it is placed by
/// its alignment, never wrapped or cut.
void draw_text(QPainter* painter, const QRectF& rect, const QString& text, const QFont& font, const QColor& colour,
               Qt::Alignment alignment, bool turned);

}  // namespace headscope::widgets

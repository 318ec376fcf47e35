// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QProxyStyle>

namespace headscope::widgets {

/// Fusion, with boxes to tick that can be seen on dark grounds too (its own outline is darker than the ground), and
/// buttons that are switched on in the colour of what is chosen.
class Style : public QProxyStyle {
    Q_OBJECT
public:
    Style() : QProxyStyle(QStringLiteral("Fusion")) {}
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget = nullptr) const override;
};

}  // namespace headscope::widgets

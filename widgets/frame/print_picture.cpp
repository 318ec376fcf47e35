// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/frame/print_picture.h"

#include <QPaintDevice>
#include <QPainter>
#include <algorithm>

namespace headscope::widgets {

bool print_picture(QPaintDevice& device, const QImage& picture, double dots_per_inch) {
    QPainter painter(&device);
    if (!painter.isActive() || picture.isNull()) return false;
    const QRectF page = painter.viewport();
    const double width = picture.width() * device.logicalDpiX() / dots_per_inch,
                 height = picture.height() * device.logicalDpiY() / dots_per_inch;
    const double scale = std::min({1.0, page.width() / width, page.height() / height});
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    painter.drawImage(QRectF((page.width() - scale * width) / 2, 0, scale * width, scale * height), picture);
    return painter.end();
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/mixer_style.h"

#include <QPainter>
#include <QPixmap>

#include "core/mixers/types/type.h"

namespace headscope::widgets {

QColor mixer_color(const Theme& theme, const std::string& mixer) {
    const mixers::MixerType* type = mixers::find_type(mixer);
    return type == nullptr ? theme.muted : theme.categorical(type->color);
}

QString mixer_title(const std::string& mixer) {
    return QString::fromStdString(mixers::title_of(mixer));
}

QIcon swatch(const QColor& color) {
    QPixmap picture(16, 16);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    painter.drawRoundedRect(QRectF(1, 1, 14, 14), 4, 4);
    return QIcon(picture);
}

}  // namespace headscope::widgets

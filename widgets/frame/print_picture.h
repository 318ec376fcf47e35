// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>

class QPaintDevice;

namespace headscope::widgets {

/// Draws a picture of `dots_per_inch` at its true size at the top of the page, or smaller if the page has less room.
/// False: the device cannot be painted on.
bool print_picture(QPaintDevice& device, const QImage& picture, double dots_per_inch);

}  // namespace headscope::widgets

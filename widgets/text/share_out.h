// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSplitter>

namespace headscope::widgets {

/// Gives the first of a splitter's two parts this share of its size. setSizes() alone takes what is too much evenly
/// from all parts, whatever their sizes.
inline void share_out(QSplitter* splitter, double first) {
    const int size = splitter->orientation() == Qt::Vertical ? splitter->height() : splitter->width();
    const int part = static_cast<int>(size * first);
    splitter->setSizes({part, size - part - splitter->handleWidth()});
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope::widgets {

/// From now on the calling thread, the window's, paints without help. Qt 6.4's raster engine hands every area of a
/// hundred lines or more to the threads of its global pool and waits for them: where all processors are busy, as beside
/// a run that trains, each such wait is one for a place in a queue, many of them in one repaint (measured on two
/// processors: 11 of 84 s in which the window worked). Does nothing in a Qt whose raster engine asks another pool.
void paint_on_this_thread_alone();

}  // namespace headscope::widgets

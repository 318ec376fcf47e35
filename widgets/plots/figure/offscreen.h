// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope::widgets {

/// Makes a QApplication on the offscreen platform when there is none yet, so that figures can be drawn without a
/// display (a tenth of a second). Call it on the thread that will draw. The application lives until the program ends.
void ensure_application();

}  // namespace headscope::widgets

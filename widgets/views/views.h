// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/view.h"

namespace headscope::widgets {

// Each defined in the file that list.inc names.
#define HEADSCOPE_VIEW(file, constant) extern const ViewKind constant;
#include "widgets/views/list.inc"
#undef HEADSCOPE_VIEW

}  // namespace headscope::widgets

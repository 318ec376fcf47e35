// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/view.h"

namespace headscope::widgets {

#define HEADSCOPE_PAGE(constant) extern const ViewKind constant;
#define HEADSCOPE_VIEW(file, constant) HEADSCOPE_PAGE(constant)
#include "widgets/views/list.inc"
#undef HEADSCOPE_VIEW
#undef HEADSCOPE_PAGE

}  // namespace headscope::widgets

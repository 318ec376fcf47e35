// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/views.h"

namespace headscope::widgets {

const std::vector<const ViewKind*>& view_kinds() {
#define HEADSCOPE_PAGE(constant) &constant,
#define HEADSCOPE_VIEW(file, constant) HEADSCOPE_PAGE(constant)
    static const std::vector<const ViewKind*> kinds{
#include "widgets/views/list.inc"
    };
#undef HEADSCOPE_VIEW
#undef HEADSCOPE_PAGE
    return kinds;
}

}  // namespace headscope::widgets

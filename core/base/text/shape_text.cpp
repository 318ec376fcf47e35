// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text/shape_text.h"

namespace headscope {

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + "]";
}

}  // namespace headscope

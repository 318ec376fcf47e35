// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headscope {

/// "[2, 3]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace headscope

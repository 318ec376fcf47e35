// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace headscope::app {

/// Prints a document of `headscope info`, one line for each of its known keys, in a fixed order.
void print_description(const nlohmann::json& document);

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

namespace headscope::tokenizer {

/// Throws Error where a text is not below 2 GiB (limit) or no UTF-8 (format).
void check_text(std::string_view text);

}  // namespace headscope::tokenizer

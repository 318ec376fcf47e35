// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include "core/tokenizer/template/node.h"

namespace headscope::tokenizer::chat {

/// The statements of a template. `at` is where it stands when it throws Fault; nesting is limited. `source` is UTF-8.
Body parse(std::string_view source, std::size_t& at);

}  // namespace headscope::tokenizer::chat

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ctime>
#include <string>

#include "core/tokenizer/template/evaluator.h"

namespace headscope::tokenizer::chat {

/// The text that `source` makes with these variables. `where` names the template in errors, which are Error with line
/// and column. `source` and all strings must be UTF-8.
std::string render(const std::string& source, const std::string& where, const Evaluator::Variables& variables,
                   const std::tm& now, Budget& budget);

}  // namespace headscope::tokenizer::chat

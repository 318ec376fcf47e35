// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/tokenizer/template/operations.h"

namespace headscope::tokenizer::chat {

using Filter = std::function<Value(const Value& subject, Arguments&, Tools&)>;
using Filters = std::map<std::string, Filter, std::less<>>;

// Those of texts and numbers, and those of lists and mappings.
void add_text_filters(Filters& all);
void add_list_filters(Filters& all);

}  // namespace headscope::tokenizer::chat

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace headscope {

/// The known word with the fewest edits to `word`; empty when none is near (more than a third of its letters).
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace headscope

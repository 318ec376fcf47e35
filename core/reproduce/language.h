// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Texts in made-up languages, for replays whose models are too small for what people write.

#include <string>

#include "core/base/json/json.h"

namespace headscope::reproduce {

/// Name of the file of a replay's folder that holds the text.
inline constexpr const char* kLanguageFile = "language.txt";

/// A text of `words` words of a generator: { name = "markov", ... }, { name = "agreement", ... }, in `parts` equal
/// parts of dialects. Those of `markov` have tables of their own, from `table` on. Those of `agreement` have an ending
/// that they favor: of sentences with another one the share `others` is kept. Whole lines, so that a part may be a
/// little longer. The same text at every call. Throws Error.
std::string language_text(const JsonView& view);

}  // namespace headscope::reproduce

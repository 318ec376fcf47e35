// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/source/source_files.h"

namespace headscope::data {

/// Running text as hay: sentences in their order, white space within them single.
struct Essays {
    std::string name;  ///< what it is of: files, a corpus
    std::vector<std::string> sentences;
};

/// Sentences end behind a full stop, an exclamation or a question mark, with closing quotes and brackets, where white
/// space follows.
std::vector<std::string> sentences_of(std::string_view text);

/// The first `most` bytes of some files, or a little more. Error usage where they hold no sentence; what reading
/// throws.
Essays read_essays(const std::vector<SourceFile>& files, const std::string& name, std::size_t most);

}  // namespace headscope::data

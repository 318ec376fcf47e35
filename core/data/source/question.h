// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::data {

/// A question whose answers are parts of its context (SQuAD).
struct Question {
    std::string id;                    ///< empty: the file has none
    std::string text;                  ///< without white space at its begin
    std::string context;               ///< as it lies in the file
    std::vector<std::string> answers;  ///< of several people; none: the context has no answer
    std::vector<std::size_t> begins;   ///< of each in the context, in bytes
};

}  // namespace headscope::data

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A small task to tune encoders for, made of any text: which part of it a passage is from.

#include <cstdint>
#include <string>
#include <string_view>

namespace headscope::reproduce::thesis {

/// JSON lines with "text" and "label".
struct Passages {
    std::string train, test;
};
/// Cuts the text into passages of 24 words, whose label is the part of `classes` equal ones that it lies in. Every
/// fifth passage is to test with; of long texts passages are left out evenly, until at most `most` are there. Errors:
/// Error usage for a text of fewer than ten passages a class.
Passages passages_of(std::string_view text, std::int64_t classes, std::int64_t most);

}  // namespace headscope::reproduce::thesis

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace headscope::data {

/// One item to learn: a text and its translation, or a text, or pair of texts, and its label.
struct TextItem {
    std::string text;
    std::string other;       ///< the translation, or what the text is paired with
    bool has_other = false;  ///< of translations always
    double label = 0;        ///< a class from 0 on, or a number
};

}  // namespace headscope::data

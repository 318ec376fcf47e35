// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headscope::app {

/// The end of the last document of what a replay trains on, whole words of some 6000 characters: held out of training,
/// which holds out from the end. `data`: files, folders, patterns; empty: the King James Bible. Errors: Error.
std::string held_out_passage(const std::vector<std::string>& data);

/// All of its documents, one behind the other: the last `most` bytes.
std::string whole_text(const std::vector<std::string>& data, std::size_t most);

/// Whole words, at most the last `most` bytes of a text.
std::string last_words(const std::string& text, std::size_t most);

}  // namespace headscope::app

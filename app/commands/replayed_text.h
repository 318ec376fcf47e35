// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headscope::app {

/// The end of the last document of what a replay trains on, whole words of some 6000 characters: held out of training,
/// which holds out from the end. `data`: files, folders, patterns; empty: the King James Bible. Errors: Error.
std::string held_out_passage(const std::vector<std::string>& data);

/// The first `most` bytes of all of its documents, one behind the other.
std::string whole_text(const std::vector<std::string>& data, std::size_t most);

}  // namespace headscope::app

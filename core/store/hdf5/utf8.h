// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace headscope::store {

/// The text with every byte that belongs to no valid UTF-8 sequence written as <0xNN>, the way byte-fallback
/// vocabularies spell it: a token of byte-level BPE may be half a character, and readers of HDF5 decode strings.
std::string readable_utf8(std::string_view text);

}  // namespace headscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headscope::data {

/// Decompresses Unix' compress (.Z) without its three leading bytes: LZW (Welch 1984), codes of 9 to `most_bits` bits,
/// lowest bit first, in groups of eight; code 256 restarts the table. `where` names the source. Error: format for
/// impossible codes; limit for more than `largest` bytes.
std::string decompress_lzw(std::string_view bytes, unsigned most_bits, std::size_t largest, const std::string& where);

}  // namespace headscope::data

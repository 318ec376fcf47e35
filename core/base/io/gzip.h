// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headscope {

/// Content of a gzip file (RFC 1952), all members; trailing zeros are skipped. `where` names the file. Error: format
/// for damaged, truncated or other data; limit above `largest` bytes. Stops in a CancellationScope. Threads: any.
std::string decompress_gzip(std::string_view bytes, std::uint64_t largest, const std::string& where);

}  // namespace headscope

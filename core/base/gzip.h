// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headscope {

/// What a gzip file (RFC 1952) holds, of all its members; zeros behind them are passed over. `where` names the file.
/// Error: format for what is none, is damaged or ends early; limit for more than `largest` bytes. Can be stopped by a
/// CancellationScope. Threads: any.
std::string decompress_gzip(std::string_view bytes, std::uint64_t largest, const std::string& where);

}  // namespace headscope

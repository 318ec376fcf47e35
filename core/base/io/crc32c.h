// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace headscope {

/// CRC-32C (Castagnoli; polynomial 0x1EDC6F41 reflected, as iSCSI and ext4 use it) of bytes. `before`: the value of
/// what came before them, so that crc32c(b, crc32c(a)) is that of a followed by b. crc32c("123456789") is 0xE3069283.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) noexcept;

}  // namespace headscope

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace headscope::checkpoint {

/// CRC-32 as in zip (polynomial 0xEDB88320, reflected), continued: crc32(crc32(0, a), b) is that of a followed by b.
/// About 3 GB/s, sixteen bytes a step.
std::uint32_t crc32(std::uint32_t before, const void* bytes, std::size_t size) noexcept;

}  // namespace headscope::checkpoint

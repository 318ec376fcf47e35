// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/io/crc32c.h"

#include <array>
#include <cstddef>

namespace headscope {
namespace {

constexpr std::size_t kSlices = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

/// tables[k][b]: what byte b followed by k zero bytes adds, so that eight bytes are looked up at once.
constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U);
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < kSlices; ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t shorter = tables[k - 1][byte];
            tables[k][byte] = (shorter >> 8U) ^ tables[0][shorter & 0xFFU];
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) noexcept {
    std::uint32_t value = ~before;
    const auto at = [&bytes](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
    };
    std::size_t i = 0;
    for (; i + kSlices <= bytes.size(); i += kSlices) {
        value ^= at(i) | at(i + 1) << 8U | at(i + 2) << 16U | at(i + 3) << 24U;
        value = kTables[7][value & 0xFFU] ^ kTables[6][(value >> 8U) & 0xFFU] ^ kTables[5][(value >> 16U) & 0xFFU] ^
                kTables[4][value >> 24U] ^ kTables[3][at(i + 4)] ^ kTables[2][at(i + 5)] ^ kTables[1][at(i + 6)] ^
                kTables[0][at(i + 7)];
    }
    for (; i < bytes.size(); ++i) value = (value >> 8U) ^ kTables[0][(value ^ at(i)) & 0xFFU];
    return ~value;
}

}  // namespace headscope

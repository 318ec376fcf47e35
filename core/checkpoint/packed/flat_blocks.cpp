// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/flat_blocks.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace headscope::checkpoint {

std::array<float, 16> bitsandbytes_table(bool nf4) {
    if (nf4) {
        return {-1.0F,
                -0.6961928009986877F,
                -0.5250730514526367F,
                -0.39491748809814453F,
                -0.28444138169288635F,
                -0.18477343022823334F,
                -0.09105003625154495F,
                0.0F,
                0.07958029955625534F,
                0.16093020141124725F,
                0.24611230194568634F,
                0.33791524171829224F,
                0.44070982933044434F,
                0.5626170039176941F,
                0.7229568362236023F,
                1.0F};
    }
    std::array<float, 16> table{0.0F, 0.0625F, 8.0F, 12.0F, 4.0F, 6.0F, 2.0F, 3.0F};
    for (std::size_t i = 0; i < 8; ++i) {
        table[i] /= 12.0F;
        table[i + 8] = -table[i];
    }
    return table;
}

FlatBlocks::FlatBlocks(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts)
    : PackedTensor(std::move(shape), std::move(parts)), layout_(layout) {}

void FlatBlocks::unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const {
    check_sizes(*this, parts, first, count);
    const std::array<float, 16> table = bitsandbytes_table(layout_.nf4);
    const auto block = static_cast<std::size_t>(layout_.block);
    const auto columns = static_cast<std::size_t>(this->columns());
    const std::size_t end = static_cast<std::size_t>(first + count) * columns;
    const bool nested = layout_.nested_block != 0;
    const Numbers plain(nested ? std::span<const std::byte>{} : parts[1], DataType::f32);
    const Numbers nested_absmax(nested ? parts[3] : parts[2], DataType::f32);
    const Numbers nested_map(nested ? parts[4] : parts[2], DataType::f32);
    std::array<float, 16> scaled{};
    for (std::size_t i = static_cast<std::size_t>(first) * columns; i < end;) {
        const std::size_t b = i / block, stop = std::min(end, (b + 1) * block);
        float absmax = 0;
        if (nested) {
            // Volatile: rounded by itself, not part of a fused operation.
            const volatile float product = nested_map[std::to_integer<std::size_t>(parts[1][b])] *
                                           nested_absmax[b / static_cast<std::size_t>(layout_.nested_block)];
            absmax = product + layout_.nested_offset;
        } else {
            absmax = plain[b];
        }
        for (std::size_t code = 0; code < 16; ++code) scaled[code] = table[code] * absmax;
        for (; i < stop && i % 2 != 0; ++i) *into++ = scaled[std::to_integer<std::size_t>(parts[0][i / 2]) & 15U];
        for (; i + 1 < stop; i += 2) {
            const auto byte = std::to_integer<std::size_t>(parts[0][i / 2]);
            *into++ = scaled[byte >> 4U];
            *into++ = scaled[byte & 15U];
        }
        if (i < stop) {
            *into++ = scaled[std::to_integer<std::size_t>(parts[0][i / 2]) >> 4U];
            ++i;
        }
    }
}

void FlatBlocks::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    const Numbers map(parts[2], DataType::f32);
    const std::array<float, 16> table = bitsandbytes_table(layout_.nf4);
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (map[i] == table[i]) continue;
        throw Error(ErrorCode::format, packed_place(this->parts()[2].tensor),
                    std::string("expected the 16 values of ") + (layout_.nf4 ? "nf4" : "fp4"),
                    "found another value at element " + std::to_string(i));
    }
    if (layout_.nested_block == 0) return check_finite(*this, parts, 1, DataType::f32);
    check_finite(*this, parts, 3, DataType::f32);
    check_finite(*this, parts, 4, DataType::f32);
}

}  // namespace headscope::checkpoint

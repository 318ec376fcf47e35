// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/slab_groups.h"

#include <algorithm>
#include <utility>

namespace headscope::checkpoint {

SlabGroups::SlabGroups(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts)
    : PackedTensor(std::move(shape), std::move(parts)), layout_(layout) {}

void SlabGroups::unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const {
    check_sizes(*this, parts, first, count);
    const auto columns = static_cast<std::size_t>(this->columns());
    const auto grouped = static_cast<std::size_t>(layout_.grouped_columns);
    const auto slab = static_cast<std::size_t>(layout_.packed_rows);
    const std::size_t end = static_cast<std::size_t>(first + count) * columns;
    const std::uint32_t mask = (1U << layout_.bits) - 1;
    const Numbers scales(parts[1], layout_.scales), zeros(parts[2], layout_.zeros);
    for (std::size_t i = static_cast<std::size_t>(first) * columns; i < end;) {
        const std::size_t row = i / grouped, stop = std::min(end, (row + 1) * grouped);
        const unsigned shift = (layout_.fields - 1 - static_cast<unsigned>(row / slab)) * layout_.bits;
        const std::size_t line = row % slab * grouped;
        float scale = scales[layout_.by_column ? 0 : row], zero = zeros[layout_.by_column ? 0 : row];
        for (std::size_t c = i % grouped; i < stop; ++i, ++c) {
            const std::uint32_t word =
                layout_.words ? word_at(parts[0].data(), line + c) : std::to_integer<std::uint32_t>(parts[0][line + c]);
            if (layout_.by_column) {
                scale = scales[c];
                zero = zeros[c];
            }
            *into++ = (static_cast<float>(word >> shift & mask) - zero) * scale;
        }
    }
}

void SlabGroups::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    check_finite(*this, parts, 1, layout_.scales);
    check_finite(*this, parts, 2, layout_.zeros);
}

}  // namespace headscope::checkpoint

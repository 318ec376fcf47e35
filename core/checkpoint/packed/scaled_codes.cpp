// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/scaled_codes.h"

#include <algorithm>
#include <utility>

namespace headscope::checkpoint {
namespace {

/// Both values of a byte of E2M1.
std::array<std::array<float, 2>, 256> make_pairs() {
    std::array<std::array<float, 2>, 256> pairs{};
    for (std::size_t byte = 0; byte < 256; ++byte) pairs[byte] = {e2m1_values[byte & 15U], e2m1_values[byte >> 4U]};
    return pairs;
}

/// Columns [from, to) of a row of E2M1 codes.
void unpack_e2m1(const std::byte* row, std::size_t from, std::size_t to, float scale, float* into) {
    static const auto pairs = make_pairs();
    std::size_t c = from;
    if (c < to && c % 2 != 0) {
        into[c] = e2m1_values[std::to_integer<std::size_t>(row[c / 2]) >> 4U] * scale;
        ++c;
    }
    for (; c + 1 < to; c += 2) {
        const auto& pair = pairs[std::to_integer<std::size_t>(row[c / 2])];
        into[c] = pair[0] * scale;
        into[c + 1] = pair[1] * scale;
    }
    if (c < to) into[c] = e2m1_values[std::to_integer<std::size_t>(row[c / 2]) & 15U] * scale;
}

}  // namespace

ScaledCodes::ScaledCodes(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts)
    : PackedTensor(std::move(shape), std::move(parts)), layout_(layout) {}

void ScaledCodes::unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const {
    check_sizes(*this, parts, first, count);
    const auto columns = static_cast<std::size_t>(this->columns());
    const auto block_rows = static_cast<std::size_t>(layout_.block_rows);
    const auto block = static_cast<std::size_t>(layout_.block_columns);
    const std::size_t scale_columns = (columns + block - 1) / block;
    const std::size_t row_bytes = layout_.codes == CodeType::e2m1 ? columns / 2 : columns;
    const Numbers scales(parts[1], layout_.scales);
    const bool has_global = layout_.factor == Factor::divide || layout_.factor == Factor::multiply;
    const float global = has_global ? Numbers(parts[2], DataType::f32)[0] : 1.0F;
    for (std::int64_t i = 0; i < count; ++i, into += columns) {
        const auto r = static_cast<std::size_t>(first + i);
        const std::byte* row = parts[0].data() + r * row_bytes;
        for (std::size_t b = 0; b < scale_columns; ++b) {
            const std::size_t at = r / block_rows * scale_columns + b;
            float scale = scales[at];
            if (layout_.factor == Factor::divide_by_127) scale /= 127.0F;
            if (layout_.factor == Factor::divide) scale /= global;
            if (layout_.factor == Factor::multiply) scale *= global;
            const std::size_t from = b * block, to = std::min(columns, from + block);
            if (layout_.codes == CodeType::e2m1) {
                unpack_e2m1(row, from, to, scale, into);
            } else if (layout_.codes == CodeType::e4m3) {
                for (std::size_t c = from; c < to; ++c)
                    into[c] = e4m3_values[std::to_integer<std::size_t>(row[c])] * scale;
            } else {
                const int zero = layout_.zero_points ? static_cast<std::int8_t>(parts[2][at]) : 0;
                for (std::size_t c = from; c < to; ++c)
                    into[c] = static_cast<float>(static_cast<std::int8_t>(row[c]) - zero) * scale;
            }
        }
    }
}

std::shared_ptr<const PackedTensor> ScaledCodes::entry(std::int64_t index) const {
    // A part that all entries share is none of theirs alone.
    if (shape().size() != 3 || layout_.block_rows != 1 || parts().size() != 2) return nullptr;
    return std::make_shared<ScaledCodes>(entry_shape(), layout_,
                                         std::vector<PackedPart>{entry_part(0, index), entry_part(1, index)});
}

void ScaledCodes::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    check_finite(*this, parts, 1, layout_.scales);
    if (layout_.factor == Factor::divide) check_divisor(*this, parts, 2);
    if (layout_.factor == Factor::multiply) check_finite(*this, parts, 2, DataType::f32);
}

}  // namespace headscope::checkpoint

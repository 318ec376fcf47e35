// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/stream_rows.h"

#include <algorithm>
#include <utility>

namespace headscope::checkpoint {
namespace {

/// The first `count` codes, 32 / bits in a word.
void unpack_whole_words(const std::byte* bytes, unsigned bits, std::size_t count, std::uint8_t* into) {
    const std::size_t in_word = 32 / bits;
    const std::uint32_t mask = (1U << bits) - 1;
    for (std::size_t i = 0; i < count; ++i)
        into[i] = static_cast<std::uint8_t>(word_at(bytes, i / in_word) >> (i % in_word * bits) & mask);
}

}  // namespace

StreamRows::StreamRows(std::vector<std::int64_t> shape, const Layout& layout, std::vector<PackedPart> parts)
    : PackedTensor(std::move(shape), std::move(parts)), layout_(layout) {}

std::vector<std::uint32_t> StreamRows::groups(const PartBytes& parts) const {
    return read_groups(*this, parts, parts.size() - 1, layout_.groups, layout_.group_size, true);
}

std::int32_t StreamRows::zero_point(const PartBytes& parts, std::size_t row, std::size_t group) const {
    const auto groups = static_cast<std::size_t>(layout_.groups);
    const std::byte* words = parts[2].data() + 4 * group;
    if (!layout_.whole_words) return static_cast<std::int32_t>(code_at(words, groups, layout_.bits, row));
    const std::size_t in_word = 32 / layout_.bits;
    const std::uint32_t word = word_at(words, row / in_word * groups);
    return static_cast<std::int32_t>(word >> (row % in_word * layout_.bits) & ((1U << layout_.bits) - 1));
}

void StreamRows::unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const {
    check_sizes(*this, parts, first, count);
    const auto columns = static_cast<std::size_t>(this->columns());
    const auto group_size = static_cast<std::size_t>(layout_.group_size);
    const auto groups = static_cast<std::size_t>(layout_.groups);
    const std::size_t row_bytes = parts[0].size() / static_cast<std::size_t>(rows());
    const Numbers scales(parts[1], layout_.scales);
    const bool affine = layout_.rule == Rule::affine;
    const Numbers biases(affine ? parts[2] : parts[1], layout_.scales);
    const std::vector<std::uint32_t> group = layout_.indexed ? this->groups(parts) : std::vector<std::uint32_t>{};
    std::vector<std::uint8_t> codes(columns);
    std::vector<float> scale(groups), bias(groups);
    std::array<float, 16> table{};
    std::vector<std::int32_t> zero(groups, 1 << (layout_.bits - 1));
    for (std::int64_t i = 0; i < count; ++i, into += columns) {
        const auto r = static_cast<std::size_t>(first + i);
        const std::byte* row = parts[0].data() + r * row_bytes;
        if (layout_.whole_words)
            unpack_whole_words(row, layout_.bits, columns, codes.data());
        else
            unpack_codes(row, layout_.bits, columns, codes.data());
        for (std::size_t g = 0; g < groups; ++g) {
            scale[g] = scales[layout_.one_scale ? g : r * groups + g];
            if (affine) bias[g] = biases[r * groups + g];
            if (layout_.rule == Rule::zero_points) zero[g] = zero_point(parts, r, g);
        }
        if (layout_.indexed) {
            for (std::size_t c = 0; c < columns; ++c)
                into[c] = scale[group[c]] * static_cast<float>(codes[c] - zero[group[c]]);
            continue;
        }
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t from = g * group_size, to = std::min(columns, from + group_size);
            const float s = scale[g], b = bias[g];
            const std::int32_t z = zero[g];
            // A table of all values where codes are few. Products and sums in two loops: no compiler then makes one
            // fused operation, with one rounding, of them.
            const bool few = layout_.bits <= 4;
            if (few) {
                for (std::size_t code = 0; code < table.size(); ++code) {
                    const auto q = static_cast<std::int32_t>(code);
                    table[code] = affine ? static_cast<float>(q) * s : s * static_cast<float>(q - z);
                }
                if (affine)
                    for (float& value : table) value += b;
                for (std::size_t c = from; c < to; ++c) into[c] = table[codes[c]];
            } else if (affine) {
                for (std::size_t c = from; c < to; ++c) into[c] = static_cast<float>(codes[c]) * s;
                for (std::size_t c = from; c < to; ++c) into[c] += b;
            } else {
                for (std::size_t c = from; c < to; ++c) into[c] = s * static_cast<float>(codes[c] - z);
            }
        }
    }
}

std::shared_ptr<const PackedTensor> StreamRows::entry(std::int64_t index) const {
    if (shape().size() != 3 || layout_.rule == Rule::zero_points || layout_.one_scale || layout_.indexed)
        return nullptr;
    std::vector<PackedPart> own;
    for (std::size_t i = 0; i < parts().size(); ++i) own.push_back(entry_part(i, index));
    return std::make_shared<StreamRows>(entry_shape(), layout_, std::move(own));
}

void StreamRows::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    check_finite(*this, parts, 1, layout_.scales);
    if (layout_.rule == Rule::affine) check_finite(*this, parts, 2, layout_.scales);
    if (layout_.indexed) groups(parts);
}

}  // namespace headscope::checkpoint

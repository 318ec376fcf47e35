// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/word_columns.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace headscope::checkpoint {
namespace {

// A tile is as many rows of the result as a cache line has words, and few enough columns that it stays in the nearest
// cache. It is made aside, because rows of a matrix may all fall on one set of that cache.
constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileColumns = 32;
/// By column, so that the loop over rows is one of vectors.
using WordTile = std::array<std::array<float, kTileRows>, kTileColumns>;
using TileFloats = std::array<float, kTileRows>;
using TileIntegers = std::array<std::int32_t, kTileRows>;

void copy_tile(const WordTile& tile, std::size_t rows, std::size_t columns, std::size_t stride, float* into) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) into[r * stride + c] = tile[c][r];
}

/// All rows, also those that a tile at the end lacks: their codes are 0.
void scale_column(const TileIntegers& codes, const TileIntegers& zero, const TileFloats& scale, TileFloats& column) {
    for (std::size_t r = 0; r < kTileRows; ++r) column[r] = scale[r] * static_cast<float>(codes[r] - zero[r]);
}

/// Code at `offset` of each of the rows' words; `next` words on lies the rest of one that crosses.
template <class Count>
void read_codes(const std::byte* words, std::size_t next, unsigned offset, unsigned bits, Count rows,
                TileIntegers& codes) {
    const std::uint32_t mask = (1U << bits) - 1;
    if (offset + bits <= 32) {
        for (std::size_t r = 0; r < rows; ++r) codes[r] = static_cast<std::int32_t>(word_at(words, r) >> offset & mask);
        return;
    }
    for (std::size_t r = 0; r < rows; ++r) {
        const std::uint32_t code = word_at(words, r) >> offset | word_at(words, next + r) << (32 - offset);
        codes[r] = static_cast<std::int32_t>(code & mask);
    }
}

/// Bits of column 8 w + k in word w of AWQ.
constexpr std::array<unsigned, 8> kAwqShift{0, 16, 4, 20, 8, 24, 12, 28};

}  // namespace

GptqTensor::GptqTensor(const Layout& layout, std::vector<PackedPart> parts)
    : PackedTensor({layout.out, layout.in}, std::move(parts)), layout_(layout) {}

std::vector<std::uint32_t> GptqTensor::groups(const PartBytes& parts) const {
    return layout_.indexed ? read_groups(*this, parts, 3, layout_.groups, layout_.group_size, false)
                           : groups_in_order(layout_.in, layout_.group_size);
}

void GptqTensor::unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const {
    check_sizes(*this, parts, first, count);
    const std::vector<std::uint32_t> group = groups(parts);
    const auto in = static_cast<std::size_t>(layout_.in), out = static_cast<std::size_t>(layout_.out);
    const auto groups = static_cast<std::size_t>(layout_.groups);
    const unsigned bits = layout_.bits;
    const std::size_t zero_words = out * bits / 32;
    // AutoGPTQ masks the sum for 2, 4 and 8 bits, and not for 3.
    const std::uint32_t zero_mask = bits == 3 ? 0xFFU : (1U << bits) - 1;
    const Numbers scales(parts[2], layout_.scales);
    std::vector<TileFloats> scale(groups);
    std::vector<TileIntegers> zero(groups);
    WordTile tile;
    TileIntegers codes{};
    const auto end = static_cast<std::size_t>(first + count);
    for (auto row = static_cast<std::size_t>(first); row < end; row += kTileRows) {
        const std::size_t rows = std::min(kTileRows, end - row);
        for (std::size_t g = 0; g < groups; ++g) {
            const std::byte* words = parts[1].data() + 4 * g * zero_words;
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint32_t stored = code_at(words, 1, bits, row + r);
                zero[g][r] = static_cast<std::int32_t>(layout_.zeros_minus_one ? (stored + 1) & zero_mask : stored);
                scale[g][r] = scales[g * out + row + r];
            }
        }
        for (std::size_t column = 0; column < in; column += kTileColumns) {
            const std::size_t columns = std::min(kTileColumns, in - column);
            for (std::size_t c = 0; c < columns; ++c) {
                const std::size_t bit = (column + c) * bits;
                const std::byte* words = parts[0].data() + 4 * (bit / 32 * out + row);
                if (rows == kTileRows)
                    read_codes(words, out, bit % 32, bits, std::integral_constant<std::size_t, kTileRows>{}, codes);
                else
                    read_codes(words, out, bit % 32, bits, rows, codes);
                scale_column(codes, zero[group[column + c]], scale[group[column + c]], tile[c]);
            }
            copy_tile(tile, rows, columns, in, into + (row - static_cast<std::size_t>(first)) * in + column);
        }
    }
}

void GptqTensor::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    check_finite(*this, parts, 2, layout_.scales);
    if (layout_.indexed) groups(parts);
}

AwqTensor::AwqTensor(std::int64_t out, std::int64_t in, std::int64_t group_size, DataType scales,
                     std::vector<PackedPart> parts)
    : PackedTensor({out, in}, std::move(parts)), group_size_(static_cast<std::size_t>(group_size)), scales_(scales) {}

void AwqTensor::unpack(const PartBytes& parts, std::int64_t first, std::int64_t count, float* into) const {
    check_sizes(*this, parts, first, count);
    const auto in = static_cast<std::size_t>(columns()), out = static_cast<std::size_t>(rows());
    const std::size_t words = out / 8;
    const Numbers scales(parts[2], scales_);
    WordTile tile;
    TileFloats scale{};
    TileIntegers zero{}, codes{};
    const auto end = static_cast<std::size_t>(first + count);
    for (auto row = static_cast<std::size_t>(first); row < end;) {
        // Tiles of whole words, but for the first and the last rows.
        const std::size_t rows = std::min(row % 8 == 0 ? kTileRows : 8 - row % 8, end - row);
        const auto read = [&](const std::byte* line, TileIntegers& nibbles) {
            if (rows == kTileRows) {
                for (std::size_t w = 0; w < kTileRows / 8; ++w) {
                    const std::uint32_t word = word_at(line, row / 8 + w);
                    for (std::size_t k = 0; k < 8; ++k)
                        nibbles[8 * w + k] = static_cast<std::int32_t>(word >> kAwqShift[k] & 15U);
                }
                return;
            }
            for (std::size_t r = 0; r < rows; ++r)
                nibbles[r] = static_cast<std::int32_t>(word_at(line, (row + r) / 8) >> kAwqShift[(row + r) % 8] & 15U);
        };
        for (std::size_t column = 0; column < in; column += kTileColumns) {
            const std::size_t columns = std::min(kTileColumns, in - column);
            for (std::size_t c = 0; c < columns; ++c) {
                if (c == 0 || (column + c) % group_size_ == 0) {
                    const std::size_t g = (column + c) / group_size_;
                    read(parts[1].data() + 4 * g * words, zero);
                    for (std::size_t r = 0; r < rows; ++r) scale[r] = scales[g * out + row + r];
                }
                read(parts[0].data() + 4 * (column + c) * words, codes);
                scale_column(codes, zero, scale, tile[c]);
            }
            copy_tile(tile, rows, columns, in, into + (row - static_cast<std::size_t>(first)) * in + column);
        }
        row += rows;
    }
}

void AwqTensor::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    check_finite(*this, parts, 2, scales_);
}

}  // namespace headscope::checkpoint

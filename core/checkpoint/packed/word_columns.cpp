// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/word_columns.h"

#include <algorithm>
#include <utility>

namespace headscope::checkpoint {
namespace {

// A tile is as many rows of the result as a cache line has words, and few enough columns that it stays in the nearest
// cache. It is made aside, because rows of a matrix may all fall on one set of that cache.
constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileColumns = 32;
using WordTile = std::array<std::array<float, kTileColumns>, kTileRows>;

void copy_tile(const WordTile& tile, std::size_t rows, std::size_t columns, std::size_t stride, float* into) {
    for (std::size_t r = 0; r < rows; ++r) std::copy_n(tile[r].data(), columns, into + r * stride);
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
    const std::uint32_t mask = (1U << bits) - 1, zero_mask = bits == 3 ? 0xFFU : mask;
    const Numbers scales(parts[2], layout_.scales);
    std::vector<std::array<float, kTileRows>> scale(groups);
    std::vector<std::array<std::int32_t, kTileRows>> zero(groups);
    WordTile tile;
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
                const unsigned offset = bit % 32;
                const bool crosses = offset + bits > 32;
                const std::byte* words = parts[0].data() + 4 * (bit / 32 * out + row);
                const auto& s = scale[group[column + c]];
                const auto& z = zero[group[column + c]];
                for (std::size_t r = 0; r < rows; ++r) {
                    std::uint32_t code = word_at(words, r) >> offset;
                    if (crosses) code |= word_at(words, out + r) << (32 - offset);
                    tile[r][c] = s[r] * static_cast<float>(static_cast<std::int32_t>(code & mask) - z[r]);
                }
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
    std::array<float, kTileRows> scale{};
    std::array<std::int32_t, kTileRows> zero{};
    std::array<std::size_t, kTileRows> word{};
    std::array<unsigned, kTileRows> shift{};
    const auto end = static_cast<std::size_t>(first + count);
    for (auto row = static_cast<std::size_t>(first); row < end; row += kTileRows) {
        const std::size_t rows = std::min(kTileRows, end - row);
        for (std::size_t r = 0; r < rows; ++r) {
            word[r] = (row + r) / 8;
            shift[r] = kAwqShift[(row + r) % 8];
        }
        for (std::size_t column = 0; column < in; column += kTileColumns) {
            const std::size_t columns = std::min(kTileColumns, in - column);
            for (std::size_t c = 0; c < columns; ++c) {
                if (c == 0 || (column + c) % group_size_ == 0) {
                    const std::size_t g = (column + c) / group_size_;
                    for (std::size_t r = 0; r < rows; ++r) {
                        zero[r] =
                            static_cast<std::int32_t>(word_at(parts[1].data(), g * words + word[r]) >> shift[r] & 15U);
                        scale[r] = scales[g * out + row + r];
                    }
                }
                const std::byte* line = parts[0].data() + 4 * (column + c) * words;
                for (std::size_t r = 0; r < rows; ++r) {
                    const auto code = static_cast<std::int32_t>(word_at(line, word[r]) >> shift[r] & 15U);
                    tile[r][c] = scale[r] * static_cast<float>(code - zero[r]);
                }
            }
            copy_tile(tile, rows, columns, in, into + (row - static_cast<std::size_t>(first)) * in + column);
        }
    }
}

void AwqTensor::check(const PartBytes& parts) const {
    check_sizes(*this, parts);
    check_finite(*this, parts, 2, scales_);
}

}  // namespace headscope::checkpoint

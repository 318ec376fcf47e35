// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Code books of GGUF's types IQ1, IQ2 and IQ3. An index in a block stands for an entry: eight or four small integers.

#include <array>
#include <cstddef>
#include <cstdint>

namespace headscope::kernels::grids {

#include "kernels/packed/grids.inc"

template <std::size_t kSize, std::size_t kEntries>
using Grid = std::array<std::array<std::int8_t, kSize>, kEntries>;

/// The entries of a stored grid, their integers written out.
template <std::size_t kSize, std::size_t kEntries, std::size_t kLevelCount>
constexpr Grid<kSize, kEntries> written_out(const std::array<std::uint16_t, kEntries>& stored,
                                            const std::array<std::int8_t, kLevelCount>& levels) {
    constexpr unsigned kBits = 16 / kSize;
    Grid<kSize, kEntries> out{};
    for (std::size_t entry = 0; entry < kEntries; ++entry) {
        for (std::size_t i = 0; i < kSize; ++i)
            out[entry][i] = levels[(stored[entry] >> (kBits * i)) & ((1U << kBits) - 1U)];
    }
    return out;
}

// No entry crosses a line of the cache.
alignas(64) inline constexpr auto kIq2Xxs = written_out<8>(kIq2XxsGrid, kIq2XxsLevels);
alignas(64) inline constexpr auto kIq2Xs = written_out<8>(kIq2XsGrid, kIq2XsLevels);
alignas(64) inline constexpr auto kIq2S = written_out<8>(kIq2SGrid, kIq2SLevels);
alignas(64) inline constexpr auto kIq3Xxs = written_out<4>(kIq3XxsGrid, kIq3XxsLevels);
alignas(64) inline constexpr auto kIq3S = written_out<4>(kIq3SGrid, kIq3SLevels);
alignas(64) inline constexpr auto kIq1 = written_out<8>(kIq1Grid, kIq1Levels);

}  // namespace headscope::kernels::grids

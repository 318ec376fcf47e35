// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>

namespace headscope::evaluation {
namespace {

constexpr std::size_t kShift = 397;

/// The largest population of which sample() keeps a list, so that drawn ones are never drawn again.
std::uint64_t listed(std::size_t size) {
    std::uint64_t most = 21;
    if (size <= 5) return most;
    std::uint64_t power = 1;
    while (power < 3 * static_cast<std::uint64_t>(size)) power *= 4;
    return most + power;
}

}  // namespace

PythonRandom::PythonRandom(std::uint64_t seed) {
    // init_genrand(19650218), then init_by_array of the seed's words, low ones first (Matsumoto and Nishimura 2002).
    const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                              static_cast<std::uint32_t>(seed >> 32U)};
    const std::size_t words = key[1] != 0 ? 2 : 1, size = state_.size();
    const auto mixed = [this](std::size_t i, std::uint32_t factor) {
        return state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30U)) * factor);
    };
    state_[0] = 19650218U;
    for (std::size_t i = 1; i < size; ++i)
        state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30U)) + static_cast<std::uint32_t>(i);
    std::size_t i = 1, j = 0;
    const auto advance = [&] {
        if (++i < size) return;
        state_[0] = state_[size - 1];
        i = 1;
    };
    for (std::size_t step = 0; step < size; ++step) {
        state_[i] = mixed(i, 1664525U) + key[j] + static_cast<std::uint32_t>(j);
        advance();
        j = (j + 1) % words;
    }
    for (std::size_t step = 1; step < size; ++step) {
        state_[i] = mixed(i, 1566083941U) - static_cast<std::uint32_t>(i);
        advance();
    }
    state_[0] = 0x80000000U;
}

std::uint32_t PythonRandom::next() {
    if (index_ == state_.size()) {
        const std::size_t size = state_.size();
        const auto twisted = [this](std::size_t at, std::size_t after, std::size_t far) {
            const std::uint32_t y = (state_[at] & 0x80000000U) | (state_[after] & 0x7fffffffU);
            state_[at] = state_[far] ^ (y >> 1U) ^ ((0U - (y & 1U)) & 0x9908b0dfU);
        };
        for (std::size_t i = 0; i < size - kShift; ++i) twisted(i, i + 1, i + kShift);
        for (std::size_t i = size - kShift; i < size - 1; ++i) twisted(i, i + 1, i + kShift - size);
        twisted(size - 1, 0, kShift - 1);
        index_ = 0;
    }
    std::uint32_t y = state_[index_++];
    y ^= y >> 11U;
    y ^= (y << 7U) & 0x9d2c5680U;
    y ^= (y << 15U) & 0xefc60000U;
    return y ^ (y >> 18U);
}

double PythonRandom::random() {
    const std::uint32_t high = next() >> 5U, low = next() >> 6U;
    return (high * 67108864.0 + low) * 0x1p-53;
}

std::uint64_t PythonRandom::bits(int count) {
    if (count <= 32) return next() >> static_cast<unsigned>(32 - count);
    const std::uint64_t low = next();
    return low | static_cast<std::uint64_t>(next() >> static_cast<unsigned>(64 - count)) << 32U;
}

std::uint64_t PythonRandom::below(std::uint64_t end) {
    const int count = static_cast<int>(std::bit_width(end));
    std::uint64_t drawn = bits(count);
    while (drawn >= end) drawn = bits(count);
    return drawn;
}

std::vector<std::size_t> PythonRandom::sample(std::size_t count, std::size_t size) {
    std::vector<std::size_t> drawn(size);
    if (count <= listed(size)) {
        std::vector<std::size_t> pool(count);
        std::iota(pool.begin(), pool.end(), std::size_t{0});
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t at = below(count - i);
            drawn[i] = pool[at];
            pool[at] = pool[count - i - 1];
        }
        return drawn;
    }
    std::unordered_set<std::size_t> seen;
    for (std::size_t& one : drawn) {
        do one = below(count);
        while (!seen.insert(one).second);
    }
    return drawn;
}

std::vector<std::size_t> PythonRandom::choices(std::size_t count, std::size_t size) {
    const auto n = static_cast<double>(count);
    std::vector<std::size_t> drawn(size);
    std::generate(drawn.begin(), drawn.end(), [&] { return static_cast<std::size_t>(random() * n); });
    return drawn;
}

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// random.Random of CPython 3.8 to 3.12, number for number: MT19937 seeded by init_by_array, random(), getrandbits,
// _randbelow by rejection, sample, choices. lm-eval draws examples and resamples with it. Threads: one at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headscope::evaluation {

class PythonRandom {
public:
    explicit PythonRandom(std::uint64_t seed);
    double random();                         ///< [0, 1), 53 bits
    std::uint64_t bits(int count);           ///< getrandbits, 1 to 64
    std::uint64_t below(std::uint64_t end);  ///< end > 0
    /// sample(range(count), size): indices in the order drawn. size <= count.
    std::vector<std::size_t> sample(std::size_t count, std::size_t size);
    /// choices(range(count), k=size).
    std::vector<std::size_t> choices(std::size_t count, std::size_t size);

private:
    std::uint32_t next();

    std::array<std::uint32_t, 624> state_{};
    std::size_t index_ = 624;
};

}  // namespace headscope::evaluation

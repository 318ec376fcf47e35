// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/not_finite.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace headscope::checkpoint {
namespace {

constexpr std::size_t kBlock = 4096;

/// Numbers of a floating type as bits: those that are not finite have every bit of the exponent set.
template <class Bits>
struct Numbers {
    const Bits* values;
    std::size_t size;
    Bits exponent;

    bool finite(std::size_t i) const { return (values[i] & exponent) != exponent; }

    /// One more than the largest exponent runs over into the sign, which is a loop without branches.
    bool all_finite(std::size_t begin, std::size_t end) const {
        const Bits least = exponent & static_cast<Bits>(~exponent + 1);
        Bits together = 0;
        for (std::size_t i = begin; i < end; ++i)
            together = static_cast<Bits>(together | static_cast<Bits>((values[i] & exponent) + least));
        return together >> (8 * sizeof(Bits) - 1) == 0;
    }

    std::int64_t count() const {
        std::int64_t found = 0;
        for (std::size_t begin = 0; begin < size; begin += kBlock) {
            const std::size_t end = std::min(size, begin + kBlock);
            if (all_finite(begin, end)) continue;
            for (std::size_t i = begin; i < end; ++i) found += finite(i) ? 0 : 1;
        }
        return found;
    }

    std::int64_t first() const {
        for (std::size_t begin = 0; begin < size; begin += kBlock) {
            const std::size_t end = std::min(size, begin + kBlock);
            if (all_finite(begin, end)) continue;
            for (std::size_t i = begin; i < end; ++i)
                if (!finite(i)) return static_cast<std::int64_t>(i);
        }
        return -1;
    }
};

/// use(Numbers) for a floating tensor, else `otherwise`.
template <class Use>
std::int64_t of_numbers(const at::Tensor& tensor, std::int64_t otherwise, const Use& use) {
    const at::Tensor flat = tensor.contiguous();
    const auto numbers = [&]<class Bits>(Bits exponent) {
        return use(Numbers<Bits>{static_cast<const Bits*>(flat.const_data_ptr()),
                                 static_cast<std::size_t>(flat.numel()), exponent});
    };
    switch (tensor.scalar_type()) {
        case at::kDouble:
            return numbers(std::uint64_t{0x7FF0000000000000});
        case at::kFloat:
            return numbers(std::uint32_t{0x7F800000});
        case at::kBFloat16:
            return numbers(std::uint16_t{0x7F80});
        case at::kHalf:
            return numbers(std::uint16_t{0x7C00});
        default:
            return otherwise;
    }
}

}  // namespace

std::int64_t count_not_finite(const at::Tensor& tensor) {
    return of_numbers(tensor, 0, [](const auto& numbers) { return numbers.count(); });
}

std::int64_t first_not_finite(const at::Tensor& tensor) {
    return of_numbers(tensor, -1, [](const auto& numbers) { return numbers.first(); });
}

}  // namespace headscope::checkpoint

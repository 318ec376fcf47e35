// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/part_checks.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::checkpoint {

std::string packed_place(const std::string& tensor) {
    return "tensor \"" + escaped(tensor) + '"';
}

void check_sizes(const PackedTensor& tensor, const PartBytes& parts, std::int64_t first, std::int64_t count) {
    const auto& named = tensor.parts();
    bool good = parts.size() == named.size() && first >= 0 && count >= 0 && first <= tensor.rows() &&
                count <= tensor.rows() - first;
    for (std::size_t i = 0; good && i < parts.size(); ++i) good = parts[i].size() == named[i].bytes;
    if (!good) {
        throw Error(ErrorCode::internal, packed_place(named.empty() ? "" : named[0].tensor),
                    "expected all bytes of each part, and rows that exist", "found others");
    }
}

void check_finite(const PackedTensor& tensor, const PartBytes& parts, std::size_t index, DataType type) {
    const Numbers numbers(parts[index], type);
    if (const std::size_t bad = numbers.first_not_finite(); bad < numbers.size()) {
        throw Error(ErrorCode::format, packed_place(tensor.parts()[index].tensor), "expected finite scales",
                    "found NaN or infinity at element " + std::to_string(bad));
    }
}

void check_divisor(const PackedTensor& tensor, const PartBytes& parts, std::size_t index) {
    check_finite(tensor, parts, index, DataType::f32);
    if (Numbers(parts[index], DataType::f32)[0] == 0.0F) {
        throw Error(ErrorCode::format, packed_place(tensor.parts()[index].tensor), "expected a divisor other than 0",
                    "found 0");
    }
}

std::vector<std::uint32_t> read_groups(const PackedTensor& tensor, const PartBytes& parts, std::size_t index,
                                       std::int64_t groups, std::int64_t size, bool may_be_unset) {
    const std::size_t count = parts[index].size() / 4;
    std::vector<std::uint32_t> group(count);
    bool unset = may_be_unset;
    for (std::size_t i = 0; i < count; ++i) {
        group[i] = word_at(parts[index].data(), i);
        unset = unset && group[i] == 0xFFFFFFFFU;
    }
    if (unset) return groups_in_order(static_cast<std::int64_t>(count), size);
    for (std::size_t i = 0; i < count; ++i) {
        if (group[i] < static_cast<std::uint64_t>(groups)) continue;
        throw Error(
            ErrorCode::format, packed_place(tensor.parts()[index].tensor),
            "expected groups from 0 to " + std::to_string(groups - 1),
            "found " + std::to_string(static_cast<std::int32_t>(group[i])) + " at element " + std::to_string(i));
    }
    return group;
}

std::vector<std::uint32_t> groups_in_order(std::int64_t columns, std::int64_t size) {
    std::vector<std::uint32_t> group(static_cast<std::size_t>(columns));
    for (std::size_t i = 0; i < group.size(); ++i)
        group[i] = static_cast<std::uint32_t>(i / static_cast<std::size_t>(size));
    return group;
}

}  // namespace headscope::checkpoint

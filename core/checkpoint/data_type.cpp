// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/data_type.h"

#include <algorithm>
#include <array>

namespace headscope::checkpoint {
namespace {

struct Description {
    DataType type;
    std::string_view name;
    int bits;
    bool floating;
};

constexpr std::array<Description, 22> descriptions = {{
    {DataType::boolean, "BOOL", 8, false},
    {DataType::f4, "F4", 4, true},
    {DataType::f6_e2m3, "F6_E2M3", 6, true},
    {DataType::f6_e3m2, "F6_E3M2", 6, true},
    {DataType::u8, "U8", 8, false},
    {DataType::i8, "I8", 8, false},
    {DataType::f8_e5m2, "F8_E5M2", 8, true},
    {DataType::f8_e4m3, "F8_E4M3", 8, true},
    {DataType::f8_e8m0, "F8_E8M0", 8, true},
    {DataType::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, true},
    {DataType::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, true},
    {DataType::i16, "I16", 16, false},
    {DataType::u16, "U16", 16, false},
    {DataType::f16, "F16", 16, true},
    {DataType::bf16, "BF16", 16, true},
    {DataType::i32, "I32", 32, false},
    {DataType::u32, "U32", 32, false},
    {DataType::f32, "F32", 32, true},
    {DataType::c64, "C64", 64, false},
    {DataType::i64, "I64", 64, false},
    {DataType::u64, "U64", 64, false},
    {DataType::f64, "F64", 64, true},
}};

const Description& describe(DataType type) {
    return descriptions.at(static_cast<std::size_t>(type));
}

static_assert([] {
    for (std::size_t i = 0; i < descriptions.size(); ++i) {
        if (descriptions.at(i).type != static_cast<DataType>(i)) return false;
    }
    return true;
}());

}  // namespace

std::string_view name(DataType type) {
    return describe(type).name;
}
int bits(DataType type) {
    return describe(type).bits;
}
bool is_floating(DataType type) {
    return describe(type).floating;
}

std::optional<DataType> data_type(std::string_view name) {
    const auto* found = std::find_if(descriptions.begin(), descriptions.end(),
                                     [&](const Description& description) { return description.name == name; });
    if (found == descriptions.end()) return std::nullopt;
    return found->type;
}

std::optional<std::uint64_t> checked_bits(const std::vector<std::int64_t>& shape, DataType type,
                                          std::int64_t& elements) {
    std::uint64_t product = 1;
    for (const std::int64_t size : shape) {
        if (size < 0 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product))
            return std::nullopt;
    }
    std::uint64_t all_bits = 0;
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(bits(type)), &all_bits)) return std::nullopt;
    elements = static_cast<std::int64_t>(product);  // fits: a type has at least 4 bits
    return all_bits;
}

}  // namespace headscope::checkpoint

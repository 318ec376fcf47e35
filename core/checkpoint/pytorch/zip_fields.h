// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace headscope::checkpoint {

/// The little-endian fields of a zip record. Offsets must lie within it: they are constants of the format.
class ZipFields {
public:
    ZipFields(const char* bytes, std::size_t size) : bytes_(bytes, size) {}
    std::uint16_t u16(std::size_t offset) const { return value<std::uint16_t>(offset); }
    std::uint32_t u32(std::size_t offset) const { return value<std::uint32_t>(offset); }
    std::uint64_t u64(std::size_t offset) const { return value<std::uint64_t>(offset); }

private:
    template <class Number>
    Number value(std::size_t offset) const {
        Number number = 0;
        if (offset + sizeof number <= bytes_.size()) std::memcpy(&number, bytes_.data() + offset, sizeof number);
        return number;
    }
    std::string_view bytes_;
};

/// A member's sizes and place, in 32 bits or, where those are all ones, from the zip64 extra field.
struct Zip64Sizes {
    std::uint64_t plain = 0;
    std::uint64_t packed = 0;
    std::uint64_t header = 0;
};

/// Takes from `extra` what `sizes` leaves to it. False if the fields are malformed, the zip64 field comes twice or
/// lacks what it is needed for.
inline bool read_zip64_extra(std::string_view extra, Zip64Sizes& sizes) {
    std::string_view zip64;
    bool seen = false;
    while (!extra.empty()) {
        if (extra.size() < 4) return false;
        const ZipFields head(extra.data(), extra.size());
        const std::size_t size = head.u16(2);
        if (size > extra.size() - 4) return false;
        if (head.u16(0) == 1) {
            if (seen) return false;
            seen = true;
            zip64 = extra.substr(4, size);
        }
        extra.remove_prefix(4 + size);
    }
    for (std::uint64_t* field : {&sizes.plain, &sizes.packed, &sizes.header}) {
        if (*field != 0xFFFFFFFF) continue;
        if (zip64.size() < 8) return false;
        *field = ZipFields(zip64.data(), 8).u64(0);
        zip64.remove_prefix(8);
    }
    return true;
}

}  // namespace headscope::checkpoint

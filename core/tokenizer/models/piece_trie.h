// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// All pieces that begin at a place of a text, in time of the longest one: a double array (Aoe 1989), where the child of
// a node by a byte lies at base ^ byte, and knows its parent.

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope::tokenizer {

class PieceTrie {
public:
    PieceTrie() = default;
    /// Pieces and their values, which are not negative; of equal pieces the last one counts. Empty ones are never
    /// found.
    explicit PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces);

    /// Calls take(length, value) for every piece that `text` begins with, from the shortest on.
    template <class Take>
    void find(std::string_view text, const Take& take) const {
        std::uint32_t node = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::uint32_t next = units_[node].base ^ static_cast<unsigned char>(text[i]);
            if (units_[next].parent != node) return;
            node = next;
            if (units_[node].value >= 0) take(i + 1, units_[node].value);
        }
    }

    /// The value of exactly this piece, or -1.
    std::int32_t value(std::string_view piece) const {
        std::uint32_t node = 0;
        for (const char byte : piece) {
            const std::uint32_t next = units_[node].base ^ static_cast<unsigned char>(byte);
            if (units_[next].parent != node) return -1;
            node = next;
        }
        return units_[node].value;
    }

private:
    static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

    struct Unit {
        std::uint32_t base = 0;
        std::uint32_t parent = nobody;
        std::int32_t value = -1;
    };
    class Builder;

    std::vector<Unit> units_ = std::vector<Unit>(256);
};

}  // namespace headscope::tokenizer

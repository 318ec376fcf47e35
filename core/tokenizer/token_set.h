// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Finds any of many strings in a text: leftmost, of those the longest, none overlapping. Linear in the text whatever
// the strings are: an Aho-Corasick automaton of the reversed strings (Aho and Corasick 1975) runs backwards and notes
// the longest string that begins at each place; a forward walk then picks.

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headscope::tokenizer {

class TokenSet {
public:
    struct Found {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        std::int32_t value = 0;
    };

    TokenSet();
    /// Adds a string that is not empty; of equal strings the first stays. Not after finish().
    void add(std::string_view text, std::int32_t value);
    void finish();
    bool empty() const noexcept { return nodes_.size() == 1; }
    /// Calls take for each one found, from left to right; keeps no list of more than some megabytes.
    void each(std::string_view text, const std::function<void(const Found&)>& take) const;
    std::vector<Found> find(std::string_view text) const;

private:
    struct Node {
        std::uint32_t fail = 0;
        std::uint32_t length = 0;  ///< of the longest string that ends (backwards) here; 0 for none
        std::int32_t value = 0;
        std::uint32_t parent = 0;
        std::uint32_t first_edge = 0;  ///< of edges_, once finished
        std::uint16_t edge_count = 0;
        unsigned char byte = 0;
    };
    struct Edge {
        std::uint32_t child = 0;
        unsigned char byte = 0;
    };

    std::uint32_t child(std::uint32_t node, unsigned char byte) const;
    std::uint32_t walk(std::string_view text, std::size_t begin, std::size_t end, std::uint32_t node,
                       std::vector<Found>* found) const;

    std::vector<Node> nodes_;
    std::array<std::uint32_t, 256> roots_{};  ///< children of the root, which nearly every byte of a text asks for
    std::unordered_map<std::uint64_t, std::uint32_t> growing_;  ///< edges while strings are added
    std::vector<Edge> edges_;                                   ///< node after node, by byte
};

}  // namespace headscope::tokenizer

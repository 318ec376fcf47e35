// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/models/piece_trie.h"

#include <algorithm>
#include <deque>

namespace headscope::tokenizer {

// Children of a node share a block of 256 units. Places for them are looked for in the few newest blocks only, so that
// building takes time in proportion to the pieces' bytes.
class PieceTrie::Builder {
public:
    using Pieces = std::vector<std::pair<std::string_view, std::int32_t>>;

    Builder(std::vector<Unit>& units, const Pieces& pieces) : units_(units), pieces_(pieces) {}

    void run() {
        units_.clear();
        open_block();
        units_[0].parent = root_parent;
        std::vector<Range> todo{{0, pieces_.size(), 0, 0}};
        while (!todo.empty()) {
            Range range = todo.back();
            todo.pop_back();
            // Sorted: pieces that end here come first.
            for (; range.begin < range.end && pieces_[range.begin].first.size() == range.depth; ++range.begin) {
                units_[range.node].value = pieces_[range.begin].second;
            }
            if (range.begin < range.end) place_children(range, todo);
        }
    }

private:
    static constexpr std::uint32_t block_size = 256;
    static constexpr std::size_t most_blocks = 16;
    static constexpr std::uint32_t root_parent = nobody - 1;

    struct Range {
        std::size_t begin = 0;  ///< pieces
        std::size_t end = 0;
        std::size_t depth = 0;  ///< bytes that they share
        std::uint32_t node = 0;
    };

    unsigned char label(std::size_t piece, std::size_t depth) const {
        return static_cast<unsigned char>(pieces_[piece].first[depth]);
    }

    void place_children(const Range& range, std::vector<Range>& todo) {
        labels_.clear();
        std::vector<Range> children;
        for (std::size_t i = range.begin; i < range.end; ++i) {
            const unsigned char own = label(i, range.depth);
            if (!labels_.empty() && labels_.back() == own) continue;
            if (!children.empty()) children.back().end = i;
            labels_.push_back(own);
            children.push_back({i, range.end, range.depth + 1, 0});
        }
        const std::uint32_t base = find_base();
        units_[range.node].base = base;
        for (std::size_t i = 0; i < labels_.size(); ++i) {
            children[i].node = base ^ labels_[i];
            units_[children[i].node].parent = range.node;
        }
        todo.insert(todo.end(), children.rbegin(), children.rend());
    }

    bool fits(std::uint32_t base) const {
        return std::all_of(labels_.begin(), labels_.end(),
                           [&](unsigned char own) { return units_[base ^ own].parent == nobody; });
    }

    std::uint32_t find_base() {
        for (auto block = open_.rbegin(); block != open_.rend(); ++block) {
            for (; block->next < block_size; ++block->next) {
                if (units_[block->first + block->next].parent == nobody) break;
            }
            // From the block's first free unit on: a few tries a block show whether it is too full.
            int tries = 0;
            for (std::uint32_t at = block->next; at < block_size && tries < 32; ++at) {
                const std::uint32_t unit = block->first + at;
                if (units_[unit].parent != nobody) continue;
                ++tries;
                if (const std::uint32_t base = unit ^ labels_.front(); fits(base)) return base;
            }
        }
        open_block();
        return open_.back().first;  // all of it is free
    }

    void open_block() {
        open_.push_back({static_cast<std::uint32_t>(units_.size()), 0});
        units_.resize(units_.size() + block_size);
        if (open_.size() > most_blocks) open_.pop_front();
    }

    struct Block {
        std::uint32_t first = 0;
        std::uint32_t next = 0;  ///< no free unit lies before it
    };

    std::vector<Unit>& units_;
    const Pieces& pieces_;
    std::vector<unsigned char> labels_;
    std::deque<Block> open_;
};

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces) {
    std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::erase_if(pieces, [](const auto& piece) { return piece.first.empty(); });
    Builder(units_, pieces).run();
}

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/token_set.h"

#include <algorithm>
#include <numeric>

namespace headscope::tokenizer {

namespace {
std::uint64_t key(std::uint32_t node, unsigned char byte) {
    return (static_cast<std::uint64_t>(node) << 8) | byte;
}
}  // namespace

TokenSet::TokenSet() : nodes_(1) {}

std::uint32_t TokenSet::child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_[byte];
    const auto begin = edges_.begin() + nodes_[node].first_edge;
    const auto end = begin + nodes_[node].edge_count;
    const auto found =
        std::lower_bound(begin, end, byte, [](const Edge& edge, unsigned char b) { return edge.byte < b; });
    return found != end && found->byte == byte ? found->child : 0;
}

void TokenSet::add(std::string_view text, std::int32_t value) {
    std::uint32_t node = 0;
    for (auto letter = text.rbegin(); letter != text.rend(); ++letter) {
        const auto byte = static_cast<unsigned char>(*letter);
        const auto fresh = static_cast<std::uint32_t>(nodes_.size());
        const auto [entry, added] = growing_.try_emplace(key(node, byte), fresh);
        if (added) {
            Node next;
            next.parent = node;
            next.byte = byte;
            nodes_.push_back(next);
        }
        node = entry->second;
    }
    if (nodes_[node].length == 0) {
        nodes_[node].length = static_cast<std::uint32_t>(text.size());
        nodes_[node].value = value;
    }
}

void TokenSet::finish() {
    std::vector<std::uint64_t> keys;
    keys.reserve(growing_.size());
    for (const auto& [key, child] : growing_) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    edges_.reserve(keys.size());
    for (const std::uint64_t edge : keys) {
        const auto byte = static_cast<unsigned char>(edge & 255);
        const std::uint32_t next = growing_.at(edge);
        Node& node = nodes_[edge >> 8];
        if (edge >> 8 == 0) roots_[byte] = next;
        if (node.edge_count++ == 0) node.first_edge = static_cast<std::uint32_t>(edges_.size());
        edges_.push_back({next, byte});
    }
    growing_ = {};
    // Nodes in order of depth, so that a node's fail link, which is shallower, is ready before the node.
    std::vector<std::uint32_t> depth(nodes_.size(), 0);
    for (std::size_t i = 1; i < nodes_.size(); ++i) depth[i] = depth[nodes_[i].parent] + 1;
    std::vector<std::uint32_t> order(nodes_.size() - 1);
    std::iota(order.begin(), order.end(), 1u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return depth[a] < depth[b]; });
    for (const std::uint32_t index : order) {
        Node& node = nodes_[index];
        if (node.parent == 0) continue;
        std::uint32_t back = nodes_[node.parent].fail;
        std::uint32_t next = child(back, node.byte);
        while (next == 0 && back != 0) {
            back = nodes_[back].fail;
            next = child(back, node.byte);
        }
        node.fail = next;
        if (node.length == 0 && next != 0) {
            node.length = nodes_[next].length;
            node.value = nodes_[next].value;
        }
    }
}

// Backwards over bytes [begin, end) from the state that what follows them left; what begins at each of them, from the
// last on. Returns the state at `begin`.
std::uint32_t TokenSet::walk(std::string_view text, std::size_t begin, std::size_t end, std::uint32_t node,
                             std::vector<Found>* found) const {
    for (std::size_t at = end; at-- > begin;) {
        const auto byte = static_cast<unsigned char>(text[at]);
        std::uint32_t next = child(node, byte);
        while (next == 0 && node != 0) {
            node = nodes_[node].fail;
            next = child(node, byte);
        }
        node = next;
        if (found != nullptr && nodes_[node].length != 0) {
            const auto place = static_cast<std::uint32_t>(at);
            found->push_back({place, place + nodes_[node].length, nodes_[node].value});
        }
    }
    return node;
}

void TokenSet::each(std::string_view text, const std::function<void(const Found&)>& take) const {
    if (empty()) return;
    constexpr std::size_t block = 1 << 16;
    constexpr std::size_t most_kept = 1 << 20;
    // Backwards over all of it. Where that finds more than is to be kept, only the states are, before which a block is
    // walked again when its turn comes.
    const std::size_t blocks = (text.size() + block - 1) / block;
    std::vector<std::uint32_t> states;
    std::vector<Found> found;
    std::uint32_t node = 0;
    std::size_t again = blocks;  // blocks to walk again, from the first on
    for (; again > 0 && found.size() <= most_kept; --again) {
        node = walk(text, (again - 1) * block, std::min(text.size(), again * block), node, &found);
    }
    states.resize(again);
    for (std::size_t i = again; i-- > 0;) {
        states[i] = node;
        node = walk(text, i * block, (i + 1) * block, node, nullptr);
    }
    std::uint32_t last = 0;
    const auto pick = [&](const std::vector<Found>& list) {
        for (auto match = list.rbegin(); match != list.rend(); ++match) {
            if (match->begin < last) continue;
            last = match->end;
            take(*match);
        }
    };
    std::vector<Found> part;
    for (std::size_t i = 0; i < again; ++i) {
        part.clear();
        walk(text, i * block, (i + 1) * block, states[i], &part);
        pick(part);
    }
    pick(found);
}

std::vector<TokenSet::Found> TokenSet::find(std::string_view text) const {
    std::vector<Found> found;
    each(text, [&found](const Found& match) { found.push_back(match); });
    return found;
}

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace headscope::tokenizer {

struct Token {
    std::int32_t id = 0;
    std::uint32_t begin = 0;  ///< bytes of the normalised text
    std::uint32_t end = 0;
};

/// Tokens on their way from a model, handed on some thousands at a time: a text that is one word has millions.
class TokenQueue {
public:
    using HandOn = std::function<void(std::span<const Token>)>;
    explicit TokenQueue(HandOn hand_on) : hand_on_(std::move(hand_on)) {}

    void add(const Token& token) { list_.push_back(token); }
    /// Those that are not handed on yet.
    const std::vector<Token>& waiting() const noexcept { return list_; }
    /// Hands on what waits if it is much: after each word, and now and then within a long one.
    void hand_on_some() {
        if (list_.size() >= enough) hand_on();
    }
    void hand_on() {
        hand_on_(list_);
        list_.clear();
    }

private:
    static constexpr std::size_t enough = 4096;
    std::vector<Token> list_;
    HandOn hand_on_;
};

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <numeric>

#include "core/base/error.h"
#include "core/data/batch/batch_source.h"
#include "core/evaluation/rolling_windows.h"

using namespace headscope;
using evaluation::RollingWindows;
using evaluation::Window;
using Ids = std::vector<std::int64_t>;

namespace {

/// lm-eval-harness, utils.py: get_rolling_token_windows and make_disjoint_window, on a list that is there as a whole.
/// A pair is (context, continuation); the model reads context + continuation without its last token.
std::vector<Window> by_the_book(const Ids& tokens, std::int64_t prefix, std::int64_t length,
                                std::int64_t context_length) {
    std::vector<Window> windows;
    const auto count = static_cast<std::int64_t>(tokens.size());
    const auto part = [&](std::int64_t begin, std::int64_t end) {
        return Ids(tokens.begin() + begin, tokens.begin() + end);
    };
    const auto add = [&](Ids input, const Ids& predicted) {
        Window window;
        window.targets.assign(input.size() - predicted.size(), data::no_target);
        window.targets.insert(window.targets.end(), predicted.begin(), predicted.end());
        window.ids = std::move(input);
        windows.push_back(std::move(window));
    };
    if (count == 0) return windows;
    const std::int64_t step = length - context_length + 1;
    std::int64_t done = std::min(length, count);
    Ids first{prefix};
    const Ids head = part(0, done - 1);
    first.insert(first.end(), head.begin(), head.end());
    add(first, part(0, done));
    while (done < count) {
        const std::int64_t now = std::min(count - done, step), end = done + now;
        // The list has the prefix before it, so index -1 is that.
        Ids input = end - length - 1 >= 0 ? part(end - length - 1, end - 1) : part(0, end - 1);
        if (end - length - 1 < 0) input.insert(input.begin(), prefix);
        add(input, part(end - now, end));
        done = end;
    }
    return windows;
}

std::vector<Window> rolled(const Ids& tokens, std::optional<std::int64_t> prefix, std::int64_t length,
                           std::int64_t stride, std::size_t piece) {
    std::vector<Window> windows;
    RollingWindows rolling(length, stride, prefix, [&](Window window) { windows.push_back(std::move(window)); });
    for (std::size_t at = 0; at < tokens.size(); at += piece) {
        const std::vector<std::int32_t> part(
            tokens.begin() + static_cast<std::ptrdiff_t>(at),
            tokens.begin() + static_cast<std::ptrdiff_t>(std::min(at + piece, tokens.size())));
        rolling.add(part);
    }
    rolling.finish();
    return windows;
}

}  // namespace

TEST_CASE("Windows are those of lm-eval-harness, however the text comes", "[evaluation]") {
    for (std::int64_t count : {0, 1, 2, 5, 8, 9, 16, 17, 31, 64}) {
        Ids tokens(static_cast<std::size_t>(count));
        std::iota(tokens.begin(), tokens.end(), 100);
        for (std::int64_t length : {1, 2, 3, 8, 16, 100}) {
            for (std::int64_t context = 1; context <= length; context += 3) {
                const auto wanted = by_the_book(tokens, 7, length, context);
                for (std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
                    INFO(count << " tokens, length " << length << ", context " << context << ", pieces of " << piece);
                    const auto found = rolled(tokens, 7, length, length - context + 1, piece);
                    REQUIRE(found.size() == wanted.size());
                    for (std::size_t i = 0; i < found.size(); ++i) {
                        CHECK(found[i].ids == wanted[i].ids);
                        CHECK(found[i].targets == wanted[i].targets);
                    }
                }
            }
        }
    }
}

TEST_CASE("Without a prefix the first token is read and not predicted", "[evaluation]") {
    const auto windows = rolled({1, 2, 3, 4, 5}, std::nullopt, 3, 3, 5);
    REQUIRE(windows.size() == 2);
    CHECK(windows[0].ids == Ids{1, 2, 3});
    CHECK(windows[0].targets == Ids{2, 3, 4});
    CHECK(windows[1].ids == Ids{2, 3, 4});
    CHECK(windows[1].targets == Ids{-1, -1, 5});
    CHECK(rolled({1}, std::nullopt, 3, 3, 1).empty());
}

TEST_CASE("Lengths and strides that cannot be are refused", "[evaluation]") {
    const auto make = [](std::int64_t length, std::int64_t stride) {
        RollingWindows(length, stride, std::nullopt, [](const Window&) {});
    };
    CHECK_THROWS_AS(make(0, 1), Error);
    CHECK_THROWS_AS(make(8, 9), Error);
    CHECK_THROWS_AS(make(8, 0), Error);
}

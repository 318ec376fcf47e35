// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Lists of modules in quantization settings: names, and regular expressions behind "re:".

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::checkpoint {

/// A regular expression as Python's re.match has it: it must match at the start, and may end before the name does.
/// Groups, classes, repeats, alternatives, anchors, \d \w \s, lookahead; no back references, no lookbehind.
class NamePattern {
public:
    /// Empty for an expression of another kind, or longer than 1000 bytes.
    static std::optional<NamePattern> parse(std::string_view expression);
    /// Adds the states that it went through to `steps`; throws Error(limit) beyond most_steps.
    bool matches(std::string_view name, std::uint64_t& steps) const;
    static constexpr std::uint64_t most_steps = 300'000'000;

private:
    friend class NamePatternParser;
    struct State {
        enum class Kind { character, jump, split, begin, end, ahead, not_ahead, match } kind = Kind::match;
        std::size_t next = 0, other = 0;  ///< split: both; ahead: `other` is the start of its expression
        std::size_t set = 0;              ///< character: index of its class
    };
    bool run(std::size_t start, std::size_t at, std::string_view name, std::uint64_t& steps) const;

    std::vector<State> states_;
    std::vector<std::bitset<256>> sets_;
};

/// Entries of modules_to_not_convert, ignore, skip_modules: a name covers itself, all modules below it, and all modules
/// that end in it at a dot. "*" in a name stands for any characters.
class ModuleList {
public:
    ModuleList() = default;
    /// Throws Error(unsupported), with `where` as place, for an expression that NamePattern does not know.
    ModuleList(const std::vector<std::string>& entries, const std::string& where);

    /// The entry that covers the module; empty: none. Adds to `steps` as NamePattern does.
    std::string_view covering(std::string_view module, std::uint64_t& steps) const;

private:
    struct Expression {
        std::string text;
        NamePattern pattern;
    };
    std::set<std::string, std::less<>> names_;
    std::vector<Expression> expressions_;
};

}  // namespace headscope::checkpoint

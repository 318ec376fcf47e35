// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A small mutator for the plain main: not guided by coverage, but the same changes for the same seed on every machine.

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::fuzz {

/// The words of a libFuzzer dictionary: lines of `"word"`, with \\, \" and \xNN inside; # begins a comment.
std::vector<std::string> read_dictionary(const std::string& path);

class Mutator {
public:
    Mutator(std::uint64_t seed, std::vector<std::string> words) : state_(seed), words_(std::move(words)) {}

    /// A few changes to one of the inputs, perhaps with parts of another. At most `longest` bytes.
    std::string mutate(const std::vector<std::string>& inputs, std::size_t longest);

private:
    std::uint64_t next();
    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(next() % bound); }
    void change(std::string& text, const std::string& other);
    void change_number(std::string& text);

    std::uint64_t state_;
    std::vector<std::string> words_;
};

}  // namespace headscope::fuzz

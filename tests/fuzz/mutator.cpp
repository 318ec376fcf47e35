// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

namespace headscope::fuzz {
namespace {

constexpr std::array<const char*, 18> numbers = {"0",
                                                 "1",
                                                 "-1",
                                                 "2",
                                                 "3",
                                                 "0.5",
                                                 "1e308",
                                                 "1e-320",
                                                 "65536",
                                                 "2147483647",
                                                 "2147483648",
                                                 "-0",
                                                 "1e999",
                                                 "4294967296",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "18446744073709551615",
                                                 "18446744073709551616"};

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

std::vector<std::string> read_dictionary(const std::string& path) {
    std::vector<std::string> words;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find('"'), last = line.rfind('"');
        if (line.empty() || line[0] == '#' || last == first) continue;
        std::string word;
        for (std::size_t i = first + 1; i < last; ++i) {
            if (line[i] != '\\') {
                word += line[i];
            } else if (line[i + 1] == 'x') {
                word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
                i += 3;
            } else {
                word += line[++i];
            }
        }
        words.push_back(word);
    }
    return words;
}

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
std::uint64_t Mutator::next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
}

void Mutator::change_number(std::string& text) {
    const std::size_t from = below(text.size());
    const auto digit = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_digit);
    const auto end = std::find_if_not(digit, text.end(), is_digit);
    const auto at = static_cast<std::size_t>(digit - text.begin());
    text.replace(at, static_cast<std::size_t>(end - digit), numbers.at(below(numbers.size())));
}

void Mutator::change(std::string& text, const std::string& other) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t count = std::min(text.size() - at, std::size_t{1} << below(7));
    switch (below(9)) {
        case 0:  // a bit
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
            break;
        case 1:  // a byte
            if (at < text.size()) text[at] = static_cast<char>(below(256));
            break;
        case 2:
            text.insert(at, 1 + below(4), static_cast<char>(below(256)));
            break;
        case 3:
            text.erase(at, count);
            break;
        case 4:
            text.insert(below(text.size() + 1), text.substr(at, count));
            break;
        case 5:
            change_number(text);
            break;
        case 6:  // a word, put in or over what is there
            if (!words_.empty()) text.replace(at, below(2) * count, words_[below(words_.size())]);
            break;
        case 7: {  // a part of another input
            const std::size_t from = below(other.size() + 1);
            text.replace(at, below(2) * count, other, from, std::size_t{1} << below(9));
            break;
        }
        default:
            text.resize(at);
    }
}

std::string Mutator::mutate(const std::vector<std::string>& inputs, std::size_t longest) {
    std::string text = inputs.empty() ? std::string() : inputs[below(inputs.size())];
    static const std::string nothing;
    for (std::size_t changes = 1 + below(5); changes > 0; --changes) {
        change(text, inputs.empty() ? nothing : inputs[below(inputs.size())]);
    }
    if (text.size() > longest) text.resize(longest);
    return text;
}

}  // namespace headscope::fuzz

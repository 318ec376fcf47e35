// SPDX-License-Identifier: GPL-3.0-or-later
// Number words in two made-up languages. The first says each digit with its place, the highest first ("du cen kar dek
// un"); thousands are such a number of their own with "mil". The second says units, then tens in words of their own,
// then hundreds with "hund", and thousands last. Both leave zeros out. A tenth of the numbers is held out, the same
// ones whatever the seed. A row of tokens without items is such pairs one after the other: source, =, target, ;
#include <array>

#include "core/data/generators/generators.h"

namespace headscope::data {
namespace {

constexpr std::array<const char*, 15> first_words = {"zo", "un",  "du",  "tri", "kar", "pen", "ses", "sep",
                                                     "ok", "nov", "dek", "cen", "mil", "=",   ";"};
constexpr std::int64_t first_place = 9;  // "dek" stands ten places up: place 1 is word 9 + 1
constexpr std::int64_t first_thousand = 12, equals = 13, end = 14;
constexpr std::array<const char*, 21> second_words = {
    "nul",    "ena",    "dva",    "tir",    "cet",    "pet",    "sht",    "sed",    "osm",  "dev", "enty",
    "dvanty", "tirnty", "cetnty", "petnty", "shtnty", "sednty", "osmnty", "devnty", "hund", "tus"};
constexpr auto second_base = static_cast<std::int64_t>(first_words.size());
constexpr std::int64_t second_tens = 9, second_hundred = 19, second_thousand = 20;
constexpr std::int64_t held_out_of = 10;

using Words = std::vector<std::int64_t>;

void say_first(std::int64_t number, Words& words) {
    if (number >= 1000) {
        say_first(number / 1000, words);
        words.push_back(first_thousand);
    }
    std::int64_t value = 100;
    for (std::int64_t place = 2; place >= 0; --place, value /= 10) {
        const std::int64_t digit = number / value % 10;
        if (digit == 0) continue;
        words.push_back(digit);
        if (place > 0) words.push_back(first_place + place);
    }
}

void say_second(std::int64_t number, Words& words) {
    const std::int64_t units = number % 10, tens = number / 10 % 10, hundreds = number / 100 % 10;
    if (units > 0) words.push_back(second_base + units);
    if (tens > 0) words.push_back(second_base + second_tens + tens);
    if (hundreds > 0) words.insert(words.end(), {second_base + hundreds, second_base + second_hundred});
    if (number < 1000) return;
    say_second(number / 1000, words);
    words.push_back(second_base + second_thousand);
}

Words source_of(std::int64_t number) {
    Words words;
    if (number == 0) words.push_back(0);
    say_first(number, words);
    return words;
}

Words target_of(std::int64_t number) {
    Words words;
    if (number == 0) words.push_back(second_base);
    say_second(number, words);
    return words;
}

bool held_out(std::int64_t number) {
    return splitmix64(static_cast<std::uint64_t>(number) + 1) % held_out_of == 0;
}

std::int64_t draw(Random& random, std::int64_t count, Split split) {
    for (;;) {
        const std::int64_t number = random.below(count);
        if (held_out(number) == (split == Split::validation)) return number;
    }
}

class NumberSource final : public GeneratedSource {
public:
    NumberSource(std::int64_t length, std::int64_t vocabulary, std::int64_t count, Split split, std::uint64_t seed)
        : GeneratedSource(length, vocabulary, split, seed), count_(count), split_(split) {}

private:
    void fill(Random& random, std::int64_t* ids, std::int64_t* targets) const override {
        fill_from(
            [&](Words& words) {
                const std::int64_t number = draw(random, count_, split_);
                const Words source = source_of(number), target = target_of(number);
                words.insert(words.end(), source.begin(), source.end());
                words.push_back(equals);
                words.insert(words.end(), target.begin(), target.end());
                words.push_back(end);
            },
            length(), ids, targets);
    }
    std::int64_t count_;
    Split split_;
};

}  // namespace

Generator make_translation(const GeneratorOptions& options, std::int64_t length) {
    std::int64_t count = 1;
    for (std::int64_t i = 0; i < options.whole("digits"); ++i) count *= 10;
    Generator out;
    out.pieces.assign(first_words.begin(), first_words.end());
    out.pieces.insert(out.pieces.end(), second_words.begin(), second_words.end());
    const auto vocabulary = static_cast<std::int64_t>(out.pieces.size());
    out.make = [=](Split split, std::uint64_t seed) {
        return std::make_unique<NumberSource>(length, vocabulary, count, split, seed);
    };
    out.item = [count, pieces = out.pieces](Split split, std::uint64_t seed, std::int64_t index) {
        Random random(item_key(split, seed), static_cast<std::uint64_t>(index));
        const std::int64_t number = draw(random, count, split);
        return TextItem{joined(pieces, source_of(number)), joined(pieces, target_of(number)), true, 0};
    };
    return out;
}

}  // namespace headscope::data

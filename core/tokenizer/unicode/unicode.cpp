// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/unicode/unicode.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

namespace headscope::tokenizer {

namespace {

struct CategoryRun {
    char32_t first;
    Category category;
};

struct CaseRun {
    char32_t first;
    char32_t last;
    char32_t step;
    std::int32_t difference;
};

using enum Category;

struct PropertyName {
    std::string_view name;
    std::uint32_t first;
    std::uint32_t count;
};

#include "core/tokenizer/unicode/property_tables.inc"
#include "core/tokenizer/unicode/unicode_tables.inc"

constexpr char32_t points = 0x110000;

bool contains(std::span<const CodePointRange> ranges, char32_t c) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), c,
                         [](char32_t point, const CodePointRange& range) { return point < range.first; });
    return after != ranges.begin() && c <= std::prev(after)->last;
}

constexpr std::uint32_t bit(Category c) {
    return 1u << static_cast<unsigned>(c);
}

constexpr std::uint32_t letters = bit(lu) | bit(ll) | bit(lt) | bit(lm) | bit(lo);
constexpr std::uint32_t marks = bit(mn) | bit(mc) | bit(me);
constexpr std::uint32_t numbers = bit(nd) | bit(nl) | bit(no);
constexpr std::uint32_t word_base = letters | marks | bit(nd) | bit(nl) | bit(pc);

// Two stages: blocks of 256 points, equal blocks stored once. About 60 KB, built in a millisecond at first use.
class BitTable {
public:
    BitTable() {
        std::vector<std::uint8_t> all(points, 0);
        for (std::size_t i = 0; i < std::size(category_runs); ++i) {
            const char32_t end = i + 1 < std::size(category_runs) ? category_runs[i + 1].first : points;
            const std::uint32_t own = bit(category_runs[i].category);
            std::uint8_t bits = 0;
            if ((own & letters) != 0) bits |= bit_letter;
            if ((own & numbers) != 0) bits |= bit_number;
            if ((own & marks) != 0) bits |= bit_mark;
            if ((own & word_base) != 0) bits |= bit_word;
            std::fill(all.begin() + category_runs[i].first, all.begin() + end, bits);
        }
        const auto add = [&](std::span<const CodePointRange> ranges, std::uint8_t bits) {
            for (const CodePointRange& range : ranges) {
                for (char32_t c = range.first; c <= range.last; ++c) all[c] |= bits;
            }
        };
        add(white_space, bit_space);
        add(word_extra, bit_word);
        add(numeric, bit_numeric);
        add(old_punctuation, bit_punctuation);
        std::map<std::array<std::uint8_t, 256>, std::uint16_t> known;
        for (char32_t first = 0; first < points; first += 256) {
            std::array<std::uint8_t, 256> block{};
            std::copy_n(all.begin() + first, 256, block.begin());
            const auto [entry, added] = known.try_emplace(block, static_cast<std::uint16_t>(known.size()));
            if (added) blocks_.insert(blocks_.end(), block.begin(), block.end());
            index_[first / 256] = entry->second;
        }
    }

    std::uint8_t operator[](char32_t c) const { return blocks_[index_[c >> 8] * 256u + (c & 255u)]; }

private:
    std::array<std::uint16_t, points / 256> index_{};
    std::vector<std::uint8_t> blocks_;
};

// Categories that a name of a property stands for; 0 for names that are no general category.
std::uint32_t categories_of(std::string_view name) {
    static constexpr std::array<std::string_view, 30> short_names = {
        "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd", "nl", "no", "pc", "pd", "ps", "pe",
        "pi", "pf", "po", "sm", "sc", "sk", "so", "zs", "zl", "zp", "cc", "cf", "cs", "co", "cn"};
    static constexpr std::array<std::string_view, 30> long_names = {
        "uppercaseletter",    "lowercaseletter",  "titlecaseletter",  "modifierletter",
        "otherletter",        "nonspacingmark",   "spacingmark",      "enclosingmark",
        "decimalnumber",      "letternumber",     "othernumber",      "connectorpunctuation",
        "dashpunctuation",    "openpunctuation",  "closepunctuation", "initialpunctuation",
        "finalpunctuation",   "otherpunctuation", "mathsymbol",       "currencysymbol",
        "modifiersymbol",     "othersymbol",      "spaceseparator",   "lineseparator",
        "paragraphseparator", "control",          "format",           "surrogate",
        "privateuse",         "unassigned"};
    for (std::size_t i = 0; i < short_names.size(); ++i) {
        if (name == short_names[i] || name == long_names[i]) return 1u << i;
    }
    struct Group {
        std::string_view short_name;
        std::string_view long_name;
        std::uint32_t set;
    };
    const Group groups[] = {
        {"l", "letter", letters},
        {"lc", "casedletter", bit(lu) | bit(ll) | bit(lt)},
        {"m", "mark", marks},
        {"n", "number", numbers},
        {"p", "punctuation", bit(pc) | bit(pd) | bit(ps) | bit(pe) | bit(pi) | bit(pf) | bit(po)},
        {"s", "symbol", bit(sm) | bit(sc) | bit(sk) | bit(so)},
        {"z", "separator", bit(zs) | bit(zl) | bit(zp)},
        {"c", "other", bit(cc) | bit(cf) | bit(cs) | bit(co) | bit(cn)},
    };
    for (const Group& group : groups) {
        if (name == group.short_name || name == group.long_name) return group.set;
    }
    return 0;
}

// A property's name as it compares: small letters without spaces, underscores and hyphens.
std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char letter : name) {
        if (letter == ' ' || letter == '_' || letter == '-') continue;
        plain.push_back(letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter);
    }
    return plain;
}

std::vector<CodePointRange> ranges_of(std::uint32_t set) {
    std::vector<CodePointRange> ranges;
    for (std::size_t i = 0; i < std::size(category_runs); ++i) {
        if ((set & bit(category_runs[i].category)) == 0) continue;
        const char32_t end = i + 1 < std::size(category_runs) ? category_runs[i + 1].first : points;
        if (!ranges.empty() && ranges.back().last + 1 == category_runs[i].first) {
            ranges.back().last = end - 1;
        } else {
            ranges.push_back({category_runs[i].first, end - 1});
        }
    }
    return ranges;
}

}  // namespace

Category category(char32_t c) {
    const auto after = std::upper_bound(std::begin(category_runs), std::end(category_runs), c,
                                        [](char32_t point, const CategoryRun& run) { return point < run.first; });
    return std::prev(after)->category;
}

std::uint8_t character_bits(char32_t c) {
    static const BitTable table;
    return table[c];
}

bool is_bert_removed(char32_t c) {
    return contains(bert_removed, c);
}
bool is_bert_mark(char32_t c) {
    return contains(bert_marks, c);
}
bool is_combining_mark(char32_t c) {
    return contains(combining_marks, c);
}

bool is_bert_cjk(char32_t c) {
    static constexpr CodePointRange cjk[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                             {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                             {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    return contains(cjk, c);
}

std::u32string_view to_lower(char32_t c, char32_t (&buffer)[2]) {
    buffer[0] = c;
    if (c < 0x80) {
        if (c >= U'A' && c <= U'Z') buffer[0] = c + 32;
        return {buffer, 1};
    }
    if (c == 0x130) {
        buffer[0] = U'i';
        buffer[1] = 0x307;
        return {buffer, 2};
    }
    const auto after = std::upper_bound(std::begin(lower_runs), std::end(lower_runs), c,
                                        [](char32_t point, const CaseRun& run) { return point < run.first; });
    // Runs of step 2 may interleave: two before the insertion point can hold c.
    for (auto run = after; run != std::begin(lower_runs) && std::distance(run, after) < 2;) {
        --run;
        if (c <= run->last && (c - run->first) % run->step == 0) {
            buffer[0] = static_cast<char32_t>(static_cast<std::int32_t>(c) + run->difference);
            break;
        }
    }
    return {buffer, 1};
}

std::vector<CodePointRange> category_ranges(std::string_view name) {
    const std::uint32_t set = categories_of(plain_name(name));
    return set == 0 ? std::vector<CodePointRange>{} : ranges_of(set);
}

std::vector<CodePointRange> property_ranges_of(std::string_view name) {
    const std::string plain = plain_name(name);
    if (plain == "alnum") {
        std::vector<CodePointRange> both = property_ranges_of("alpha");
        const std::vector<CodePointRange> digits = ranges_of(bit(nd));
        both.insert(both.end(), digits.begin(), digits.end());
        std::sort(both.begin(), both.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        return both;
    }
    const auto* found =
        std::lower_bound(std::begin(property_names), std::end(property_names), plain,
                         [](const PropertyName& entry, const std::string& wanted) { return entry.name < wanted; });
    if (found == std::end(property_names) || found->name != plain) return {};
    return {property_ranges + found->first, property_ranges + found->first + found->count};
}

std::vector<CodePointRange> pattern_word_ranges(bool in_brackets) {
    std::vector<CodePointRange> ranges = ranges_of(word_base);
    ranges.insert(ranges.end(), std::begin(pattern_word_extra), std::end(pattern_word_extra));
    if (!in_brackets) ranges.insert(ranges.end(), std::begin(pattern_word_alone), std::end(pattern_word_alone));
    std::sort(ranges.begin(), ranges.end(),
              [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
    return ranges;
}

std::vector<CodePointRange> complement(std::span<const CodePointRange> ranges) {
    std::vector<CodePointRange> rest;
    char32_t next = 0;
    for (const CodePointRange& range : ranges) {
        if (range.first > next) rest.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    if (next < points) rest.push_back({next, points - 1});
    return rest;
}

bool lacks_canonical_decomposition(char32_t c) {
    return contains(newer_canonical, c);
}
bool lacks_compatible_decomposition(char32_t c) {
    return contains(newer_compatible, c);
}
bool lacks_combining_class(char32_t c) {
    return contains(newer_class, c);
}

}  // namespace headscope::tokenizer

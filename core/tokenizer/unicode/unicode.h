// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Kind of a code point, as the reference (the `tokenizers` library) has it: Unicode 16 in patterns, older tables in
// BERT's parts. Tables made by generate_unicode.py.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::tokenizer {

enum class Category : std::uint8_t {
    lu,
    ll,
    lt,
    lm,
    lo,
    mn,
    mc,
    me,
    nd,
    nl,
    no,
    pc,
    pd,
    ps,
    pe,
    pi,
    pf,
    po,
    sm,
    sc,
    sk,
    so,
    zs,
    zl,
    zp,
    cc,
    cf,
    cs,
    co,
    cn,
};

struct CodePointRange {
    char32_t first = 0;
    char32_t last = 0;
};

/// General category in Unicode 16.
Category category(char32_t c);

/// Bits of a code point, in one table look-up.
enum CharacterBits : std::uint8_t {
    bit_letter = 1,        ///< \p{L}
    bit_number = 2,        ///< \p{N}
    bit_space = 4,         ///< \s
    bit_mark = 8,          ///< \p{M}
    bit_word = 16,         ///< \w of the Whitespace pre-tokeniser and of single_word tokens
    bit_numeric = 32,      ///< what Digits splits
    bit_punctuation = 64,  ///< what Punctuation and BertPreTokenizer split: an older Unicode, and all of ASCII's
};
std::uint8_t character_bits(char32_t c);

inline bool is_space(char32_t c) {
    return (character_bits(c) & bit_space) != 0;
}
inline bool is_word(char32_t c) {
    return (character_bits(c) & bit_word) != 0;
}

bool is_bert_removed(char32_t c);    ///< controls, as BertNormalizer's clean_text takes them
bool is_bert_mark(char32_t c);       ///< marks, as BertNormalizer's strip_accents takes them
bool is_combining_mark(char32_t c);  ///< marks, as StripAccents takes them
bool is_bert_cjk(char32_t c);        ///< the ranges that BertNormalizer pads; they leave gaps

/// Lower case of one character (no context: no final sigma); two characters for U+0130 only.
std::u32string_view to_lower(char32_t c, char32_t (&buffer)[2]);

/// Code points of a general category or a group of them ("Lu", "L", "L&", "Any"...), in order. Empty for unknown names.
std::vector<CodePointRange> category_ranges(std::string_view name);
/// Code points of a script ("Han", "Grek"...) or of a POSIX class that grows with Unicode (alpha, upper, lower, punct,
/// alnum), in order. Empty for unknown names.
std::vector<CodePointRange> property_ranges_of(std::string_view name);
/// \w of split patterns inside brackets; outside of them a few more belong to it.
std::vector<CodePointRange> pattern_word_ranges(bool in_brackets);
/// Everything that the sorted ranges leave out.
std::vector<CodePointRange> complement(std::span<const CodePointRange> ranges);

/// True for decompositions that utf8proc's Unicode has and the reference's normalization forms lack.
bool lacks_canonical_decomposition(char32_t c);
bool lacks_compatible_decomposition(char32_t c);
bool lacks_combining_class(char32_t c);

}  // namespace headscope::tokenizer

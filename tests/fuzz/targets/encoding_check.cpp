// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/targets/encoding_check.h"

#include "core/tokenizer/unicode/utf8.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/other_json.h"

namespace headscope::fuzz {
namespace {

bool on_a_character(std::string_view text, std::int64_t at) {
    const auto byte = static_cast<std::size_t>(at);
    return byte == text.size() || !tokenizer::is_continuation(text[byte]);
}

}  // namespace

void check_encoding(const tokenizer::Tokenizer& tokenizer, std::string_view text, const tokenizer::Encoding& encoding,
                    bool bytes) {
    const std::size_t count = encoding.ids.size();
    expect(encoding.offsets.size() == count && encoding.special.size() == count, "as many offsets as ids");
    std::int64_t last = 0;
    for (std::size_t i = 0; i < count; ++i) {
        // A template may insert ids that nothing else knows; the model refuses those, and the package gives them too.
        const bool inserted = encoding.special[i] != 0;
        expect(encoding.ids[i] >= 0 && (inserted || encoding.ids[i] < tokenizer.vocabulary_size()),
               "ids of the vocabulary");
        const auto [begin, end] = encoding.offsets[i];
        expect(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(text.size()), "offsets in the text");
        expect(bytes || (on_a_character(text, begin) && on_a_character(text, end)), "offsets on characters");
        if (inserted) continue;
        expect(last <= begin || begin == end || end >= last, "offsets in order");
        last = begin;
    }
    expect(tokenizer.pieces(encoding).size() == count, "as many pieces as ids");
    expect(other_utf8(tokenizer.decode(encoding.ids, false)), "UTF-8 when all is decoded");
    expect(other_utf8(tokenizer.decode(encoding.ids, true)), "UTF-8 when special tokens are left out");
    for (const std::int32_t id : {-1, 0, 1, 255, 1 << 30}) {
        tokenizer.surface(id);
        tokenizer.id_of(tokenizer.piece(id));
    }
}

}  // namespace headscope::fuzz

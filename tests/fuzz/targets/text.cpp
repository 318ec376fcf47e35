// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes of any kind through what makes text of them: UTF-8 checks, escapes for messages, repairs for labels and files.
#include "core/base/text/text.h"

#include "core/base/error.h"
#include "core/store/hdf5/utf8.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/other_json.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {

void run_text(std::string_view input) {
    const std::size_t bad = find_invalid_utf8(input);
    expect((bad == std::string_view::npos) == other_utf8(input), "both UTF-8 checks to agree");
    if (bad != std::string_view::npos) {
        expect(bad < input.size(), "the bad byte inside the text");
        expect(other_utf8(input.substr(0, bad)), "valid UTF-8 up to the first bad byte");
    }
    for (std::size_t at = 0, end = bad == std::string_view::npos ? input.size() : bad; at < end;) {
        char32_t point = 0;
        const std::size_t length = decode_utf8(input.substr(at), point);
        std::string again;
        tokenizer::append_utf8(again, point);
        expect(again == input.substr(at, length), "a character to be written as it was read");
        const tokenizer::Decoded unchecked = tokenizer::decode_utf8(input, at);
        expect(unchecked.point == point && unchecked.length == length, "both decoders to agree");
        at += length;
        expect(tokenizer::previous_utf8(input, at) == at - length, "the way back to end at the same character");
    }

    for (const std::size_t limit : {std::size_t{0}, std::size_t{7}, std::size_t{200}, std::size_t{1} << 20U}) {
        const std::string shown = escaped(input, limit);
        expect(other_utf8(shown), "escaped text to be UTF-8");
        expect(shown.size() <= limit + 16, "escaped text within its limit and one character");
        for (const char c : shown) expect(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F, "no control characters");
    }
    const std::string listed = list_text({std::string(input), std::string(input), ""}, 2);
    expect(other_utf8(listed) && listed.find("and 1 more") != std::string::npos, "a list to count what it leaves out");

    const std::string repaired = tokenizer::repaired_utf8(input);
    expect(other_utf8(repaired), "repaired text to be UTF-8");
    expect(repaired.size() <= 3 * input.size(), "a repair to add at most two bytes for each");
    const std::string readable = store::readable_utf8(input);
    expect(other_utf8(readable), "readable text to be UTF-8");
    if (bad == std::string_view::npos) expect(repaired == input && readable == input, "good text to stay as it is");
}

}  // namespace headscope::fuzz

// SPDX-License-Identifier: GPL-3.0-or-later
// Any tokenizer.json: refused, or a tokenizer that encodes a fixed set of texts and decodes ids, within its limits.
#include <array>

#include "core/tokenizer/tokenizer.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/encoding_check.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {

void run_tokenizer_json(std::string_view input) {
    static const std::array<std::string_view, 8> texts = {
        "",
        " ",
        "Hello, World! It's 12345 o'clock.\n\n  [MASK]<s>ab ab",
        "e\u0301 \uFB01 \u00C5\u00BD \uAC01\uD55C \u1112\u1161\u11AB \u0130 \u03A3\u03C2 \u1E9B\u0323",
        "\u4EBA\u4EBA\u751F\u800C\u81EA\u7531, \u30AB\u30BF\u30AB\u30CA \u0E44\u0E17\u0E22 \u0928\u092E\u0938\u094D",
        "\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA\uFE0F \u2581x\u2581 \u0120\uFFFD\U0010FFFF",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
        "\t\r\n\u0000\u0007\u00A0\u3000\u2028\u200B\uFEFF\u00AD\u0085",
    };
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    if (refusal([&] { tokenizer = tokenizer::Tokenizer::from_json(input, "tokenizer.json"); })) return;
    for (const std::string_view text : texts) {
        for (const bool special : {true, false}) {
            refusal([&] { check_encoding(*tokenizer, text, tokenizer->encode(text, special)); });
        }
    }
    refusal([&] {
        std::vector<std::int32_t> ids;
        for (std::int32_t id = -2; id < 300; ++id) ids.push_back(id * 3);
        tokenizer->decode(ids, true);
        tokenizer->adds_first_token();
    });
}

}  // namespace headscope::fuzz

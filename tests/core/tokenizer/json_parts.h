// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokenizers written in the tests, part by part.

#include <memory>
#include <string>

#include "core/tokenizer/tokenizer.h"

namespace headscope::test {

struct JsonParts {
    std::string model = R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
    std::string normalizer = "null";
    std::string pre_tokenizer = "null";
    std::string post_processor = "null";
    std::string decoder = "null";
    std::string added_tokens = "[]";

    std::string text() const {
        return R"({"version": "1.0", "truncation": {"max_length": 2}, "padding": {"pad_id": 1}, "added_tokens": )" +
               added_tokens + R"(, "normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer +
               R"(, "post_processor": )" + post_processor + R"(, "decoder": )" + decoder + R"(, "model": )" + model +
               "}";
    }
    std::shared_ptr<const tokenizer::Tokenizer> make() const {
        return tokenizer::Tokenizer::from_json(text(), "t.json");
    }
};

/// An entry of "added_tokens".
inline std::string added_token(const std::string& content, bool lstrip = false, bool rstrip = false,
                               bool single_word = false, bool normalized = false, bool special = false) {
    const auto flag = [](bool value) { return value ? "true" : "false"; };
    return R"({"id": 0, "content": ")" + content + R"(", "lstrip": )" + flag(lstrip) + R"(, "rstrip": )" +
           flag(rstrip) + R"(, "single_word": )" + flag(single_word) + R"(, "normalized": )" + flag(normalized) +
           R"(, "special": )" + flag(special) + "}";
}

}  // namespace headscope::test

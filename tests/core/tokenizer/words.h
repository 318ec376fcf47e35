// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/tokenizer/pipeline.h"

namespace headscope::test {

/// A tokenizer of whole words, whose ids are their places in the list; the first stands for unknown ones. `target`:
/// the decoder's.
inline std::shared_ptr<const tokenizer::Tokenizer> tokenizer_of_words(
    const std::vector<std::string>& words, std::shared_ptr<const tokenizer::Tokenizer> target = nullptr) {
    nlohmann::json document;
    document["model"] = {{"type", "WordLevel"}, {"unk_token", words.front()}};
    for (std::size_t n = 0; n < words.size(); ++n) document["model"]["vocab"][words[n]] = n;
    return tokenizer::make_pipeline(document, "words", {}, std::move(target));
}

}  // namespace headscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace headscope::tokenizer {

/// The special tokens at a text's ends, as their pieces.
struct TextEnds {
    std::optional<std::string> beginning, end;
};

/// bos_token and eos_token of the tokenizer in `folder` as transformers 5.23 has them: tokenizer_config.json's and
/// special_tokens_map.json's (null: none), else those of its class, which config.json may have to tell: GPT-2's folder
/// says nothing of them. A folder without these files has neither. Threads: any. Errors: Error for files that are no
/// such thing.
TextEnds text_ends(const std::filesystem::path& folder);

}  // namespace headscope::tokenizer

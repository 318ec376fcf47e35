// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headscope::tokenizer {

/// The special tokens at a text's ends, as their pieces.
struct TextEnds {
    std::optional<std::string> beginning, end;
};

/// bos_token and eos_token of the tokenizer in `folder`, as in transformers 5.23: those of tokenizer_config.json and
/// special_tokens_map.json (null: none), else those of its class, which may follow from config.json: GPT-2's folder
/// does not name them. A folder without these files has neither. Threads: any. Errors: Error for malformed files.
TextEnds text_ends(const std::filesystem::path& folder);
/// The same of a tokenizer_config.json alone, which `where` names.
TextEnds text_ends(const nlohmann::json& tokenizer_config, const std::string& where);

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Chat templates: how a chat model wants messages written as one text. A checkpoint brings its own as a Jinja2 program;
// it runs here as it does in transformers 5.23 (white space rules, sandbox, loop controls, {% generation %}), within
// limits on steps, depth and text. Nothing outside of the template is reached.
//
// Known: set, for (else, inline if, break, continue), if, macro, with, filter, print, raw, generation; all of Jinja's
// operators; the filters, tests and methods of strings, lists and mappings that templates use; range, namespace, dict,
// raise_exception, strftime_now. What else there is in Jinja (call, include, recursive loops, macros inside of blocks)
// is Error(unsupported). Filters that make generators in Jinja make lists here; letters have their simple case.

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headscope::tokenizer {

struct ChatTemplate {
    std::string text;
    std::string file;                                   ///< "chat_template.jinja", "tokenizer_config.json" ...
    std::string where;                                  ///< the place, for errors
    std::map<std::string, std::string> special_tokens;  ///< what templates know them by: bos_token, eos_token ...
    std::vector<std::string> others;                    ///< names of further templates beside it ("tool_use")
};

/// The template of a checkpoint folder: chat_template.jinja, tokenizer_config.json's chat_template (a string, or
/// several with names, of which "default" is taken), chat_template.json; in this order; or of a GGUF file, or the only
/// one of a folder without tokenizer_config.json. Empty where there is none.
/// Throws Error for files that are not what they should be.
std::optional<ChatTemplate> find_chat_template(const std::filesystem::path& folder);

/// The same of a tokenizer_config.json alone, which `where` names.
std::optional<ChatTemplate> find_chat_template(const nlohmann::json& tokenizer_config, const std::string& where);

struct ChatMessage {
    std::string role;  ///< "system", "user", "assistant" ...
    std::string content;
};

struct ChatOptions {
    bool add_generation_prompt = true;          ///< ends where the model's answer begins
    std::optional<std::tm> now = std::nullopt;  ///< what strftime_now knows; empty: the clock's
};

/// The text of the messages. It has the special tokens written out: encode it without adding any.
/// Error: format with line and column of the template for one that is wrong, unsupported, limit for one that takes too
/// much, usage where the template refuses the messages (raise_exception); texts that are no UTF-8.
std::string apply_chat_template(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                const ChatOptions& options = {});

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
// A chat template over two messages: it makes text, or is refused with a line and a column; the same both times.
#include <array>
#include <ctime>

#include "core/base/text/text.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/unicode/utf8.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {

void run_chat_template(std::string_view input) {
    tokenizer::ChatTemplate chat;
    chat.text = tokenizer::repaired_utf8(input);
    chat.where = "chat_template.jinja";
    chat.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    const std::array<tokenizer::ChatMessage, 2> messages = {
        {{"system", " Be kind.\n"}, {"user", "Größe 中 👍🏽?"}}};
    tokenizer::ChatOptions options;
    options.now = std::tm{};
    options.now->tm_mday = 1;
    std::string first, second;
    const auto refused = refusal([&] { first = tokenizer::apply_chat_template(chat, messages, options); });
    const auto again = refusal([&] { second = tokenizer::apply_chat_template(chat, messages, options); });
    expect(refused.has_value() == again.has_value() && first == second, "the same text twice");
    expect(find_invalid_utf8(first) == std::string_view::npos, "text in UTF-8");
    if (refused) expect(refused->where().find("line ") != std::string::npos, "a place in the template");
}

}  // namespace headscope::fuzz

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/chat_template.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/tokenizer/files/gguf_files.h"
#include "core/tokenizer/files/settings.h"
#include "core/tokenizer/template/render.h"

namespace headscope::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_template = 1'000'000;  ///< real ones have some ten thousand bytes
constexpr std::uint64_t largest_file = 4'000'000, largest_message = 1'000'000'000;

std::string checked(std::string text, const std::string& where, std::uint64_t limit) {
    if (text.size() > limit)
        throw Error(ErrorCode::limit, where, "expected at most " + size_text(limit), "found " + size_text(text.size()));
    const std::size_t invalid = find_invalid_utf8(text);
    if (invalid != std::string::npos)
        throw Error(ErrorCode::format, where, "expected text in UTF-8",
                    "found no UTF-8 at byte " + std::to_string(invalid));
    return text;
}

/// A template as a string, or a list of {"name", "template"}.
std::optional<ChatTemplate> of_json(const JsonView& value) {
    ChatTemplate chat;
    chat.where = value.where();
    if (!value.is_array()) {
        chat.text = value.string();
        return chat;
    }
    bool found = false;
    for (std::size_t i = 0; i < value.size(); ++i) {
        const std::string name = value.at(i).at("name").string();
        // The last one of a name counts, as in transformers.
        if (name == "default" || value.size() == 1) {
            chat.text = value.at(i).at("template").string();
            found = true;
        } else {
            chat.others.push_back(name);
        }
    }
    if (value.size() > 0 && !found)
        throw Error(ErrorCode::format, chat.where, "expected a template with the name default",
                    "found " + list_text(chat.others));
    return found ? std::optional(chat) : std::nullopt;
}

std::optional<ChatTemplate> of_settings(const JsonView& settings, const std::string& file) {
    const auto value = settings.object().find("chat_template");
    auto chat = value ? of_json(*value) : std::nullopt;
    if (chat) chat->file = file;
    return chat;
}

std::optional<ChatTemplate> of_json_file(const fs::path& path, const std::string& kind) {
    if (!ends_at_regular_file(path)) return std::nullopt;
    const nlohmann::json document = read_json_file(path, largest_file, kind);
    return of_settings(JsonView(document, shown(path)), path.filename().string());
}

std::optional<ChatTemplate> with_tokens(std::optional<ChatTemplate> chat, const Settings& settings) {
    chat->text = checked(std::move(chat->text), chat->where, largest_template);
    for (const auto& [name, token] : settings.named({})) chat->special_tokens[name] = token.content;
    return chat;
}

std::tm clock_time() {
    const std::time_t seconds = std::time(nullptr);
    std::tm now{};
    ::localtime_r(&seconds, &now);
    return now;
}

}  // namespace

std::optional<ChatTemplate> find_chat_template(const fs::path& folder) {
    if (const auto documents = may_be_gguf(folder) && !ends_at_regular_file(folder / "tokenizer_config.json")
                                   ? gguf_documents(folder)
                                   : std::nullopt)
        return find_chat_template(documents->settings, shown(folder));
    std::optional<ChatTemplate> chat;
    if (const fs::path path = folder / "chat_template.jinja"; ends_at_regular_file(path)) {
        chat.emplace();
        chat->file = "chat_template.jinja";
        chat->where = shown(path);
        chat->text = read_small_file(path, largest_template, "chat template");
    }
    if (!chat) chat = of_json_file(folder / "tokenizer_config.json", "tokenizer configuration");
    if (!chat) chat = of_json_file(folder / "chat_template.json", "chat template");
    return chat ? with_tokens(std::move(chat), Settings(folder)) : chat;
}

std::optional<ChatTemplate> find_chat_template(const nlohmann::json& tokenizer_config, const std::string& where) {
    auto chat = of_settings(JsonView(tokenizer_config, where), where);
    return chat ? with_tokens(std::move(chat), Settings(tokenizer_config, where)) : chat;
}

std::string apply_chat_template(const ChatTemplate& given, std::span<const ChatMessage> messages,
                                const ChatOptions& options) {
    using chat::Value;
    std::size_t input = 0;
    for (const ChatMessage& message : messages) input += message.role.size() + message.content.size();
    chat::Budget budget(input);
    std::vector<Value> list;
    for (const ChatMessage& message : messages) {
        const Value role = checked(message.role, "role of a message", largest_file);
        const Value content = checked(message.content, "message", largest_message);
        list.push_back(Value::dict({{"role", role}, {"content", content}}, budget));
    }
    chat::Evaluator::Variables variables;
    variables["messages"] = Value::list(std::move(list));
    variables["tools"] = variables["documents"] = chat::None{};
    variables["add_generation_prompt"] = options.add_generation_prompt;
    for (const auto& [name, token] : given.special_tokens) variables[name] = checked(token, name, largest_file);
    return chat::render(given.text, given.where, variables, options.now ? *options.now : clock_time(), budget);
}

}  // namespace headscope::tokenizer

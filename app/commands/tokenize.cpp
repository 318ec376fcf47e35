// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/analysis/input.h"
#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/figures/token_text.h"
#include "core/tokenizer/hashed/word_hash.h"
#include "core/tokenizer/token_record.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {
namespace tokenize_command {
namespace {

struct TokenizeOptions {
    std::string model, text, file;
    std::vector<std::int64_t> decode;
    bool json = false, skip_special = false, plain = false, chat = false;
};

void run_decode(const tokenizer::Tokenizer& tokenizer, const TokenizeOptions& options) {
    std::vector<std::int32_t> ids;
    for (const std::int64_t id : options.decode) {
        if (id < 0) throw Error(ErrorCode::limit, "--decode", "expected ids from 0 on", "found " + std::to_string(id));
        // Ids that stand for nothing are left out, as PyPI's package does.
        if (id < tokenizer.vocabulary_size()) ids.push_back(static_cast<std::int32_t>(id));
    }
    const std::string text = tokenizer.decode(ids, options.skip_special);
    if (options.json)
        print_json({{"text", text}});
    else
        print_made_text(text + "\n");
}

/// Text for standard output, printed some thousands of tokens at a time: there may be millions.
class Output {
public:
    explicit Output(const Cancellation& cancellation) : cancellation_(cancellation) {}
    Output& operator<<(std::string_view text) {
        text_ += text;
        if (text_.size() >= at_once) flush();
        return *this;
    }
    void flush() {
        cancellation_.check();
        print(text_);
        text_.clear();
    }

private:
    static constexpr std::size_t at_once = std::size_t{256} << 10U;
    const Cancellation& cancellation_;
    std::string text_;
};

std::string spelled(const tokenizer::Tokenizer& tokenizer, const tokenizer::FoundToken& token) {
    return token.respelled ? std::string(*token.respelled) : tokenizer.piece(token.id);
}

/// A piece as JSON: plain ASCII, as nearly all are, without the detour of a document.
std::string json_text(const std::string& piece) {
    const bool plain =
        std::all_of(piece.begin(), piece.end(), [](char c) { return c >= ' ' && c < '\x7F' && c != '"' && c != '\\'; });
    if (plain) return '"' + piece + '"';
    return showable_json(nlohmann::json(piece).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// {"ids": [...], "pieces": [...], "offsets": [[begin, end], ...]}, a list a line; of hashed words "hashes" too.
void print_encoding(const tokenizer::Tokenizer& tokenizer, const tokenizer::TokenRecord& tokens,
                    const Cancellation& cancellation) {
    Output out(cancellation);
    const auto print_list = [&](std::string_view name, const auto& text_of) {
        out << "  \"" << name << "\": [";
        bool first = true;
        tokens.each([&](const tokenizer::FoundToken& token) {
            if (!first) out << ", ";
            first = false;
            out << text_of(token);
        });
    };
    out << "{\n";
    print_list("ids", [](const auto& token) { return std::to_string(token.id); });
    out << "],\n";
    print_list("pieces", [&](const auto& token) { return json_text(spelled(tokenizer, token)); });
    out << "],\n";
    print_list("offsets", [](const auto& token) {
        return '[' + std::to_string(token.begin) + ", " + std::to_string(token.end) + ']';
    });
    if (const tokenizer::WordHash* hash = tokenizer.word_hash()) {
        out << "],\n";
        print_list("hashes", [&](const auto& token) {
            return '"' + (token.special ? std::string() : hash->hex(spelled(tokenizer, token))) + '"';
        });
    }
    out << "]\n}\n";
    out.flush();
}

void print_table(const tokenizer::Tokenizer& tokenizer, const tokenizer::TokenRecord& tokens,
                 const Cancellation& cancellation) {
    constexpr std::size_t rows_at_once = 16384, longest_piece = 200;
    const std::vector<std::string> header = {"position", "id", "piece", "bytes"};
    std::vector<std::vector<std::string>> rows;
    std::size_t position = 0;
    const auto print_rows = [&] {
        cancellation.check();
        const std::string table = format_table(header, rows);
        print(position <= rows_at_once ? table : table.substr(table.find('\n') + 1));
        rows.clear();
    };
    tokens.each([&](const tokenizer::FoundToken& token) {
        rows.push_back({std::to_string(position++), std::to_string(token.id), figures::visible_token(spelled(tokenizer, token), longest_piece),
                        token.special ? "added" : std::to_string(token.begin) + ".." + std::to_string(token.end)});
        if (rows.size() == rows_at_once) print_rows();
    });
    if (!rows.empty() || position == 0) print_rows();
}

void run_encode(const tokenizer::Tokenizer& tokenizer, const TokenizeOptions& options,
                const Cancellation& cancellation) {
    std::string text = options.file.empty() ? options.text : analysis::read_text_file(options.file, &cancellation);
    if (options.chat) {
        const tokenizer::ChatMessage message{"user", std::move(text)};
        text = tokenizer::apply_chat_template(load_chat_template(options.model), {&message, 1});
    }
    // All tokens before the first is printed: where the text ends in an error, nothing is.
    tokenizer::TokenRecord tokens;
    tokenizer.encode_into(tokens, text, !options.plain && !options.chat, &cancellation);
    if (options.json)
        print_encoding(tokenizer, tokens, cancellation);
    else
        print_table(tokenizer, tokens, cancellation);
}

}  // namespace
}  // namespace tokenize_command

void add_tokenize(CLI::App& app, Context& context) {
    using namespace tokenize_command;
    auto* command = app.add_subcommand("tokenize", "Ids and pieces of a text, or the text of ids");
    auto options = std::make_shared<TokenizeOptions>();
    add_option(*command, "model", options->model, "A checkpoint folder, a file of one, or a tokenizer.json")
        ->required();
    auto* text = add_option(*command, "text", options->text, "The text");
    auto* file = add_option(*command, "--file", options->file, "Read the text from a file; - is standard input");
    auto* decode = add_option(*command, "--decode", options->decode, "Ids to turn into text")->expected(1, 1 << 20);
    text->excludes(file)->excludes(decode);
    file->excludes(decode);
    add_flag(*command, "--skip-special", options->skip_special, "With --decode: leave special tokens out")
        ->needs(decode);
    add_flag(*command, "--plain", options->plain, "Add no special tokens");
    add_flag(*command, "--chat", options->chat,
             "The text is a user's message, put into the checkpoint's chat template; offsets count in what it makes")
        ->excludes(decode);
    add_flag(*command, "--json", options->json,
             "One JSON document: ids, pieces, offsets in bytes, hashes where words have some");
    command->callback([&context, options, command, text, file, decode] {
        check_options("tokenize", given_options(*command), {decode->count() > 0 ? "--decode" : "a text"});
        if (text->count() + file->count() + decode->count() == 0)
            throw CLI::ValidationError("tokenize", "a TEXT, --file or --decode is expected");
        if (file->count() > 0 && options->file.empty())
            throw CLI::ValidationError("--file", "the name of a file is expected; found none");
        context.command = [&context, options, decode] {
            const auto tokenizer = load_tokenizer(options->model);
            if (decode->count() > 0)
                run_decode(*tokenizer, *options);
            else
                run_encode(*tokenizer, *options, context.cancellation);
        };
    });
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/console.h"
#include "app/context.h"
#include "app/loading.h"
#include "core/analysis/input.h"
#include "core/base/error.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {
namespace {

struct TokenizeOptions {
    std::string model, text, file;
    std::vector<std::int64_t> decode;
    bool json = false, skip_special = false, plain = false, chat = false;
};

void run_decode(const tokenizer::Tokenizer& tokenizer, const TokenizeOptions& options) {
    std::vector<std::int32_t> ids;
    for (const std::int64_t id : options.decode) {
        if (id < 0 || id >= tokenizer.vocabulary_size())
            throw Error(ErrorCode::limit, "--decode",
                        "expected ids from 0 to " + std::to_string(tokenizer.vocabulary_size() - 1),
                        "found " + std::to_string(id));
        ids.push_back(static_cast<std::int32_t>(id));
    }
    const std::string text = tokenizer.decode(ids, options.skip_special);
    if (options.json)
        print_json({{"text", text}});
    else
        print(text + "\n");
}

/// Calls work(first, count) for a text's tokens, some thousands at a time: the text may be of millions.
template <class Work>
void in_parts(const tokenizer::Encoding& encoding, const Cancellation& cancellation, const Work& work) {
    constexpr std::size_t tokens_at_once = 16384;
    for (std::size_t first = 0; first < encoding.ids.size(); first += tokens_at_once) {
        cancellation.check();
        work(first, std::min(tokens_at_once, encoding.ids.size() - first));
    }
}

/// {"ids": [...], "pieces": [...], "offsets": [[begin, end], ...]}, a list a line.
void print_encoding(const tokenizer::Tokenizer& tokenizer, const tokenizer::Encoding& encoding,
                    const Cancellation& cancellation) {
    const auto print_list = [&](const std::string& name, const auto& append) {
        print("  \"" + name + "\": [");
        in_parts(encoding, cancellation, [&](std::size_t first, std::size_t count) {
            std::string part;
            append(part, first, count);
            if (first == 0) part.erase(0, 2);  // the first comma
            print(part);
        });
    };
    print("{\n");
    print_list("ids", [&](std::string& part, std::size_t first, std::size_t count) {
        for (std::size_t i = first; i < first + count; ++i) part += ", " + std::to_string(encoding.ids[i]);
    });
    print("],\n");
    print_list("pieces", [&](std::string& part, std::size_t first, std::size_t count) {
        for (const std::string& piece : tokenizer.pieces(encoding, first, count))
            part += ", " + nlohmann::json(piece).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    });
    print("],\n");
    print_list("offsets", [&](std::string& part, std::size_t first, std::size_t count) {
        for (std::size_t i = first; i < first + count; ++i) {
            const auto [begin, end] = encoding.offsets[i];
            part += ", [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
        }
    });
    print("]\n}\n");
}

void print_table(const tokenizer::Tokenizer& tokenizer, const tokenizer::Encoding& encoding,
                 const Cancellation& cancellation) {
    const std::vector<std::string> header = {"position", "id", "piece", "bytes"};
    if (encoding.ids.empty()) print(format_table(header, {}));
    in_parts(encoding, cancellation, [&](std::size_t first, std::size_t count) {
        const std::vector<std::string> spelled = tokenizer.pieces(encoding, first, count);
        std::vector<std::vector<std::string>> rows;
        for (std::size_t i = first; i < first + count; ++i) {
            const auto [begin, end] = encoding.offsets[i];
            rows.push_back({std::to_string(i), std::to_string(encoding.ids[i]), escaped(spelled[i - first]),
                            encoding.special[i] != 0 ? "added" : std::to_string(begin) + ".." + std::to_string(end)});
        }
        const std::string table = format_table(header, rows);
        print(first == 0 ? table : table.substr(table.find('\n') + 1));
    });
}

void run_encode(const tokenizer::Tokenizer& tokenizer, const TokenizeOptions& options,
                const Cancellation& cancellation) {
    std::string text = options.file.empty() ? options.text : analysis::read_text_file(options.file, &cancellation);
    if (options.chat) {
        const tokenizer::ChatMessage message{"user", std::move(text)};
        text = tokenizer::apply_chat_template(load_chat_template(options.model), {&message, 1});
    }
    const auto encoding = tokenizer.encode(text, !options.plain && !options.chat, &cancellation);
    if (options.json)
        print_encoding(tokenizer, encoding, cancellation);
    else
        print_table(tokenizer, encoding, cancellation);
}

}  // namespace

void add_tokenize(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("tokenize", "Ids and pieces of a text, or the text of ids");
    auto options = std::make_shared<TokenizeOptions>();
    command->add_option("model", options->model, "A checkpoint folder, a file of one, or a tokenizer.json")->required();
    auto* text = command->add_option("text", options->text, "The text");
    auto* file = command->add_option("--file", options->file, "Read the text from a file; - is standard input");
    auto* decode = command->add_option("--decode", options->decode, "Ids to turn into text")->expected(1, 1 << 20);
    text->excludes(file)->excludes(decode);
    file->excludes(decode);
    command->add_flag("--skip-special", options->skip_special, "With --decode: leave special tokens out")
        ->needs(decode);
    command->add_flag("--plain", options->plain, "Add no special tokens");
    command
        ->add_flag(
            "--chat", options->chat,
            "The text is a user's message, put into the checkpoint's chat template; offsets count in what it makes")
        ->excludes(decode);
    command->add_flag("--json", options->json, "One JSON document: ids, pieces, offsets in bytes");
    command->callback([&context, options, text, file, decode] {
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

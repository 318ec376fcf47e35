// SPDX-License-Identifier: GPL-3.0-or-later
// The tokenizer of a folder, of before tokenizer.json or with it: the input is files, a NUL byte between them, each
// with its name in the first line (vocab.txt, vocab.json, merges.txt, tokenizer_config.json, ...).
#include <algorithm>
#include <array>

#include "core/tokenizer/tokenizer.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets/encoding_check.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

constexpr std::array<std::string_view, 8> names = {
    "vocab.txt",         "vocab.json",     "merges.txt",  "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "tokenizer.json", "config.json",
};

void write_files(const MemoryFolder& folder, std::string_view input) {
    for (const std::string_view name : names) std::filesystem::remove(folder.path() / name);
    while (!input.empty()) {
        std::string_view file = input.substr(0, input.find('\0'));
        input.remove_prefix(std::min(file.size() + 1, input.size()));
        const std::string_view name = take_line(file);
        if (std::find(names.begin(), names.end(), name) != names.end()) folder.write(std::string(name), file);
    }
}

}  // namespace

void run_tokenizer_folder(std::string_view input) {
    static const MemoryFolder folder;
    write_files(folder, input);
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    const auto error = refusal([&] { tokenizer = tokenizer::Tokenizer::from_folder(folder.path()); });
    if (error) return;
    expect(tokenizer::Tokenizer::is_in(folder.path()), "a folder with a tokenizer to be known as one");
    for (const std::string_view text : {"", " Hello, ab  World! <s>[MASK]\u00e9\u4e2d\n", "<|endoftext|>aB"}) {
        for (const bool special : {true, false}) {
            refusal([&] { check_encoding(*tokenizer, text, tokenizer->encode(text, special)); });
        }
    }
}

}  // namespace headscope::fuzz

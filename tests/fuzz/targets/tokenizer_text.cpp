// SPDX-License-Identifier: GPL-3.0-or-later
// Any text through a tokenizer of tests/oracle/generate/data/tokenizer: the first byte chooses it (tokenizers.txt, by
// line), the rest is the text, bytes that are no UTF-8 replaced. Offsets, ids and decoding follow the rules of
// encoding_check.h; tokenizers that lose nothing give the text back; and for the texts that record_tokenizers.py
// recorded, ids, offsets and decoding are those of the `tokenizers` package.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/tokenizer/unicode/utf8.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/encoding_check.h"
#include "tests/fuzz/targets/targets.h"
#include "tests/oracle/golden.h"

namespace headscope::fuzz {
namespace {

const std::string tests = std::string(HEADSCOPE_SOURCE_DIR) + "/tests/";

struct Loaded {
    std::string name;
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
    bool lossless = false;
};

const std::vector<Loaded>& tokenizers() {
    static const std::vector<Loaded> all = [] {
        std::vector<Loaded> loaded;
        std::ifstream names(tests + "fuzz/tokenizers.txt");
        for (std::string name; std::getline(names, name);) {
            const bool lossless = name == "gpt2" || name == "llama3" || name == "cased_pattern";
            loaded.push_back(
                {name, tokenizer::Tokenizer::from_file(test::golden_file("tokenizer/" + name + ".json")), lossless});
        }
        loaded.push_back({"bytes", tokenizer::Tokenizer::bytes(), true});
        return loaded;
    }();
    return all;
}

/// The package's encoding of a text: ids and byte offsets, with special tokens.
struct Recorded {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> offsets;  // begin, end, begin, end, ...
    std::string decoded;
};

/// By tokenizer and text.
const std::map<std::pair<std::string, std::string>, Recorded>& recorded() {
    static const auto all = [] {
        std::map<std::pair<std::string, std::string>, Recorded> records;
        std::ifstream file(tests + "fuzz/recorded_tokenizers.json");
        for (const auto& entry : nlohmann::json::parse(file)) {
            records[{entry.at("tokenizer"), entry.at("text")}] = {entry.at("ids"), entry.at("offsets"),
                                                                  entry.at("decoded")};
        }
        if (records.empty()) finding("no recorded encodings");
        return records;
    }();
    return all;
}

void compare(const Loaded& loaded, const std::string& text, const tokenizer::Encoding& encoding) {
    const auto found = recorded().find({loaded.name, text});
    if (found == recorded().end()) return;
    expect(encoding.ids == found->second.ids, "the ids that the package gives");
    std::vector<std::int64_t> offsets;
    for (const auto& [begin, end] : encoding.offsets) offsets.insert(offsets.end(), {begin, end});
    expect(offsets == found->second.offsets, "the offsets that the package gives");
    expect(loaded.tokenizer->decode(encoding.ids, false) == found->second.decoded,
           "the decoding that the package gives");
}

}  // namespace

void run_tokenizer_text(std::string_view input) {
    if (input.empty()) return;
    const std::size_t number = static_cast<unsigned char>(input.front()) % tokenizers().size();
    const Loaded& loaded = tokenizers()[number];
    const std::string text = tokenizer::repaired_utf8(input.substr(1));
    refusal([&] {
        const bool bytes = loaded.name == "bytes";
        const tokenizer::Encoding encoding = loaded.tokenizer->encode(text, true);
        check_encoding(*loaded.tokenizer, text, encoding, bytes);
        compare(loaded, text, encoding);
        const tokenizer::Encoding bare = loaded.tokenizer->encode(text, false);
        check_encoding(*loaded.tokenizer, text, bare, bytes);
        if (loaded.lossless) expect(loaded.tokenizer->decode(bare.ids, false) == text, "the text back");
    });
}

}  // namespace headscope::fuzz

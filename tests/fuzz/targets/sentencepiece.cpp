// SPDX-License-Identifier: GPL-3.0-or-later
// A sentencepiece model, the input, in folders of kinds that leave it to that package and that convert it.
#include "core/tokenizer/tokenizer.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets/encoding_check.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {

void run_sentencepiece(std::string_view input) {
    static const MemoryFolder marian, m2m, pegasus;
    static const bool prepared = [] {
        const char* const vocabulary = R"({"</s>": 0, "<unk>": 1, "b": 2, "▁a": 3, "<pad>": 4, ">>de<<": 5})";
        for (const MemoryFolder* folder : {&marian, &m2m}) folder->write("vocab.json", vocabulary);
        marian.write("config.json", R"({"model_type": "marian"})");
        m2m.write("config.json", R"({"model_type": "m2m_100"})");
        pegasus.write("config.json", R"({"model_type": "pegasus"})");
        return true;
    }();
    static_cast<void>(prepared);
    marian.write("source.spm", input);
    marian.write("target.spm", input);
    m2m.write("sentencepiece.bpe.model", input);
    pegasus.write("spiece.model", input);
    for (const MemoryFolder* folder : {&marian, &m2m, &pegasus}) {
        std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
        if (refusal([&] { tokenizer = tokenizer::Tokenizer::from_folder(folder->path()); })) continue;
        for (const std::string_view text : {"", ">>de<< ab  \u2581a e\u0301", "</s>b\t\u4e2d "}) {
            for (const bool special : {true, false})
                refusal([&] { check_encoding(*tokenizer, text, tokenizer->encode(text, special)); });
        }
    }
}

}  // namespace headscope::fuzz

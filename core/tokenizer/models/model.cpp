// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/models/model.h"

#include <nlohmann/json.hpp>

namespace headscope::tokenizer {

namespace {

std::string kind_by_fields(const JsonView& description) {
    if (description.value().contains("merges")) return "BPE";
    const auto vocabulary = description.find("vocab");
    if (vocabulary && vocabulary->is_array()) return "Unigram";
    if (description.has("continuing_subword_prefix") || description.has("max_input_chars_per_word")) return "WordPiece";
    if (description.has("unk_token")) return "WordLevel";
    description.at("type").refuse(ErrorCode::format, "expected a type");
}

}  // namespace

std::unique_ptr<Model> make_model(const JsonView& description) {
    description.object();
    const std::string name = description.has("type") ? description.at("type").string() : kind_by_fields(description);
    if (name == "BPE") return make_bpe(description);
    if (name == "Unigram") return make_unigram(description);
    if (name == "SentencePiece") return make_sentence_piece(description);
    if (name == "SentencePieceBPE") return make_sentence_piece_bpe(description);
    if (name == "WordPiece") return make_word_piece(description);
    if (name == "WordLevel") return make_word_level(description);
    throw Error(ErrorCode::unsupported, description.where(),
                "expected a model of the kinds BPE, Unigram, WordPiece, WordLevel",
                "found \"" + escaped(name, 60) + "\"");
}

}  // namespace headscope::tokenizer

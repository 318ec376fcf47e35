// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A sentencepiece model (Kudo and Richardson, arXiv 1808.06226): pieces with scores, and the rules of normalisation, in
// a message of Protocol Buffers (sentencepiece_model.proto, ModelProto). Read field by field; what is not needed is
// skipped.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::tokenizer {

struct SentencePieceModel {
    enum class Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
    struct Piece {
        std::string text;
        float score = 0;
        Kind kind = Kind::normal;
    };
    std::vector<Piece> pieces;  ///< at least one
    enum class Type { unigram = 1, bpe = 2, word = 3, character = 4 };
    Type type = Type::unigram;
    bool byte_fallback = false;
    std::string character_map;  ///< compiled rules of normalisation; empty: none
    bool dummy_prefix = true, extra_spaces_removed = true, spaces_escaped = true, space_is_suffix = false;
};

/// Error(format) names the byte that cannot be read, limit a file or a list beyond what any tokenizer has.
SentencePieceModel read_sentencepiece_model(const std::filesystem::path& path);
/// The same of its bytes; `where` names them.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where);

}  // namespace headscope::tokenizer

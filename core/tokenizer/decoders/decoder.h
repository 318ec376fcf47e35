// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From the pieces of tokens back to text. One class a kind of tokenizer.json's "decoder"; immutable.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json/json.h"

namespace headscope::tokenizer {

class Decoder {
public:
    virtual ~Decoder() = default;
    /// Rewrites the pieces; in the end they are joined without anything between them.
    virtual void apply(std::vector<std::string>& pieces) const = 0;
};

/// The byte that a piece like "<0x0A>" stands for.
std::optional<unsigned char> fallback_byte(std::string_view piece);

/// Makes the decoder of `description`. Error(unsupported) names an unknown kind.
std::unique_ptr<Decoder> make_decoder(const JsonView& description);

// The kinds, each in its own file or with similar ones.
std::unique_ptr<Decoder> make_byte_level_decoder();
std::unique_ptr<Decoder> make_byte_fallback_decoder();
std::unique_ptr<Decoder> make_fuse();
std::unique_ptr<Decoder> make_metaspace_decoder(const JsonView& description);
std::unique_ptr<Decoder> make_strip_decoder(const JsonView& description);
std::unique_ptr<Decoder> make_replace_decoder(const JsonView& description);
std::unique_ptr<Decoder> make_bpe_decoder(const JsonView& description);
std::unique_ptr<Decoder> make_word_piece_decoder(const JsonView& description);
std::unique_ptr<Decoder> make_ctc_decoder(const JsonView& description);

}  // namespace headscope::tokenizer

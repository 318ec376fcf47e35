// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/tokenizer/tokenizer.h"

namespace headscope::tokenizer {

/// Ids 0 to 255 are bytes. Any bytes can be encoded; decoding makes U+FFFD of what is no UTF-8.
class ByteTokenizer final : public Tokenizer {
public:
    void encode_into(TokenSink& sink, std::string_view text, bool add_special_tokens,
                     const Cancellation* cancellation) const override;
    void encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second, bool add_special_tokens,
                          const Cancellation* cancellation) const override;
    std::vector<FramePart> frame(bool pair) const override;
    std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const override;
    std::string piece(std::int32_t id) const override;  ///< the printable character of the byte-level alphabet
    std::string surface(std::int32_t id) const override;
    std::int64_t vocabulary_size() const override { return 256; }
    std::optional<std::int32_t> id_of(std::string_view piece) const override;
    bool adds_first_token() const override { return false; }
};

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "core/tokenizer/unicode/segments.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

/// Cuts where the script changes. Spaces and unassigned characters go with what is before them; at the beginning of a
/// piece they are lost, as in the reference.
class UnicodeScripts final : public PreTokenizer {
public:
    void apply(Pieces& pieces) const override {
        pieces.split([](std::string_view piece, Pieces::Parts& parts) {
            const auto size = static_cast<std::uint32_t>(piece.size());
            std::uint32_t begin = 0;
            std::uint8_t last = 0;
            for (std::uint32_t at = 0; at < size;) {
                const Decoded c = decode_utf8(piece, at);
                const std::uint8_t own = script(c.point);
                if (own != 0 && own != last) {
                    if (last != 0) parts.add(begin, at);
                    begin = at;
                    last = own;
                }
                at += c.length;
            }
            if (last != 0) parts.add(begin, size);
        });
    }
};

}  // namespace

std::unique_ptr<PreTokenizer> make_unicode_scripts() {
    return std::make_unique<UnicodeScripts>();
}

}  // namespace headscope::tokenizer

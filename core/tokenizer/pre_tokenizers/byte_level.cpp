// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "core/tokenizer/regex/scanner.h"

namespace headscope::tokenizer {

namespace {

/// GPT-2's pre-tokeniser: a space in front of the text if asked, its pattern unless another one split before, and
/// bytes spelled as characters.
class ByteLevel final : public PreTokenizer {
public:
    explicit ByteLevel(const JsonView& description)
        : add_prefix_space_(description.at("add_prefix_space").boolean()),
          scanner_(description.boolean_or("use_regex", true) ? scanner_for(gpt2_pattern) : nullptr) {}

    void apply(Pieces& pieces) const override {
        if (add_prefix_space_) {
            pieces.rewrite([](const Piece& piece, std::string_view text, SpanReader& spans, AlignedBuilder& result) {
                if (text.front() != ' ') result.put(" ", spans.at(piece.begin));
                result.copy(piece.begin, piece.end);
            });
        }
        if (scanner_) pieces.split(*scanner_, SplitBehavior::isolated);
        pieces.stand_for_bytes();
    }

private:
    bool add_prefix_space_;
    std::unique_ptr<Matcher> scanner_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_byte_level(const JsonView& description) {
    return std::make_unique<ByteLevel>(description);
}

}  // namespace headscope::tokenizer

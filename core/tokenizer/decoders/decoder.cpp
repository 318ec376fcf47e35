// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/decoders/decoder.h"

#include "core/tokenizer/kind.h"

namespace headscope::tokenizer {

namespace {

class Sequence final : public Decoder {
public:
    explicit Sequence(const JsonView& description) {
        const JsonView members = description.at("decoders").array();
        for (std::size_t i = 0; i < members.size(); ++i) members_.push_back(make_decoder(members.at(i)));
    }
    void apply(std::vector<std::string>& pieces) const override {
        for (const auto& member : members_) member->apply(pieces);
    }

private:
    std::vector<std::unique_ptr<Decoder>> members_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const JsonView& description) {
    const std::string name = kind_of(description, {{"BPEDecoder", {"suffix"}},
                                                   {"WordPiece", {"prefix", "cleanup"}},
                                                   {"CTC", {"pad_token", "word_delimiter_token", "cleanup"}},
                                                   {"Replace", {"pattern", "content"}},
                                                   {"Strip", {"content", "start", "stop"}}});
    if (name == "Sequence") return std::make_unique<Sequence>(description);
    if (name == "ByteLevel") return make_byte_level_decoder();
    if (name == "ByteFallback") return make_byte_fallback_decoder();
    if (name == "Fuse") return make_fuse();
    if (name == "Metaspace") return make_metaspace_decoder(description);
    if (name == "Strip") return make_strip_decoder(description);
    if (name == "Replace") return make_replace_decoder(description);
    if (name == "BPEDecoder") return make_bpe_decoder(description);
    if (name == "WordPiece") return make_word_piece_decoder(description);
    if (name == "CTC") return make_ctc_decoder(description);
    description.at("type").refuse(ErrorCode::unsupported, "expected a known decoder");
}

}  // namespace headscope::tokenizer

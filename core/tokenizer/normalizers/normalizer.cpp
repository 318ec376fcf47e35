// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/normalizers/normalizer.h"

#include <utility>
#include <vector>

#include "core/tokenizer/kind.h"

namespace headscope::tokenizer {

namespace {

class Sequence final : public Normalizer {
public:
    explicit Sequence(const JsonView& description) {
        const JsonView members = description.at("normalizers").array();
        for (std::size_t i = 0; i < members.size(); ++i) members_.push_back(make_normalizer(members.at(i)));
    }
    void apply(AlignedText& text) const override {
        for (const auto& member : members_) member->apply(text);
    }

private:
    std::vector<std::unique_ptr<Normalizer>> members_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const JsonView& description) {
    const std::string name =
        kind_of(description, {{"BertNormalizer", {"clean_text", "handle_chinese_chars", "lowercase"}},
                              {"Strip", {"strip_left", "strip_right"}},
                              {"Sequence", {"normalizers"}},
                              {"Precompiled", {"precompiled_charsmap"}},
                              {"Replace", {"pattern", "content"}},
                              {"Prepend", {"prepend"}}});
    if (name == "Sequence") return std::make_unique<Sequence>(description);
    if (name == "NFC") return make_normal_form(false, true);
    if (name == "NFD") return make_normal_form(false, false);
    if (name == "NFKC") return make_normal_form(true, true);
    if (name == "NFKD") return make_normal_form(true, false);
    if (name == "BertNormalizer") return make_bert_normalizer(description);
    if (name == "Lowercase") return make_lowercase();
    if (name == "StripAccents") return make_strip_accents();
    if (name == "Nmt") return make_nmt();
    if (name == "ByteLevel") return make_byte_level_normalizer();
    if (name == "Precompiled") return make_precompiled(description);
    if (name == "SentencePiece") return make_sentence_piece_rules(description);
    if (name == "Strip") return make_strip(description);
    if (name == "Prepend") return make_prepend(description);
    if (name == "Replace") return make_replace(description);
    description.at("type").refuse(ErrorCode::unsupported, "expected a known normaliser");
}

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pre_tokenizers/pre_tokenizer.h"

#include <vector>

namespace headscope::tokenizer {

namespace {

class Sequence final : public PreTokenizer {
public:
    explicit Sequence(const JsonView& description) {
        const JsonView members = description.at("pretokenizers").array();
        for (std::size_t i = 0; i < members.size(); ++i) members_.push_back(make_pre_tokenizer(members.at(i)));
    }
    void apply(Pieces& pieces) const override {
        for (const auto& member : members_) member->apply(pieces);
    }

private:
    std::vector<std::unique_ptr<PreTokenizer>> members_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonView& description) {
    const JsonView type = description.at("type");
    const std::string name = type.string();
    if (name == "Sequence") return std::make_unique<Sequence>(description);
    if (name == "ByteLevel") return make_byte_level(description);
    if (name == "Metaspace") return make_metaspace(description);
    if (name == "Split") return make_split(description);
    if (name == "Punctuation") return make_punctuation(description);
    if (name == "Digits") return make_digits(description);
    if (name == "CharDelimiterSplit") return make_character_delimiter(description);
    if (name == "FixedLength") return make_fixed_length(description);
    if (name == "BertPreTokenizer") return make_bert_pre_tokenizer();
    if (name == "UnicodeScripts") return make_unicode_scripts();
    if (name == "Whitespace") return make_whitespace();
    if (name == "WhitespaceSplit") return make_whitespace_split();
    type.refuse(ErrorCode::unsupported, "expected a known pre-tokeniser");
}

}  // namespace headscope::tokenizer

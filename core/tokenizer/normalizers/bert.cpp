// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "core/tokenizer/normalizers/characters.h"
#include "core/tokenizer/normalizers/normal_form.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

void pad_cjk(AlignedText& text) {
    const std::string& old = text.text();
    bool any = false;
    // No CJK range begins below U+3400, whose first byte is E3.
    for (std::size_t at = 0; at < old.size() && !any; ++at) {
        any = static_cast<unsigned char>(old[at]) >= 0xE3 && is_bert_cjk(decode_utf8(old, at).point);
    }
    if (!any) return;
    Transformation transformation(text);
    for (std::size_t at = 0; at < old.size();) {
        const Decoded c = decode_utf8(old, at);
        at += c.length;
        if (is_bert_cjk(c.point)) {
            transformation.add({U' ', 0});
            transformation.add({c.point, 1});
            transformation.add({U' ', 1});
        } else {
            transformation.add({c.point, 0});
        }
    }
    transformation.finish();
}

/// BERT's basic tokenizer, first half (Devlin et al. 2019, tokenization.py).
class BertNormalizer final : public Normalizer {
public:
    explicit BertNormalizer(const JsonView& description)
        : clean_(description.boolean_or("clean_text", true)),
          pad_(description.boolean_or("handle_chinese_chars", true)),
          lower_(description.boolean_or("lowercase", true)),
          strip_(description.boolean_or("strip_accents", lower_)) {}

    void apply(AlignedText& text) const override {
        if (clean_) {
            filter_characters(text, [](char32_t c) { return c >= 0x20 && c < 0x7F ? true : !is_bert_removed(c); });
            map_characters(text, [](char32_t c) { return is_space(c) ? U' ' : c; });
        }
        if (pad_) pad_cjk(text);
        if (strip_) {
            apply_normal_form(text, false, false);
            filter_characters(text, [](char32_t c) { return c < 0x300 || !is_bert_mark(c); });
        }
        if (lower_) lower_characters(text);
    }

private:
    bool clean_;
    bool pad_;
    bool lower_;
    bool strip_;
};

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(const JsonView& description) {
    return std::make_unique<BertNormalizer>(description);
}

}  // namespace headscope::tokenizer

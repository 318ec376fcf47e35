// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/normalizers/characters.h"

#include <algorithm>
#include <utility>

#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

void filter_characters(AlignedText& text, bool (*keep)(char32_t)) {
    const std::string& old = text.text();
    std::size_t first = 0;
    while (first < old.size()) {
        const Decoded c = decode_utf8(old, first);
        if (!keep(c.point)) break;
        first += c.length;
    }
    if (first == old.size()) return;
    Transformation transformation(text);
    for (std::size_t at = 0; at < old.size();) {
        const Decoded c = decode_utf8(old, at);
        at += c.length;
        if (keep(c.point)) {
            transformation.add({c.point, 0});
        } else if (transformation.empty()) {
            transformation.remove(1);
        } else {
            --transformation.last().kind;
        }
    }
    transformation.finish();
}

void map_characters(AlignedText& text, char32_t (*map)(char32_t)) {
    const std::string& old = text.text();
    std::string mapped;
    mapped.reserve(old.size());
    bool in_step = true;
    for (std::size_t at = 0; at < old.size() && in_step;) {
        const Decoded c = decode_utf8(old, at);
        append_utf8(mapped, map(c.point));
        at += c.length;
        in_step = mapped.size() == at;
    }
    if (in_step) return text.overwrite(std::move(mapped));
    std::string().swap(mapped);
    Transformation transformation(text);
    for (std::size_t at = 0; at < old.size();) {
        const Decoded c = decode_utf8(old, at);
        transformation.add({map(c.point), 0});
        at += c.length;
    }
    transformation.finish();
}

void lower_characters(AlignedText& text) {
    const std::string& old = text.text();
    char32_t buffer[2];
    std::string lowered;
    lowered.reserve(old.size());
    bool in_step = true;
    for (std::size_t at = 0; at < old.size() && in_step;) {
        const Decoded c = decode_utf8(old, at);
        for (const char32_t lower : to_lower(c.point, buffer)) append_utf8(lowered, lower);
        at += c.length;
        in_step = lowered.size() == at;
    }
    if (in_step) return text.overwrite(std::move(lowered));
    std::string().swap(lowered);
    Transformation transformation(text);
    for (std::size_t at = 0; at < old.size();) {
        const Decoded c = decode_utf8(old, at);
        std::int32_t kind = 0;
        for (const char32_t lower : to_lower(c.point, buffer)) {
            transformation.add({lower, kind});
            kind = 1;
        }
        at += c.length;
    }
    transformation.finish();
}

namespace {

class Lowercase final : public Normalizer {
public:
    void apply(AlignedText& text) const override { lower_characters(text); }
};

class StripAccents final : public Normalizer {
public:
    void apply(AlignedText& text) const override {
        filter_characters(text, [](char32_t c) { return !is_combining_mark(c); });
    }
};

// The rules of Google's NMT preprocessing, as sentencepiece's nmt_nfkc begins.
class Nmt final : public Normalizer {
public:
    void apply(AlignedText& text) const override {
        filter_characters(text, [](char32_t c) {
            return !((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
                     c == 0x9F);
        });
        map_characters(text, [](char32_t c) {
            const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                               (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                               c == 0xFEFF || c == 0xFFFD;
            return space ? U' ' : c;
        });
    }
};

class ByteLevel final : public Normalizer {
public:
    void apply(AlignedText& text) const override {
        const std::string& old = text.text();
        Transformation transformation(text);
        for (const char byte : old) {
            transformation.add({byte_character(static_cast<unsigned char>(byte)), is_continuation(byte) ? 1 : 0});
        }
        transformation.finish();
    }
};

}  // namespace

std::unique_ptr<Normalizer> make_lowercase() {
    return std::make_unique<Lowercase>();
}
std::unique_ptr<Normalizer> make_strip_accents() {
    return std::make_unique<StripAccents>();
}
std::unique_ptr<Normalizer> make_nmt() {
    return std::make_unique<Nmt>();
}
std::unique_ptr<Normalizer> make_byte_level_normalizer() {
    return std::make_unique<ByteLevel>();
}

}  // namespace headscope::tokenizer

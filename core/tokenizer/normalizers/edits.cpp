// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>
#include <utility>

#include "core/tokenizer/normalizers/normalizer.h"
#include "core/tokenizer/regex/matcher.h"
#include "core/tokenizer/regex/pattern_field.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

class Strip final : public Normalizer {
public:
    explicit Strip(const JsonView& description)
        : left_(description.at("strip_left").boolean()), right_(description.at("strip_right").boolean()) {}

    void apply(AlignedText& text) const override {
        const std::string& old = text.text();
        std::size_t begin = 0;
        std::size_t end = old.size();
        while (left_ && begin < end) {
            const Decoded c = decode_utf8(old, begin);
            if (!is_space(c.point)) break;
            begin += c.length;
        }
        while (right_ && end > begin) {
            const std::size_t last = previous_utf8(old, end);
            if (!is_space(decode_utf8(old, last).point)) break;
            end = last;
        }
        if (begin == 0 && end == old.size()) return;
        AlignedBuilder builder(text);
        builder.copy(begin, end);
        text = builder.finish();
    }

private:
    bool left_;
    bool right_;
};

class Prepend final : public Normalizer {
public:
    explicit Prepend(const JsonView& description) : prefix_(description.at("prepend").string()) {}

    void apply(AlignedText& text) const override {
        if (text.size() == 0) return;
        AlignedBuilder builder(text);
        if (prefix_.empty()) {  // the reference's alignment takes the first character for an inserted one then
            const std::size_t first = utf8_length(text.text()[0]);
            builder.put(std::string_view(text.text()).substr(0, first), {text.origin(), text.origin()});
            builder.copy(first, text.size());
        } else {
            builder.put(prefix_, text.span(0));
            builder.copy(0, text.size());
        }
        text = builder.finish();
    }

private:
    std::string prefix_;
};

class Replace final : public Normalizer {
public:
    explicit Replace(const JsonView& description)
        : matcher_(pattern_field(description.at("pattern"))), content_(description.at("content").string()) {}

    void apply(AlignedText& text) const override {
        if (text.size() == 0) return;
        std::optional<AlignedBuilder> builder;
        SpanReader spans(text);
        std::size_t last = 0;
        matcher_->each(text.text(), [&](Match match) {
            if (!builder) builder.emplace(text);
            builder->copy(last, match.begin);
            // An insertion has the source of the last character that it replaces.
            builder->put(content_, match.end > 0 ? spans.at(match.end - 1) : Span{text.origin(), text.origin()});
            last = match.end;
        });
        if (!builder) return;
        builder->copy(last, text.size());
        text = builder->finish();
    }

private:
    std::unique_ptr<Matcher> matcher_;
    std::string content_;
};

}  // namespace

std::unique_ptr<Normalizer> make_strip(const JsonView& description) {
    return std::make_unique<Strip>(description);
}
std::unique_ptr<Normalizer> make_prepend(const JsonView& description) {
    return std::make_unique<Prepend>(description);
}
std::unique_ptr<Normalizer> make_replace(const JsonView& description) {
    return std::make_unique<Replace>(description);
}

}  // namespace headscope::tokenizer

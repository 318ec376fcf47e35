// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/aligned_text.h"

#include <algorithm>
#include <utility>

#include "core/base/cancellation_scope.h"
#include "core/tokenizer/utf8.h"

namespace headscope::tokenizer {

namespace {
constexpr std::size_t changes_per_check = 1 << 16;
}

Span AlignedText::span(std::size_t at) const {
    if (!spans_.empty()) return spans_[at];
    while (at > 0 && is_continuation(text_[at])) --at;
    const auto begin = static_cast<std::uint32_t>(at) + origin_;
    return {begin, begin + static_cast<std::uint32_t>(utf8_length(text_[at]))};
}

void AlignedText::make_table() {
    if (!spans_.empty() || text_.empty()) return;
    spans_.resize(text_.size());
    for (std::size_t at = 0; at < text_.size();) {
        const std::size_t length = utf8_length(text_[at]);
        const auto begin = static_cast<std::uint32_t>(at) + origin_;
        std::fill_n(spans_.begin() + static_cast<std::ptrdiff_t>(at), length,
                    Span{begin, begin + static_cast<std::uint32_t>(length)});
        at += length;
    }
}

void AlignedText::transform(const std::vector<Change>& changes, std::size_t removed) {
    make_table();
    std::string text;
    text.reserve(text_.size());
    std::vector<Span> spans;
    spans.reserve(text_.size());
    std::size_t at = 0;  // in the old text
    const auto skip = [&](std::size_t characters) {
        for (; characters > 0 && at < text_.size(); --characters) at += utf8_length(text_[at]);
    };
    skip(removed);
    std::size_t changed = 0;
    for (const Change& change : changes) {
        if (++changed % changes_per_check == 0) check_cancellation();
        Span span{origin_, origin_};
        if (change.kind > 0) {
            if (at > 0) span = spans_[at - 1];
        } else {
            if (at < text_.size()) span = spans_[at];
            skip(1 + static_cast<std::size_t>(-change.kind));
        }
        append_utf8(text, change.point);
        spans.resize(text.size(), span);
    }
    text_ = std::move(text);
    spans_ = std::move(spans);
}

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
    AlignedText part(std::string_view(text_).substr(begin, end - begin), begin < end ? span(begin).begin : origin_);
    if (!spans_.empty()) {
        part.spans_.assign(spans_.begin() + static_cast<std::ptrdiff_t>(begin),
                           spans_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return part;
}

void AlignedText::append(const AlignedText& other) {
    if (other.text_.empty()) return;
    if (text_.empty()) {
        *this = other;
        return;
    }
    const bool continues = spans_.empty() && other.spans_.empty() && origin_ + text_.size() == other.origin_;
    if (!continues) {
        make_table();
        if (other.spans_.empty()) {
            AlignedText copy = other;
            copy.make_table();
            spans_.insert(spans_.end(), copy.spans_.begin(), copy.spans_.end());
        } else {
            spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
        }
    }
    text_ += other.text_;
}

AlignedBuilder::AlignedBuilder(const AlignedText& source, std::size_t more) : source_(source) {
    result_.origin_ = source.origin_;
    result_.text_.reserve(source.size() + source.size() / 8 + more);
    result_.spans_.reserve(source.size() + source.size() / 8 + more);
}

void AlignedBuilder::copy(std::size_t begin, std::size_t end) {
    result_.text_.append(source_.text_, begin, end - begin);
    if (!source_.spans_.empty()) {
        result_.spans_.insert(result_.spans_.end(), source_.spans_.begin() + static_cast<std::ptrdiff_t>(begin),
                              source_.spans_.begin() + static_cast<std::ptrdiff_t>(end));
        return;
    }
    for (std::size_t at = begin; at < end;) {
        const Span span = source_.span(at);
        const std::size_t length = std::min(utf8_length(source_.text_[at]), end - at);
        result_.spans_.insert(result_.spans_.end(), length, span);
        at += length;
    }
}

void AlignedBuilder::put(std::string_view text, Span span) {
    result_.text_.append(text);
    result_.spans_.insert(result_.spans_.end(), text.size(), span);
}

}  // namespace headscope::tokenizer

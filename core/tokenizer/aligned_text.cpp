// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/aligned_text.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

constexpr std::size_t changes_per_check = 1 << 16;
// Hangul taken apart, which grows most of what people write, becomes three times as long, with a byte-level alphabet
// six times: texts of many megabytes are not written in that, and the rest may as well be longer.
constexpr std::size_t usual_growth = 4;
constexpr std::size_t always_allowed = std::size_t{16} << 20U;

std::size_t room_for(std::size_t bytes) {
    return bytes + bytes / 8;
}

}  // namespace

std::size_t most_bytes(std::size_t original) {
    const std::size_t places = std::numeric_limits<std::uint32_t>::max() - std::size_t{1};
    return std::min(places, usual_growth * original + always_allowed);
}

void AlignedText::check_size(std::size_t size) const {
    if (size <= most_) return;
    throw Error(ErrorCode::limit, "text",
                "expected at most " + size_text(most_) + " of text once the tokenizer has normalised it",
                "found that it grows beyond that");
}

Span AlignedText::span(std::size_t at) const {
    if (!spans_.empty()) return SpanTable::Reader(spans_).at(at);
    while (at > 0 && is_continuation(text_[at])) --at;
    const auto begin = static_cast<std::uint32_t>(at) + origin_;
    return {begin, begin + static_cast<std::uint32_t>(utf8_length(text_[at]))};
}

void AlignedText::make_table() {
    if (!spans_.empty() || text_.empty()) return;
    spans_.reserve(room_for(text_.size()));
    for (std::size_t at = 0; at < text_.size();) {
        const std::size_t length = utf8_length(text_[at]);
        const auto begin = static_cast<std::uint32_t>(at) + origin_;
        spans_.add(length, {begin, begin + static_cast<std::uint32_t>(length)});
        at += length;
    }
}

void AlignedText::transform(const std::vector<Change>& changes, std::size_t removed) {
    Transformation transformation(*this);
    transformation.remove(removed);
    for (const Change& change : changes) transformation.add(change);
    transformation.finish();
}

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
    AlignedText part(std::string_view(text_).substr(begin, end - begin), begin < end ? span(begin).begin : origin_);
    if (spans_.empty()) return part;
    part.spans_.reserve(end - begin);
    SpanTable::Reader reader(spans_);
    for (std::size_t at = begin; at < end; ++at) part.spans_.add(1, reader.at(at));
    return part;
}

void AlignedText::append(AlignedText other) {
    if (other.text_.empty()) return;
    check_size(text_.size() + other.text_.size());
    if (text_.empty()) {
        other.most_ = most_;
        *this = std::move(other);
        return;
    }
    const bool continues = spans_.empty() && other.spans_.empty() && origin_ + text_.size() == other.origin_;
    if (!continues) {
        make_table();
        other.make_table();
        SpanTable::Reader reader(other.spans_);
        for (std::size_t at = 0; at < other.text_.size(); ++at) spans_.add(1, reader.at(at));
    }
    text_ += other.text_;
}

Transformation::Transformation(AlignedText& text) : old_(text), spans_(text) {
    check_cancellation();
    result_.origin_ = old_.origin_;
    result_.most_ = old_.most_;
    result_.text_.reserve(room_for(old_.size()));
    result_.spans_.reserve(room_for(old_.size()));
}

void Transformation::skip(std::size_t characters) {
    for (; characters > 0 && at_ < old_.size(); --characters) at_ += utf8_length(old_.text_[at_]);
}

void Transformation::write(const Change& change) {
    if (++written_ % changes_per_check == 0) check_cancellation();
    Span span{old_.origin_, old_.origin_};
    if (change.kind > 0) {
        if (at_ > 0) span = spans_.at(at_ - 1);
    } else {
        if (at_ < old_.size()) span = spans_.at(at_);
        skip(1 + static_cast<std::size_t>(-change.kind));
    }
    const std::size_t before = result_.text_.size();
    append_utf8(result_.text_, change.point);
    result_.spans_.add(result_.text_.size() - before, span);
    old_.check_size(result_.text_.size());
}

void Transformation::finish() {
    if (has_last_) write(last_);
    old_ = std::move(result_);
}

AlignedBuilder::AlignedBuilder(const AlignedText& source, std::size_t more) : source_(source), spans_(source) {
    check_cancellation();
    result_.origin_ = source.origin_;
    result_.most_ = source.most_;
    const std::size_t room = std::min(room_for(source.size()) + more, source.most_);
    result_.text_.reserve(room);
    result_.spans_.reserve(room);
}

void AlignedBuilder::copy(std::size_t begin, std::size_t end) {
    source_.check_size(size() + (end - begin));
    result_.text_.append(source_.text_, begin, end - begin);
    // In step, the span of each character; else that of each byte.
    for (std::size_t at = begin; at < end;) {
        const std::size_t length =
            source_.in_step() ? std::min(utf8_length(source_.text_[at]), end - at) : std::size_t{1};
        result_.spans_.add(length, spans_.at(at));
        at += length;
    }
}

void AlignedBuilder::put(std::string_view text, Span span) {
    source_.check_size(size() + text.size());
    result_.text_.append(text);
    result_.spans_.add(text.size(), span);
}

}  // namespace headscope::tokenizer

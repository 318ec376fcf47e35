// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/shown_text.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text/text.h"
#include "core/figures/token_text.h"
#include "core/workspace/token_display.h"

namespace headscope::widgets {
namespace {

constexpr QChar kNarrowSpace(0x202F), kZeroWidthSpace(0x200B);
constexpr std::size_t kLongestName = 40;  ///< of a special token

class Shower {
public:
    explicit Shower(const store::SequenceTokens& source) : source_(source) {}

    ShownText show() {
        const auto chips = workspace::TokenDisplay(source_).chips(0, std::ssize(source_.ids), kLongestName);
        shown_.tokens.reserve(chips.size());
        for (std::size_t i = 0; i < chips.size();) {
            std::size_t end = i + 1;
            while (end < chips.size() && chips[end].first == chips[i].first) ++end;
            const qsizetype from = shown_.text.size();
            if (chips[i].special) {
                shown_.text += kNarrowSpace + QString::fromStdString(chips[i].label) + kNarrowSpace;
            } else {
                append_group(chips[i], i, end);
            }
            const qsizetype gap = std::exchange(gap_, 0);
            for (std::size_t k = i; k < end; ++k)
                shown_.tokens.push_back({from + gap, shown_.text.size(), static_cast<int>(k - i),
                                         static_cast<int>(end - i), chips[i].special});
            if (chips[i].special) shown_.text += kZeroWidthSpace;  // a line may end here
            i = end;
        }
        return std::move(shown_);
    }

private:
    /// The text's own characters, after those that no token has; pieces where the text has no place for them, or has
    /// given it away: a probe repeats one token.
    void append_group(const workspace::TokenChip& chip, std::size_t first, std::size_t last) {
        std::int64_t begin = -1, end = -1;
        std::string pieces;
        const auto size = static_cast<std::int64_t>(source_.text.size());
        for (std::size_t token = first; token < last; ++token) {
            if (token < source_.pieces.size()) pieces += source_.pieces[token];
            if (token >= source_.offsets.size()) continue;
            const auto [from, to] = source_.offsets[token];
            if (from < 0 || from >= to || to > size) continue;
            begin = begin < 0 ? from : std::min(begin, from);
            end = std::max(end, to);
        }
        if (begin < at_) return append(pieces.empty() ? chip.label : pieces);
        const qsizetype before = shown_.text.size();
        append({source_.text.data() + at_, static_cast<std::size_t>(begin - at_)});
        gap_ = shown_.text.size() - before;
        append({source_.text.data() + begin, static_cast<std::size_t>(end - begin)});
        at_ = end;
    }

    void append(std::string_view bytes) { append_shown(shown_.text, bytes); }

    const store::SequenceTokens& source_;
    ShownText shown_;
    std::int64_t at_ = 0;  ///< bytes of the source's text that are shown
    qsizetype gap_ = 0;    ///< characters before the group that no token has
};

}  // namespace

void append_shown(QString& text, std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
        char32_t code = 0;
        const std::size_t size = decode_utf8(bytes.substr(i), code);
        if (size == 0) {
            text += QString::fromStdString(figures::byte_name(static_cast<unsigned char>(bytes[i])));
            ++i;
            continue;
        }
        i += size;
        if (code == '\r' && i < bytes.size() && bytes[i] == '\n') continue;  // the line feed stands for both
        // Spaces and joiners of running text stay; controls and marks of the writing direction would act unseen.
        text += is_showable(code) ? QString::fromUcs4(&code, 1) : QString::fromStdString(figures::stand_in(code));
        if (code == '\n') text += QLatin1Char('\n');
        if (code == '\t') text += QChar(0x2003);
    }
}

std::size_t ShownText::first_after(qsizetype place) const {
    const auto found =
        std::partition_point(tokens.begin(), tokens.end(), [place](const Token& token) { return token.end <= place; });
    return static_cast<std::size_t>(found - tokens.begin());
}

std::int64_t ShownText::token_at(qsizetype place) const {
    const std::size_t found = first_after(place);
    if (found == tokens.size() || tokens[found].begin > place) return -1;
    return static_cast<std::int64_t>(found);
}

std::int64_t bytes_of(const ShownText& text) {
    return static_cast<std::int64_t>(text.text.size()) * 2 +
           static_cast<std::int64_t>(text.tokens.size() * sizeof(ShownText::Token));
}

ShownText show_text(const store::SequenceTokens& tokens) {
    return Shower(tokens).show();
}

bool is_quiet(QChar character) {
    return character == QChar(0x21B5) || character == QChar(0x21E5) || character == QChar(0x240D) ||
           character == QChar(0x2205);
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/token_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headscope::widgets {
namespace {

constexpr int kNarrowest = 3;  ///< pixels: what takes no room can still be pointed at

using Span = std::pair<double, double>;

bool turns(QStringView text) {
    return std::any_of(text.begin(), text.end(), [](QChar c) {
        switch (c.direction()) {
            case QChar::DirR:
            case QChar::DirAL:
            case QChar::DirAN:
            case QChar::DirRLE:
            case QChar::DirRLO:
            case QChar::DirRLI:
                return true;
            default:
                return c.isHighSurrogate();  // some ancient scripts
        }
    });
}

/// Horizontal extents of characters [begin, end) of the line, from left to right.
std::vector<Span> spans(const QTextLayout& layout, const QTextLine& line, int begin, int end, bool turning) {
    if (!turning) return {{line.cursorToX(begin), line.cursorToX(end)}};
    std::vector<Span> all;
    for (int i = begin; i < end; ++i) {
        if (!layout.isValidCursorPosition(i)) continue;  // a mark, whose letter has the place of both
        double a = line.cursorToX(i, QTextLine::Leading), b = line.cursorToX(i, QTextLine::Trailing);
        if (a > b) std::swap(a, b);
        all.emplace_back(a, b);
    }
    if (all.empty()) return {{line.cursorToX(begin), line.cursorToX(begin)}};
    std::sort(all.begin(), all.end());
    std::vector<Span> joined;
    for (const Span& span : all) {
        if (!joined.empty() && span.first <= joined.back().second + 0.5)
            joined.back().second = std::max(joined.back().second, span.second);
        else
            joined.push_back(span);
    }
    return joined;
}

}  // namespace

std::unique_ptr<TokenLine> make_token_line(const ShownText& text, const LineBreaker::Line& line, const QFont& font) {
    auto made = std::make_unique<TokenLine>();
    const QString shown = text.text.mid(line.begin, line.end - line.begin);
    made->layout.setText(shown);
    made->layout.setFont(font);
    QTextOption option;
    option.setTextDirection(line.right_to_left ? Qt::RightToLeft : Qt::LeftToRight);
    option.setWrapMode(QTextOption::NoWrap);
    option.setAlignment(Qt::AlignLeft | Qt::AlignAbsolute);
    made->layout.setTextOption(option);
    made->layout.setCacheEnabled(true);
    made->layout.beginLayout();
    QTextLine drawn = made->layout.createLine();
    if (drawn.isValid()) drawn.setLineWidth(1 << 20);
    made->layout.endLayout();
    if (!drawn.isValid()) return made;
    // Lines that are not aligned to the left (right-to-left text in some versions of Qt) are moved there when drawn.
    made->ascent = drawn.ascent();
    const bool turning = line.right_to_left || turns(shown);
    made->width = drawn.horizontalAdvance();
    const auto length = static_cast<int>(shown.size());
    for (std::size_t t = text.first_after(line.begin); t < text.tokens.size() && text.tokens[t].begin < line.end; ++t) {
        const auto& token = text.tokens[t];
        const int begin = std::clamp(static_cast<int>(token.begin - line.begin), 0, length);
        const int end = std::clamp(static_cast<int>(token.end - line.begin), begin, length);
        for (const auto& [left, right] : spans(made->layout, drawn, begin, end, turning)) {
            const double width = right - left;
            int from = static_cast<int>(std::lround(left + width * token.part / token.parts));
            int to = static_cast<int>(std::lround(left + width * (token.part + 1) / token.parts));
            if (to - from < kNarrowest) to = from + kNarrowest;
            made->boxes.push_back({static_cast<std::int64_t>(t), from, to});
        }
    }
    return made;
}

}  // namespace headscope::widgets

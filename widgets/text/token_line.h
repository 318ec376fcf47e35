// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QRect>
#include <QTextLayout>
#include <memory>
#include <vector>

#include "widgets/text/line_breaker.h"
#include "widgets/text/shown_text.h"

namespace headscope::widgets {

/// One line made ready to draw: shaped as a whole, so that scripts that join do, and the place of each token in it.
struct TokenLine {
    struct Box {
        std::int64_t token = 0;
        int left = 0, right = 0;  ///< pixels from the line's left end; a token that reads both ways has several
    };
    QTextLayout layout;
    double width = 0, ascent = 0;
    std::vector<Box> boxes;
};

std::unique_ptr<TokenLine> make_token_line(const ShownText& text, const LineBreaker::Line& line, const QFont& font);

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/line_breaker.h"

#include <QElapsedTimer>
#include <QFontMetricsF>
#include <QTextBoundaryFinder>
#include <QTextLayout>
#include <algorithm>

namespace headscope::widgets {
namespace {

constexpr qsizetype kStretch = 2048;  ///< characters that are measured at once, some two milliseconds
constexpr qsizetype kKnownWords = 20000;

}  // namespace

void LineBreaker::set_text(const QString& text, const QFont& font) {
    text_ = text;
    if (font != font_) known_.clear();
    font_ = font;
    pieces_.clear();
    measured_ = 0;
    set_width(width_);
}

void LineBreaker::set_width(double width) {
    width_ = width;
    lines_.clear();
    filled_ = 0;
    open_ = false;
    line_begin_ = 0;
    line_width_ = 0;
    paragraph_begins_ = true;
}

bool LineBreaker::work(double milliseconds) {
    QElapsedTimer clock;
    clock.start();
    fill();
    while (measured_ < text_.size() && static_cast<double>(clock.nsecsElapsed()) < milliseconds * 1e6) {
        measure_stretch();
        fill();
    }
    return finished();
}

double LineBreaker::share() const {
    return text_.isEmpty() ? 1.0 : static_cast<double>(measured_) / static_cast<double>(text_.size());
}

std::size_t LineBreaker::line_of(qsizetype place) const {
    const auto found = std::upper_bound(lines_.begin(), lines_.end(), place,
                                        [](qsizetype value, const Line& line) { return value < line.begin; });
    return found == lines_.begin() ? 0 : static_cast<std::size_t>(found - lines_.begin()) - 1;
}

float LineBreaker::measured(const QString& word) {
    const auto found = known_.constFind(word);
    if (found != known_.constEnd()) return *found;
    if (known_.size() > kKnownWords) known_.clear();
    const auto width = static_cast<float>(QFontMetricsF(font_).horizontalAdvance(word));
    known_.insert(word, width);
    return width;
}

void LineBreaker::measure_stretch() {
    qsizetype end = std::min(text_.size(), measured_ + kStretch);
    // Cut where a line may end anyway: behind a line feed, else behind a space.
    if (end < text_.size()) {
        const qsizetype feed = text_.lastIndexOf(QLatin1Char('\n'), end - 1);
        const qsizetype space = text_.lastIndexOf(QLatin1Char(' '), end - 1);
        const qsizetype cut = std::max(feed, space) + 1;
        if (cut > measured_ + kStretch / 2) {
            end = cut;
        } else if (text_[end].isLowSurrogate()) {
            --end;
        }
    }
    const QStringView stretch = QStringView(text_).mid(measured_, end - measured_);
    QTextBoundaryFinder finder(QTextBoundaryFinder::Line, stretch);
    qsizetype from = 0;
    while (finder.toNextBoundary() > 0) {
        // Qt has no boundary between a line feed and spaces behind it, which begin the next line.
        for (const qsizetype boundary = finder.position(); from < boundary;) {
            const qsizetype feed = stretch.indexOf(QLatin1Char('\n'), from);
            const qsizetype to = feed >= 0 && feed < boundary ? feed + 1 : boundary;
            const QStringView word = stretch.mid(from, to - from);
            Piece piece;
            piece.end = measured_ + to;
            piece.breaks = word.endsWith(QLatin1Char('\n'));
            qsizetype ink = word.size();
            while (ink > 0 && word[ink - 1].isSpace()) --ink;
            const QString text = word.left(ink).toString();
            piece.ink = measured(text);
            const QString spaces = word.mid(ink, word.size() - ink - (piece.breaks ? 1 : 0)).toString();
            piece.width = piece.ink + (spaces.isEmpty() ? 0.0F : measured(spaces));
            pieces_.push_back(piece);
            from = to;
        }
    }
    measured_ = end;
}

void LineBreaker::close_line(qsizetype end) {
    lines_.push_back({line_begin_, end, right_to_left_});
    line_begin_ = end;
    line_width_ = 0;
    open_ = false;
}

void LineBreaker::fill() {
    for (; filled_ < pieces_.size(); ++filled_) {
        const Piece& piece = pieces_[filled_];
        const qsizetype begin = filled_ == 0 ? 0 : pieces_[filled_ - 1].end;
        if (paragraph_begins_) {
            right_to_left_ = QStringView(text_).mid(begin, kStretch).isRightToLeft();
            paragraph_begins_ = false;
        }
        if (open_ && line_width_ + piece.ink > width_) close_line(begin);
        open_ = true;
        if (line_width_ + piece.ink > width_) {
            break_piece(begin, piece);
        } else {
            line_width_ += piece.width;
        }
        if (piece.breaks) {
            close_line(piece.end - 1);
            line_begin_ = piece.end;
            paragraph_begins_ = true;
        }
    }
    if (measured_ == text_.size() && open_) close_line(measured_);
}

/// A word that is wider than a line: broken between characters.
void LineBreaker::break_piece(qsizetype begin, const Piece& piece) {
    const qsizetype end = piece.end - (piece.breaks ? 1 : 0);
    QTextLayout layout(text_.mid(begin, end - begin), font_);
    QTextOption option;
    option.setWrapMode(QTextOption::WrapAnywhere);
    layout.setTextOption(option);
    layout.beginLayout();
    double last = 0;
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
        line.setLineWidth(std::max(width_, 1.0));
        if (line.textStart() > 0) close_line(begin + line.textStart());
        last = line.naturalTextWidth();
    }
    layout.endLayout();
    open_ = true;
    line_width_ = last;
}

}  // namespace headscope::widgets

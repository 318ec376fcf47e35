// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QHash>
#include <QString>
#include <vector>

namespace headscope::widgets {

/// Breaks a long text into lines of a width, a slice at a time: what stands between two places where a line may end is
/// measured once for a font, filling lines with it again for another width takes about a millisecond per hundred
/// thousand characters.
class LineBreaker {
public:
    struct Line {
        qsizetype begin = 0, end = 0;  ///< without the line feed
        bool right_to_left = false;    ///< its paragraph
    };

    void set_text(const QString& text, const QFont& font);
    void set_width(double width);
    /// Continues for about `milliseconds`; true when all lines are there.
    bool work(double milliseconds);
    bool finished() const { return measured_ == text_.size() && filled_ == pieces_.size() && !open_; }

    const std::vector<Line>& lines() const { return lines_; }
    /// How much of the text has lines, 0 to 1.
    double share() const;
    /// The line with this place; the last one for places without a line yet.
    std::size_t line_of(qsizetype place) const;

private:
    struct Piece {
        qsizetype end = 0;
        float width = 0, ink = 0;  ///< ink: without spaces at the end, which may hang over
        bool breaks = false;       ///< a line feed follows
    };
    void measure_stretch();
    void fill();
    void close_line(qsizetype end);
    void break_piece(qsizetype begin, const Piece& piece);
    float measured(const QString& word);

    QString text_;
    QFont font_;
    double width_ = 0;
    std::vector<Piece> pieces_;
    std::vector<Line> lines_;
    QHash<QString, float> known_;
    qsizetype measured_ = 0;  ///< up to here there are pieces
    std::size_t filled_ = 0;  ///< pieces that are in lines
    bool open_ = false;       ///< a line has begun
    qsizetype line_begin_ = 0;
    double line_width_ = 0;
    bool paragraph_begins_ = true, right_to_left_ = false;
};

}  // namespace headscope::widgets

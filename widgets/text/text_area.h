// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractScrollArea>
#include <QCache>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/text/line_breaker.h"
#include "widgets/text/shown_text.h"
#include "widgets/text/token_line.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// A text to read whose tokens have coloured backgrounds. Any length: lines are broken a slice at a time while the
/// window goes on, and only those in sight are shaped and drawn. A click chooses a token, Ctrl with the arrows steps;
/// the parent handles plain arrow keys. Screen readers get the text (text_area_access.cpp).
class TokenTextArea : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit TokenTextArea(QWidget* parent = nullptr);
    ~TokenTextArea() override;

    /// Nothing happens when it is the text already shown.
    void set_text(std::shared_ptr<const ShownText> text);
    const std::shared_ptr<const ShownText>& text() const { return text_; }
    /// One value a token, NaN: a token that stays apart; empty: no colours.
    void set_values(std::vector<float> values, const figures::ColourScale& scale);
    const std::vector<float>& values() const { return values_; }
    const figures::ColourScale& scale() const { return scale_; }
    /// The value in small type under each token that is wide enough.
    void set_numbers(bool shown);
    /// A strip of `rows` cells under each token, one above the other: [token * rows + row], invalid: none; 0: no strip.
    void set_strip(int rows, std::vector<QColor> cells);
    QColor strip_colour(std::int64_t token, int row) const;
    void set_theme(const Theme& theme);
    void set_outlined(std::optional<std::int64_t> token);
    void set_underlined(std::optional<std::int64_t> token);
    std::optional<std::int64_t> outlined() const { return outlined_; }
    std::optional<std::int64_t> underlined() const { return underlined_; }
    /// Sets the plain text of the tooltip of a token.
    void set_description(std::function<QString(std::int64_t)> describe) { describe_ = std::move(describe); }
    /// Scrolls there, once its line is known.
    void show_token(std::int64_t token);

    /// At a place of the viewport; -1: none.
    std::int64_t token_at(const QPoint& place) const;
    /// On the viewport; empty while its line is not known. The first line of a token on several.
    QRect token_rect(std::int64_t token) const;
    bool laid_out() const { return breaker_.finished(); }
    std::size_t lines() const { return breaker_.lines().size(); }
    QString description(std::int64_t token) const { return describe_ ? describe_(token) : QString(); }
    QColor colour(std::int64_t token) const;  ///< behind it; invalid: none

Q_SIGNALS:
    void clicked(qint64 token, Qt::KeyboardModifiers keys);
    void pointed(qint64 token);  ///< -1: beside the text
    void stepped(int tokens);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    bool viewportEvent(QEvent* event) override;

private:
    void set_fonts();
    void set_heights();
    int strip_cell() const;  ///< its height
    void break_again();
    void break_more();
    void set_scroll_range();
    void point_at(std::int64_t token);
    void update_token(std::optional<std::int64_t> token);
    int text_width() const;
    int top_of(std::size_t line) const;
    int left_of(std::size_t line, const TokenLine& made) const;
    const TokenLine& line(std::size_t index) const;
    void paint_line(QPainter& painter, std::size_t index) const;
    void paint_letters(QPainter& painter, const TokenLine& made, QPoint corner) const;
    void paint_marks(QPainter& painter, const TokenLine& made, QPoint corner) const;
    void paint_strip(QPainter& painter, const QRect& box, std::int64_t token) const;
    QRect box_rect(const TokenLine::Box& box, QPoint corner) const;
    QColor ink(std::int64_t token) const;

    std::shared_ptr<const ShownText> text_;
    std::vector<float> values_;
    figures::ColourScale scale_;
    Theme theme_;
    bool numbers_ = false;
    int strip_rows_ = 0;
    std::vector<QColor> strip_;
    std::optional<std::int64_t> outlined_, underlined_;
    std::int64_t pointed_ = -1;
    std::function<QString(std::int64_t)> describe_;
    QFont font_, small_font_;
    int line_height_ = 20, box_height_ = 18, baseline_ = 14;
    LineBreaker breaker_;
    mutable QCache<std::size_t, TokenLine> made_{400};
    QTimer timer_;
    std::optional<qsizetype> anchor_;           ///< the place at the top, while lines are broken again
    std::optional<std::int64_t> wanted_token_;  ///< to scroll to
};

}  // namespace headscope::widgets

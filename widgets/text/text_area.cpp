// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/text_area.h"

#include <QFontInfo>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/text/text_area_access.h"

namespace headscope::widgets {
namespace {

constexpr int kMargin = 12;
constexpr double kSlice = 5;          ///< milliseconds of a turn of the event loop
constexpr double kNumberSize = 0.62;  ///< of the text's
constexpr int kStripGap = 4;          ///< above the cells, for what underlines a token

}  // namespace

TokenTextArea::TokenTextArea(QWidget* parent) : QAbstractScrollArea(parent), theme_(make_theme(false)) {
    enable_text_access();
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);  // else the width hangs on the height
    viewport()->setMouseTracking(true);
    viewport()->setCursor(Qt::PointingHandCursor);
    timer_.setInterval(0);
    connect(&timer_, &QTimer::timeout, this, &TokenTextArea::break_more);
    set_fonts();
}

TokenTextArea::~TokenTextArea() = default;

void TokenTextArea::set_fonts() {
    const double size = std::max(10, QFontInfo(font()).pixelSize()) * 1.15;
    font_ = figure_font(8);
    font_.setPixelSize(static_cast<int>(std::lround(size)));
    small_font_ = font_;
    small_font_.setPixelSize(std::max(8, static_cast<int>(std::lround(size * kNumberSize))));
    const QFontMetricsF metrics(font_);
    baseline_ = static_cast<int>(std::ceil(metrics.ascent() + 1));
    box_height_ = static_cast<int>(std::ceil(metrics.ascent() + metrics.descent() + 2));
    line_height_ = box_height_ + static_cast<int>(std::lround(size * 0.35));
    if (numbers_) line_height_ += QFontMetrics(small_font_).ascent() + 1;
    if (strip_rows_ > 0) line_height_ += kStripGap + strip_rows_ * strip_cell();
    verticalScrollBar()->setSingleStep(line_height_);
}

void TokenTextArea::set_text(std::shared_ptr<const ShownText> text) {
    if (text == text_) return;
    text_ = std::move(text);
    values_.clear();
    strip_.clear();
    outlined_.reset();
    underlined_.reset();
    pointed_ = -1;
    wanted_token_.reset();
    anchor_.reset();
    verticalScrollBar()->setValue(0);
    breaker_.set_text(text_ ? text_->text : QString(), font_);
    break_again();
    tell_text_changed(this);
}

void TokenTextArea::set_values(std::vector<float> values, const figures::ColourScale& scale) {
    values_ = std::move(values);
    scale_ = scale;
    viewport()->update();
}

void TokenTextArea::set_numbers(bool shown) {
    if (shown == numbers_) return;
    numbers_ = shown;
    set_heights();
}

void TokenTextArea::set_strip(int rows, std::vector<QColor> cells) {
    strip_ = std::move(cells);
    if (rows == strip_rows_) return viewport()->update();
    strip_rows_ = rows;
    set_heights();
}

/// Lines are as they were, and as high as they now are.
void TokenTextArea::set_heights() {
    const auto top = breaker_.lines().empty() ? 0 : verticalScrollBar()->value() / line_height_;
    set_fonts();
    set_scroll_range();
    verticalScrollBar()->setValue(top * line_height_);
    viewport()->update();
}

void TokenTextArea::set_theme(const Theme& theme) {
    theme_ = theme;
    viewport()->update();
}

void TokenTextArea::set_outlined(std::optional<std::int64_t> token) {
    if (token == outlined_) return;
    update_token(std::exchange(outlined_, token));
    update_token(token);
    if (token) tell_token_chosen(this, *token);
}

void TokenTextArea::set_underlined(std::optional<std::int64_t> token) {
    if (token == underlined_) return;
    update_token(std::exchange(underlined_, token));
    update_token(token);
}

void TokenTextArea::update_token(std::optional<std::int64_t> token) {
    if (token) viewport()->update();
}

void TokenTextArea::show_token(std::int64_t token) {
    if (!text_ || token < 0 || token >= std::ssize(text_->tokens)) return;
    const qsizetype place = text_->tokens[static_cast<std::size_t>(token)].begin;
    if (breaker_.lines().empty() || (!breaker_.finished() && place >= breaker_.lines().back().end)) {
        wanted_token_ = token;
        return;
    }
    wanted_token_.reset();
    const auto line = breaker_.line_of(place);
    const int top = static_cast<int>(line) * line_height_, height = viewport()->height();
    const int value = verticalScrollBar()->value();
    if (top >= value && top + line_height_ <= value + height) return;
    set_scroll_range();
    verticalScrollBar()->setValue(top - height / 3);
}

int TokenTextArea::text_width() const {
    return std::max(40, viewport()->width() - 2 * kMargin);
}

void TokenTextArea::break_again() {
    made_.clear();
    breaker_.set_width(text_width());
    timer_.start();
    break_more();
}

void TokenTextArea::break_more() {
    const bool finished = breaker_.work(kSlice);
    if (finished) timer_.stop();
    set_scroll_range();
    if (anchor_ && !breaker_.lines().empty() && (finished || breaker_.lines().back().begin > *anchor_)) {
        verticalScrollBar()->setValue(static_cast<int>(breaker_.line_of(*anchor_)) * line_height_);
        anchor_.reset();
    }
    if (wanted_token_) show_token(*wanted_token_);
    viewport()->update();
}

void TokenTextArea::set_scroll_range() {
    const double share = breaker_.share();
    const auto lines = static_cast<double>(breaker_.lines().size());
    const double expected = share > 0 ? lines / share : lines;
    const int height = static_cast<int>(expected * line_height_) + 2 * kMargin;
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
}

void TokenTextArea::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    if (event->size().width() == event->oldSize().width() && !breaker_.lines().empty()) return set_scroll_range();
    const auto& lines = breaker_.lines();
    const auto top = static_cast<std::size_t>(verticalScrollBar()->value() / line_height_);
    if (!anchor_ && top > 0 && top < lines.size()) anchor_ = lines[top].begin;
    break_again();
}

void TokenTextArea::changeEvent(QEvent* event) {
    QAbstractScrollArea::changeEvent(event);
    if (event->type() != QEvent::FontChange && event->type() != QEvent::ApplicationFontChange) return;
    set_fonts();
    if (text_) breaker_.set_text(text_->text, font_);
    break_again();
}

int TokenTextArea::top_of(std::size_t line) const {
    return kMargin + static_cast<int>(line) * line_height_ - verticalScrollBar()->value();
}

int TokenTextArea::left_of(std::size_t line, const TokenLine& made) const {
    if (!breaker_.lines()[line].right_to_left) return kMargin;
    return kMargin + text_width() - static_cast<int>(std::ceil(made.width));
}

const TokenLine& TokenTextArea::line(std::size_t index) const {
    if (const TokenLine* found = made_.object(index)) return *found;
    made_.insert(index, make_token_line(*text_, breaker_.lines()[index], font_).release());
    return *made_.object(index);
}

std::int64_t TokenTextArea::token_at(const QPoint& place) const {
    const int below = place.y() - kMargin + verticalScrollBar()->value();
    if (!text_ || below < 0) return -1;
    const auto index = static_cast<std::size_t>(below / line_height_);
    if (index >= breaker_.lines().size()) return -1;
    const TokenLine& made = line(index);
    const int x = place.x() - left_of(index, made);
    for (const auto& box : made.boxes)
        if (x >= box.left && x < box.right) return box.token;
    return -1;
}

QRect TokenTextArea::token_rect(std::int64_t token) const {
    if (!text_ || token < 0 || token >= std::ssize(text_->tokens) || breaker_.lines().empty()) return {};
    const std::size_t index = breaker_.line_of(text_->tokens[static_cast<std::size_t>(token)].begin);
    const TokenLine& made = line(index);
    for (const auto& box : made.boxes)
        if (box.token == token) return box_rect(box, {left_of(index, made), top_of(index)});
    return {};
}

QRect TokenTextArea::box_rect(const TokenLine::Box& box, QPoint corner) const {
    return {corner.x() + box.left, corner.y(), box.right - box.left, box_height_};
}

void TokenTextArea::point_at(std::int64_t token) {
    if (token == pointed_) return;
    pointed_ = token;
    viewport()->update();
    Q_EMIT pointed(token);
}

void TokenTextArea::mouseMoveEvent(QMouseEvent* event) {
    point_at(token_at(event->position().toPoint()));
}

void TokenTextArea::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return QAbstractScrollArea::mousePressEvent(event);
    const std::int64_t token = token_at(event->position().toPoint());
    if (token >= 0) Q_EMIT clicked(token, event->modifiers());
}

void TokenTextArea::scrollContentsBy(int, int) {
    viewport()->update();
}

void TokenTextArea::keyPressEvent(QKeyEvent* event) {
    const bool control = (event->modifiers() & ~Qt::KeypadModifier) == Qt::ControlModifier;
    QScrollBar* bar = verticalScrollBar();
    switch (event->key()) {
        case Qt::Key_Left:
        case Qt::Key_Right:
            if (!control) return event->ignore();
            Q_EMIT stepped(event->key() == Qt::Key_Left ? -1 : 1);
            return;
        case Qt::Key_Up:
        case Qt::Key_Down:
            if (!control) return event->ignore();
            bar->setValue(bar->value() + (event->key() == Qt::Key_Up ? -line_height_ : line_height_));
            return;
        case Qt::Key_PageUp:
            return bar->triggerAction(QAbstractSlider::SliderPageStepSub);
        case Qt::Key_PageDown:
            return bar->triggerAction(QAbstractSlider::SliderPageStepAdd);
        case Qt::Key_Home:
            return bar->triggerAction(QAbstractSlider::SliderToMinimum);
        case Qt::Key_End:
            return bar->triggerAction(QAbstractSlider::SliderToMaximum);
        default:
            event->ignore();
    }
}

bool TokenTextArea::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::Leave) point_at(-1);
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const std::int64_t token = token_at(help->pos());
        const QString text = token >= 0 ? description(token) : QString();
        if (text.isEmpty()) {
            QToolTip::hideText();
        } else {
            const QString rich = text.toHtmlEscaped().replace(QLatin1Char('\n'), QLatin1String("<br>"));
            QToolTip::showText(help->globalPos(), QLatin1String("<qt>") + rich, viewport(), token_rect(token));
        }
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

}  // namespace headscope::widgets

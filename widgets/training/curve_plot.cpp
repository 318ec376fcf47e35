// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/curve_plot.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <limits>

#include "widgets/plots/figure/figure_spots.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

using figures::ScaleKind;

constexpr double kZoom = 0.8;
constexpr double kLeastShare = 1e-4;  ///< of all, that zooming in leaves
constexpr double kNear = 12;          ///< pixels from a line that still mean it

bool drawable(ScaleKind scale, double value) {
    return std::isfinite(value) && (scale != ScaleKind::logarithmic || value > 0);
}

/// Those within [low, high] as words; a text that would say the same again is left out.
std::vector<std::pair<double, QString>> labelled(const std::vector<double>& ticks, double low, double high,
                                                 const CurvePlot::Words& words) {
    std::vector<std::pair<double, QString>> labels;
    for (const double tick : ticks) {
        if (tick < low || tick > high) continue;
        const QString text = words ? words(tick) : number_label(tick);
        if (labels.empty() || labels.back().second != text) labels.emplace_back(tick, text);
    }
    return labels;
}

/// Round values; less than a decade of a logarithmic axis has few of its own, and gets those of a linear one. If
/// `wanted` yields one tick only, tries for more, up to `most`.
std::vector<std::pair<double, QString>> ticks_of(ScaleKind scale, double low, double high, int wanted, int most,
                                                 const CurvePlot::Words& words) {
    auto labels = labelled(round_ticks(scale, low, high, wanted), low, high, words);
    if (scale == ScaleKind::logarithmic && labels.size() < 2) scale = ScaleKind::linear;
    for (int count = wanted; labels.size() < 2 && count <= most + 3; ++count) {
        auto more = labelled(round_ticks(scale, low, high, count), low, high, words);
        if (std::ssize(more) <= most) labels = std::move(more);
    }
    return labels;
}

}  // namespace

CurvePlot::CurvePlot(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    setToolTip(tr("Drag moves · Wheel zooms · Double click shows all · ← → read values"));
}

void CurvePlot::renew() {
    outdated_ = true;
    update();
}

void CurvePlot::set_title(const QString& title) {
    if (title == title_) return;
    title_ = title;
    renew();
}

void CurvePlot::set_x(const QString& label, ScaleKind scale, Words words) {
    x_label_ = label;
    x_scale_ = scale;
    x_words_ = std::move(words);
    renew();
}

void CurvePlot::set_y(const QString& label, ScaleKind scale, Words words) {
    y_label_ = label;
    y_scale_ = scale;
    y_words_ = std::move(words);
    renew();
}

void CurvePlot::set_y_least(std::optional<double> value) {
    least_ = value;
    renew();
}

void CurvePlot::set_lines(std::vector<Line> lines) {
    lines_ = std::move(lines);
    renew();
}

void CurvePlot::set_marks(std::vector<Mark> marks) {
    marks_ = std::move(marks);
    renew();
}

void CurvePlot::set_theme(const Theme& theme) {
    theme_ = theme;
    renew();
}

void CurvePlot::set_range(std::optional<Range> range) {
    if (range == range_) return;
    range_ = range;
    renew();
}

void CurvePlot::set_cursor(std::optional<double> x) {
    if (x == cursor_) return;
    cursor_ = x;
    setAccessibleDescription(readings().join(QStringLiteral("; ")));
    update();
}

void CurvePlot::set_end_names(bool names) {
    end_names_ = names;
    renew();
}

void CurvePlot::set_stressed(int id) {
    if (id == stressed_) return;
    stressed_ = id;
    renew();
}

CurvePlot::Range CurvePlot::all_x() const {
    Range all{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (const Line& line : lines_) {
        if (!line.points) continue;
        for (const double x : line.points->x) {
            if (!drawable(x_scale_, x)) continue;
            all.first = std::min(all.first, x);
            break;
        }
        if (!line.points->x.empty()) all.second = std::max(all.second, line.points->x.back());
    }
    const bool log = x_scale_ == ScaleKind::logarithmic;
    if (!(all.first <= all.second)) return log ? Range{1, 10} : Range{0, 1};
    if (all.first < all.second) return all;
    if (log) return {all.first / 2, all.second * 2};
    const double room = std::max(0.5, std::abs(all.first) * 1e-9);
    return {all.first - room, all.second + room};
}

/// A range comes from another plot, too, whose axis may begin where a logarithmic one has no place.
CurvePlot::Range CurvePlot::shown_x() const {
    const Range all = all_x();
    if (!range_) return all;
    const Range seen{drawable(x_scale_, range_->first) ? range_->first : all.first, range_->second};
    const double size = figures::scaled(x_scale_, seen.second) - figures::scaled(x_scale_, seen.first);
    return std::isfinite(size) && size > 0 ? seen : all;
}

void CurvePlot::fit() {
    const Range x = shown_x();
    x_ = {figures::scaled(x_scale_, x.first), figures::scaled(x_scale_, x.second)};
    double low = least_.value_or(std::numeric_limits<double>::infinity());
    double high = least_.value_or(-std::numeric_limits<double>::infinity());
    empty_ = true;
    for (const Line& line : lines_) {
        if (!line.points) continue;
        const auto& points = *line.points;
        const auto begin = std::lower_bound(points.x.begin(), points.x.end(), x.first) - points.x.begin();
        const auto end = std::upper_bound(points.x.begin(), points.x.end(), x.second) - points.x.begin();
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
            if (!drawable(y_scale_, points.y[i])) continue;
            empty_ = false;
            low = std::min(low, points.y[i]);
            high = std::max(high, points.y[i]);
        }
    }
    if (!(low <= high)) low = y_scale_ == ScaleKind::logarithmic ? 1 : 0, high = low + 1;
    double bottom = figures::scaled(y_scale_, low), top = figures::scaled(y_scale_, high);
    if (!std::isfinite(bottom)) bottom = top - 1;
    const double room = std::max((top - bottom) * 0.06, 1e-9 * std::max(1.0, std::abs(top)));
    const bool at_least = least_ && *least_ == low;
    y_ = {at_least ? bottom : bottom - room, top + room};
    if (y_.second - y_.first < 1e-12) y_ = {y_.first - 0.5, y_.second + 0.5};

    const QFontMetrics metrics(small_font());
    const int top_edge = title_.isEmpty() ? 6 : metrics.height() + 6;
    const int bottom_edge = metrics.height() + 5 + (x_label_.isEmpty() ? 0 : metrics.height());
    const int tall = std::max(10, height() - top_edge - bottom_edge);
    y_ticks_.clear();
    const double y_low = unscaled(y_scale_, y_.first, 1), y_high = unscaled(y_scale_, y_.second, 1);
    if (!empty_)
        y_ticks_ = ticks_of(y_scale_, y_low, y_high, std::clamp(tall / 34, 2, 8),
                            std::max(2, tall / (metrics.height() - 2)), y_words_);
    int widest = 0;
    for (const auto& [value, text] : y_ticks_) widest = std::max(widest, metrics.horizontalAdvance(text));
    const int left = widest + 9 + (y_label_.isEmpty() ? 0 : metrics.height() + 2);
    int right = 10;
    if (end_names_)
        for (const Line& line : lines_)
            if (line.look == Look::line) right = std::max(right, metrics.horizontalAdvance(line.name) + 12);
    area_ = QRect(left, top_edge, std::max(10, width() - left - std::min(right, width() / 3)), tall);
    x_ticks_.clear();
    if (!empty_) fit_x_ticks();
}

void CurvePlot::fit_x_ticks() {
    const Range x = shown_x();
    const QFontMetrics metrics(small_font());
    double until = -1e9;
    const int wanted = std::clamp(area_.width() / 64, 2, 10), most = std::max(2, area_.width() / 24);
    for (auto& [tick, text] : ticks_of(x_scale_, x.first, x.second, wanted, most, x_words_)) {
        const double middle = x_to_pixel(tick), half = metrics.horizontalAdvance(text) / 2.0;
        if (middle - half < until) continue;
        until = middle + half + 8;
        x_ticks_.emplace_back(tick, std::move(text));
    }
}

QRect CurvePlot::plot_area() const {
    return area_;
}

double CurvePlot::x_to_pixel(double x) const {
    const double place = (figures::scaled(x_scale_, x) - x_.first) / (x_.second - x_.first);
    return area_.left() + place * area_.width();
}

double CurvePlot::pixel_to_x(double pixel) const {
    const double share = (pixel - area_.left()) / std::max(1, area_.width());
    return unscaled(x_scale_, x_.first + share * (x_.second - x_.first), 1);
}

double CurvePlot::y_to_pixel(double y) const {
    const double place = (figures::scaled(y_scale_, y) - y_.first) / (y_.second - y_.first);
    return area_.bottom() + 1 - place * area_.height();
}

std::optional<std::size_t> CurvePlot::nearest(const Points& points, double x) {
    if (points.x.empty() || x < points.x.front() || x > points.x.back()) return std::nullopt;
    auto place = std::lower_bound(points.x.begin(), points.x.end(), x);
    if (place == points.x.end() || (place != points.x.begin() && x - *(place - 1) < *place - x)) --place;
    return static_cast<std::size_t>(place - points.x.begin());
}

QStringList CurvePlot::readings() const {
    QStringList texts;
    if (!cursor_) return texts;
    for (const Line& line : lines_) {
        if (line.name.isEmpty() || !line.points) continue;
        const auto place = nearest(*line.points, *cursor_);
        if (!place || !std::isfinite(line.points->y[*place])) continue;
        const double y = line.points->y[*place];
        texts << tr("%1  %2").arg(line.name, y_words_ ? y_words_(y) : number_label(y));
    }
    return texts;
}

int CurvePlot::line_at(const QPointF& place) const {
    int id = -1;
    double least = kNear;
    const double x = pixel_to_x(place.x());
    for (const Line& line : lines_) {
        if (!line.points || line.id < 0 || line.look == Look::faint) continue;
        const auto at = nearest(*line.points, x);
        if (!at || !drawable(y_scale_, line.points->y[*at])) continue;
        const double away = std::abs(y_to_pixel(line.points->y[*at]) - place.y());
        if (away >= least) continue;
        least = away;
        id = line.id;
    }
    return id;
}

void CurvePlot::user_range(Range range) {
    const Range all = all_x();
    const auto scaled = [this](double x) { return figures::scaled(x_scale_, x); };
    const auto plain = [this](double place) { return unscaled(x_scale_, place, 1); };
    const double low = scaled(all.first), whole = scaled(all.second) - low;
    const double size = std::max(scaled(range.second) - scaled(range.first), whole * kLeastShare);
    if (size >= whole * 0.999) {
        set_range(std::nullopt);
    } else {
        const double begin = std::clamp(scaled(range.first), low, low + whole - size);
        set_range(Range{plain(begin), plain(begin + size)});
    }
    Q_EMIT range_changed();
}

void CurvePlot::zoom(double factor, double about) {
    const double centre = figures::scaled(x_scale_, about);
    const auto move = [&](double end) { return unscaled(x_scale_, centre + (end - centre) * factor, 1); };
    user_range({move(x_.first), move(x_.second)});
}

void CurvePlot::step_cursor(int steps) {
    const Line* longest = nullptr;
    for (const Line& line : lines_)
        if (line.points && !line.points->x.empty() && (!longest || line.points->x.size() > longest->points->x.size()))
            longest = &line;
    if (!longest) return;
    const auto& x = longest->points->x;
    const auto now = nearest(*longest->points, cursor_.value_or(x.back())).value_or(x.size() - 1);
    const auto next = std::clamp<std::int64_t>(static_cast<std::int64_t>(now) + steps, 0, std::ssize(x) - 1);
    set_cursor(x[static_cast<std::size_t>(next)]);
    Q_EMIT cursor_moved();
}

void CurvePlot::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    renew();
}

void CurvePlot::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::PaletteChange) renew();
}

void CurvePlot::wheelEvent(QWheelEvent* event) {
    const double steps = event->angleDelta().y() / 120.0;
    if (steps == 0) return event->ignore();
    zoom(std::pow(kZoom, steps), pixel_to_x(event->position().x()));
    event->accept();
}

void CurvePlot::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return event->ignore();
    pressed_ = event->position();
    pressed_range_ = x_;
    dragging_ = false;
}

void CurvePlot::mouseMoveEvent(QMouseEvent* event) {
    if (event->buttons() & Qt::LeftButton) {
        const double moved = event->position().x() - pressed_.x();
        if (!dragging_ && std::abs(moved) < QApplication::startDragDistance()) return;
        dragging_ = true;
        const double shift = moved / std::max(1, area_.width()) * (pressed_range_.second - pressed_range_.first);
        user_range({unscaled(x_scale_, pressed_range_.first - shift, 1),
                    unscaled(x_scale_, pressed_range_.second - shift, 1)});
        return;
    }
    const bool inside = area_.contains(event->position().toPoint());
    setCursor(inside && line_at(event->position()) >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
    set_cursor(inside ? std::optional<double>(pixel_to_x(event->position().x())) : std::nullopt);
    Q_EMIT cursor_moved();
}

void CurvePlot::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton && !dragging_ && area_.contains(event->position().toPoint()))
        Q_EMIT chosen(pixel_to_x(event->position().x()), line_at(event->position()));
    dragging_ = false;
}

void CurvePlot::mouseDoubleClickEvent(QMouseEvent*) {
    user_range(all_x());
}

void CurvePlot::leaveEvent(QEvent* event) {
    QWidget::leaveEvent(event);
    set_cursor(std::nullopt);
    Q_EMIT cursor_moved();
}

void CurvePlot::keyPressEvent(QKeyEvent* event) {
    const double middle = unscaled(x_scale_, (x_.first + x_.second) / 2, 1);
    switch (event->modifiers() & ~(Qt::KeypadModifier | Qt::ShiftModifier) ? 0 : event->key()) {
        case Qt::Key_Left:
            return step_cursor(-1);
        case Qt::Key_Right:
            return step_cursor(1);
        case Qt::Key_Plus:
            return zoom(kZoom, cursor_.value_or(middle));
        case Qt::Key_Minus:
            return zoom(1 / kZoom, cursor_.value_or(middle));
        case Qt::Key_0:
            return user_range(all_x());
        case Qt::Key_Return:
            if (cursor_) Q_EMIT chosen(*cursor_, -1);
            return;
        default:
            QWidget::keyPressEvent(event);
    }
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
// How a CurvePlot looks.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "widgets/plots/chart/few_lines.h"
#include "widgets/plots/ticks.h"
#include "widgets/training/curve_plot.h"

namespace headscope::widgets {
namespace {

constexpr int kManyPoints = 5000;  ///< of a line: no smoothing of its edges beyond
constexpr int kMostReadings = 9;
constexpr double kReadingShare = 0.6;  ///< of the plot's width, that a reading may take
constexpr int kLeastReading = 90;      ///< pixels
constexpr std::size_t kMarkRows = 3;   ///< of texts at marks that are close to each other
constexpr int kDot = 5;                ///< pixels: a dot at the edge is drawn whole

}  // namespace

QFont CurvePlot::small_font() const {
    QFont font = this->font();
    font.setPointSizeF(std::max(7.0, font.pointSizeF() * 0.86));
    return font;
}

void CurvePlot::paintEvent(QPaintEvent*) {
    const QSize pixels = size() * devicePixelRatioF();
    if (outdated_ || picture_.size() != pixels) {
        fit();
        picture_ = QPixmap(pixels);
        picture_.setDevicePixelRatio(devicePixelRatioF());
        picture_.fill(theme_.background);
        QPainter painter(&picture_);
        painter.setFont(small_font());
        draw_frame(painter);
        draw_marks(painter);
        if (end_names_) draw_end_names(painter);
        const int edge = range_ ? 1 : kDot;
        painter.setClipRect(area_.adjusted(-edge, -edge, edge, edge));
        draw_lines(painter);
        outdated_ = false;
    }
    QPainter painter(this);
    painter.drawPixmap(0, 0, picture_);
    if (hasFocus()) {
        painter.setPen(QPen(theme_.grid, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
    painter.setFont(small_font());
    if (cursor_) draw_cursor(painter);
}

void CurvePlot::draw_frame(QPainter& painter) const {
    const QFontMetrics metrics(painter.font());
    if (!title_.isEmpty()) {
        QFont bold = painter.font();
        bold.setBold(true);
        painter.save();
        painter.setFont(bold);
        painter.setPen(theme_.text);
        // Above the area; over the axis' labels too where it is longer.
        const bool fits = QFontMetrics(bold).horizontalAdvance(title_) <= area_.width() + 4;
        const int left =
            fits ? area_.left() - 2 : std::max(2, area_.right() + 3 - QFontMetrics(bold).horizontalAdvance(title_));
        const QRect room(left, 1, area_.right() + 3 - left, metrics.height() + 2);
        painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                         QFontMetrics(bold).elidedText(title_, Qt::ElideRight, room.width()));
        painter.restore();
    }
    for (const auto& [value, text] : y_ticks_) {
        const double y = std::round(y_to_pixel(value)) + 0.5;
        painter.setPen(QPen(theme_.grid, 1));
        painter.drawLine(QPointF(area_.left(), y), QPointF(area_.right() + 1, y));
        painter.setPen(theme_.muted);
        painter.drawText(QRectF(0, y - metrics.height() / 2.0, area_.left() - 6, metrics.height()),
                         Qt::AlignRight | Qt::AlignVCenter, text);
    }
    painter.setPen(QPen(theme_.line, 1));
    painter.drawLine(QPointF(area_.left(), area_.bottom() + 1.5), QPointF(area_.right() + 1, area_.bottom() + 1.5));
    if (empty_) {
        painter.setPen(theme_.muted);
        painter.drawText(area_, Qt::AlignCenter, tr("nothing yet"));
    }
    for (const auto& [value, text] : x_ticks_) {
        const double x = std::round(x_to_pixel(value)) + 0.5;
        painter.setPen(QPen(theme_.line, 1));
        painter.drawLine(QPointF(x, area_.bottom() + 1), QPointF(x, area_.bottom() + 4));
        painter.setPen(theme_.muted);
        const double half = metrics.horizontalAdvance(text) / 2.0;
        const double left = std::clamp(x - half, 0.0, std::max(0.0, width() - 2 * half));
        painter.drawText(QPointF(left, area_.bottom() + 5 + metrics.ascent()), text);
    }
    painter.setPen(theme_.muted);
    if (!x_label_.isEmpty())
        painter.drawText(QRect(area_.left(), area_.bottom() + 4 + metrics.height(), area_.width(), metrics.height()),
                         Qt::AlignHCenter | Qt::AlignVCenter, x_label_);
    if (!y_label_.isEmpty()) {
        painter.save();
        painter.translate(metrics.height() / 2.0 + 1, area_.center().y());
        painter.rotate(-90);
        painter.drawText(
            QRectF(-area_.height() / 2.0 - 30, -metrics.height() / 2.0, area_.height() + 60.0, metrics.height()),
            Qt::AlignCenter, y_label_);
        painter.restore();
    }
}

void CurvePlot::draw_marks(QPainter& painter) const {
    const QFontMetrics metrics(painter.font());
    std::array<double, kMarkRows> until;
    until.fill(area_.left());
    for (const Mark& mark : marks_) {
        const double x = std::round(x_to_pixel(mark.x)) + 0.5;
        if (x < area_.left() - 1 || x > area_.right() + 2) continue;
        painter.setPen(QPen(mark.colour, mark.strong ? 2 : 1, mark.strong ? Qt::SolidLine : Qt::DotLine));
        painter.drawLine(QPointF(x, area_.top()), QPointF(x, area_.bottom()));
        const double wide = metrics.horizontalAdvance(mark.text);
        // To the right of the line; at the right edge, where a run that goes on has its newest, to the left.
        const double begin = x + 3 + wide <= area_.right() ? x + 3 : x - 3 - wide;
        const auto row = std::find_if(until.begin(), until.end(), [&](double end) { return begin >= end; });
        if (mark.text.isEmpty() || row == until.end()) continue;
        painter.drawText(QPointF(begin, area_.top() + metrics.ascent() +
                                            static_cast<double>(row - until.begin()) * metrics.height()),
                         mark.text);
        *row = begin + wide + 6;
    }
}

bool CurvePlot::can_be_drawn(double y) const {
    return std::isfinite(y) && (y_scale_ != figures::ScaleKind::logarithmic || y > 0);
}

/// Which points of a line draw all of it: of each half of a pixel the first, the lowest, the highest and the last, and
/// those that leave a gap. A night's run has millions, and is drawn four times a second.
std::vector<std::size_t> CurvePlot::few_points(const Points& points, std::ptrdiff_t begin, std::ptrdiff_t end) const {
    std::vector<std::size_t> few;
    CurveColumn column;
    const auto keep = [&](std::size_t i) { few.push_back(i); };
    double place = std::nan("");
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const double y = points.y[i];
        if (!can_be_drawn(y)) {
            column.end(keep);
            if (few.empty() || can_be_drawn(points.y[few.back()])) few.push_back(i);
            continue;
        }
        const double here = std::floor(2 * x_to_pixel(points.x[i]));
        if (here != place) column.end(keep);
        place = here;
        column.take(i, y);
    }
    column.end(keep);
    return few;
}

void CurvePlot::draw_lines(QPainter& painter) const {
    const auto shown = shown_x();
    for (const Line& line : lines_) {
        if (!line.points || line.points->x.empty()) continue;
        const auto& points = *line.points;
        // One point beyond each edge, so that lines leave the area where they should.
        auto begin = std::lower_bound(points.x.begin(), points.x.end(), shown.first) - points.x.begin();
        auto end = std::upper_bound(points.x.begin(), points.x.end(), shown.second) - points.x.begin();
        begin = std::max<std::ptrdiff_t>(0, begin - 1);
        end = std::min<std::ptrdiff_t>(std::ssize(points.x), end + 1);
        QColor colour = line.colour;
        if (line.look == Look::faint) colour.setAlphaF(theme_.dark ? 0.34F : 0.28F);
        const bool stressed = stressed_ >= 0 && line.id == stressed_;
        const double width = line.look == Look::faint ? 1 : stressed ? 3.2 : 1.9;
        const bool dotted = line.look == Look::dots;
        std::vector<std::size_t> shown_points;
        if (dotted) {
            shown_points.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, end - begin)));
            std::iota(shown_points.begin(), shown_points.end(), static_cast<std::size_t>(begin));
        } else {
            shown_points = few_points(points, begin, end);
        }
        painter.setRenderHint(QPainter::Antialiasing, std::ssize(shown_points) < kManyPoints);
        const QPen pen(colour, width, Qt::SolidLine, Qt::RoundCap);
        painter.setPen(dotted ? QPen(colour, 1, Qt::DashLine) : pen);
        QPolygonF stretch, dots;
        QList<QLineF> lines;
        const auto flush = [&] {
            if (stretch.size() == 1) painter.drawPoint(stretch.front());
            if (dotted) painter.drawPolyline(stretch);
            for (qsizetype i = 1; i < stretch.size(); ++i) lines << QLineF(stretch[i - 1], stretch[i]);
            dots << stretch;
            stretch.clear();
        };
        for (const std::size_t i : shown_points) {
            const double y = points.y[i];
            const double x = x_to_pixel(points.x[i]);
            if (can_be_drawn(y) && std::isfinite(x))
                stretch << QPointF(x, y_to_pixel(y));
            else
                flush();
        }
        flush();
        if (!dotted) {
            widgets::draw_lines(&painter, pen, lines);
            continue;
        }
        painter.setPen(QPen(theme_.background, 1));
        painter.setBrush(colour);
        for (const QPointF& dot : dots) painter.drawEllipse(dot, 3.2, 3.2);
        painter.setBrush(Qt::NoBrush);
    }
}

void CurvePlot::draw_end_names(QPainter& painter) const {
    struct Name {
        double y;
        const Line* line;
    };
    std::vector<Name> names;
    const double end = shown_x().second;
    for (const Line& line : lines_) {
        if (!line.points || line.look != Look::line || line.name.isEmpty()) continue;
        const auto place = nearest(*line.points, std::min(end, line.points->x.empty() ? end : line.points->x.back()));
        if (!place || !std::isfinite(line.points->y[*place])) continue;
        names.push_back({std::clamp(y_to_pixel(line.points->y[*place]), static_cast<double>(area_.top()),
                                    static_cast<double>(area_.bottom())),
                         &line});
    }
    std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
    // Names that would meet are pushed down; those that would leave the plot are pushed up again.
    const double height = painter.fontMetrics().height() * 0.92;
    for (std::size_t i = 1; i < names.size(); ++i) names[i].y = std::max(names[i].y, names[i - 1].y + height);
    double lowest = area_.bottom();
    for (std::size_t i = names.size(); i-- > 0; lowest = names[i].y - height) names[i].y = std::min(names[i].y, lowest);
    if (!names.empty() && names.front().y < area_.top() - height) return;  // too many for this height
    for (const Name& name : names) {
        painter.setPen(name.line->colour);
        painter.drawText(QPointF(area_.right() + 6, name.y + painter.fontMetrics().ascent() / 2.0 - 1),
                         name.line->name);
    }
}

void CurvePlot::draw_cursor(QPainter& painter) const {
    const double x = std::round(x_to_pixel(*cursor_)) + 0.5;
    if (x < area_.left() - 1 || x > area_.right() + 2) return;
    painter.setPen(QPen(theme_.muted, 1));
    painter.drawLine(QPointF(x, area_.top()), QPointF(x, area_.bottom() + 1));
    struct Reading {
        QString text;
        QColor colour;
    };
    const QFontMetrics metrics(painter.font());
    // A long name loses its middle: the value is what is read.
    const int most = std::max(kLeastReading, static_cast<int>(area_.width() * kReadingShare));
    const auto reading_of = [&](const QString& name, const QString& value) {
        const int room = most - metrics.horizontalAdvance(value);
        return metrics.elidedText(name, Qt::ElideMiddle, std::max(room, kLeastReading / 3)) + QStringLiteral("  ") +
               value;
    };
    std::vector<Reading> readings;
    painter.setRenderHint(QPainter::Antialiasing);
    for (const Line& line : lines_) {
        if (!line.points || line.name.isEmpty()) continue;
        const auto place = nearest(*line.points, *cursor_);
        if (!place || !std::isfinite(line.points->y[*place])) continue;
        const double y = line.points->y[*place];
        painter.setPen(QPen(theme_.background, 1.5));
        painter.setBrush(line.colour);
        const QPointF dot(x_to_pixel(line.points->x[*place]), y_to_pixel(y));
        // A value may have no place on a logarithmic axis; it is read all the same.
        if (std::isfinite(dot.x()) && std::isfinite(dot.y())) painter.drawEllipse(dot, 3.6, 3.6);
        readings.push_back({reading_of(line.name, y_words_ ? y_words_(y) : number_label(y)), line.colour});
    }
    if (readings.empty()) return;
    const std::size_t more = readings.size() > kMostReadings ? readings.size() - kMostReadings : 0;
    if (more > 0) {
        readings.resize(kMostReadings);
        readings.push_back({tr("and %1 more").arg(more), theme_.muted});
    }
    readings.insert(readings.begin(),
                    {x_words_ ? x_words_(*cursor_) : number_label(std::round(*cursor_)), theme_.muted});
    int wide = 0;
    for (const Reading& reading : readings) wide = std::max(wide, metrics.horizontalAdvance(reading.text));
    const int line_height = metrics.height();
    QRectF box(0, 0, wide + 26, static_cast<double>(readings.size()) * line_height + 8);
    const bool right = x + 10 + box.width() < area_.right() || x - 10 - box.width() < area_.left();
    const double left = right ? x + 10 : x - 10 - box.width();
    box.moveTopLeft({std::clamp(left, 0.0, std::max(0.0, width() - box.width() - 1.0)), area_.top() + 4.0});
    QColor ground = theme_.background;
    ground.setAlphaF(0.92F);
    painter.setPen(QPen(theme_.grid, 1));
    painter.setBrush(ground);
    painter.drawRoundedRect(box, 4, 4);
    double y = box.top() + 4;
    for (std::size_t i = 0; i < readings.size(); ++i, y += line_height) {
        const bool plain = i == 0 || readings[i].colour == theme_.muted;
        if (!plain) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(readings[i].colour);
            painter.drawEllipse(QPointF(box.left() + 9, y + line_height / 2.0), 3.4, 3.4);
        }
        painter.setPen(plain ? theme_.muted : theme_.text);
        painter.drawText(QPointF(box.left() + (plain ? 6 : 17), y + metrics.ascent()), readings[i].text);
    }
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/figure_spots.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "widgets/fonts.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

using namespace figures;

constexpr double kRidgeBelow = 0.25;  // rows: a pointer just under a baseline still means its ridge

QString dot() {
    return QStringLiteral(" · ");
}

double across(const PlacedPanel& placed, double x) {
    const double share = (x - placed.plot.left()) / placed.plot.width();
    return placed.x.low + share * (placed.x.high - placed.x.low);
}

double up(const PlacedPanel& placed, double y) {
    const double share = (placed.plot.bottom() - y) / placed.plot.height();
    return placed.y.low + share * (placed.y.high - placed.y.low);
}

QPointF place_of(const PlacedPanel& placed, double x, double y) {
    const auto share = [](const PlacedAxis& axis, double at) { return (at - axis.low) / (axis.high - axis.low); };
    const Panel& panel = *placed.panel;
    return {
        placed.plot.left() + share(placed.x, scaled(panel.x.scale, x, panel.x.linear_range)) * placed.plot.width(),
        placed.plot.bottom() - share(placed.y, scaled(panel.y.scale, y, panel.y.linear_range)) * placed.plot.height()};
}

/// Title and value: "layer 3".
QString row_name(const Panel& panel, const std::string& name) {
    const QString label = QString::fromStdString(panel.y.label);
    return label.isEmpty() ? printable(name) : label + QLatin1Char(' ') + printable(name);
}

struct Finder {
    const PlacedPanel& placed;
    QPointF place;

    FigureSpot operator()(const Ridges& ridges) const {
        FigureSpot spot;
        if (ridges.ridges.empty()) return spot;
        const double at =
            ridges.mirrored ? std::round(up(placed, place.y())) : std::ceil(up(placed, place.y()) - kRidgeBelow);
        spot.row = static_cast<int>(std::clamp(at, 0.0, static_cast<double>(ridges.ridges.size() - 1)));
        spot.text = row_text(*placed.panel, spot.row);
        if (placed.plot.left() <= place.x() && place.x() <= placed.plot.right()) {
            const double value =
                unscaled(placed.panel->x.scale, across(placed, place.x()), placed.panel->x.linear_range);
            spot.text = printable(placed.panel->x.label) + QLatin1Char(' ') + number_label(value) + dot() + spot.text;
        }
        return spot;
    }

    FigureSpot operator()(const Curves& curves) const {
        const bool rows =
            std::any_of(curves.curves.begin(), curves.curves.end(), [](const Curve& c) { return c.error_of_x; });
        return rows ? dot_in_row(curves) : point_of_curve(curves);
    }

    /// Values across, a row for each name: the dot that is nearest, whichever way.
    FigureSpot dot_in_row(const Curves& curves) const {
        FigureSpot spot;
        double best = units(8);
        for (std::size_t c = 0; c < curves.curves.size(); ++c) {
            const Curve& curve = curves.curves[c];
            if (!curve.error_of_x) continue;
            for (std::size_t i = 0; i < curve.x.size(); ++i) {
                const QPointF away = place_of(placed, curve.x[i], curve.y[i]) - place;
                const double distance = std::hypot(away.x(), away.y());
                if (!(distance < best)) continue;
                best = distance;
                spot.row = static_cast<int>(c);
                spot.text = printable(curve.name) + dot() + printable(placed.panel->x.label) + QLatin1Char(' ') +
                            number_label(curve.x[i]) + deviation(curve, i);
            }
        }
        return spot;
    }

    FigureSpot point_of_curve(const Curves& curves) const {
        FigureSpot spot;
        double best = units(6);  // no farther than this
        std::size_t at = 0;
        const double wanted = unscaled(placed.panel->x.scale, across(placed, place.x()), placed.panel->x.linear_range);
        for (std::size_t c = 0; c < curves.curves.size(); ++c) {
            const Curve& curve = curves.curves[c];
            if (curve.x.empty()) continue;
            auto after =
                static_cast<std::size_t>(std::lower_bound(curve.x.begin(), curve.x.end(), wanted) - curve.x.begin());
            after = std::min(after, curve.x.size() - 1);
            if (after > 0 && wanted - curve.x[after - 1] < curve.x[after] - wanted) --after;
            const QPointF there = place_of(placed, curve.x[after], curve.y[after]);
            // Beside a curve's ends there is none of it.
            const bool beside = wanted < curve.x.front() || wanted > curve.x.back();
            if (beside && std::abs(there.x() - place.x()) > units(6)) continue;
            const double distance = std::abs(there.y() - place.y());
            // Dots on a line know more than the line.
            const bool same = spot.row >= 0 && curve.points && !curve.error.empty() && distance <= best;
            if (!same && !(distance < best)) continue;
            best = distance;
            at = after;
            spot.row = static_cast<int>(c);
        }
        if (spot.row < 0) return spot;
        spot.column = static_cast<int>(at);
        const Curve& curve = curves.curves[static_cast<std::size_t>(spot.row)];
        const QString title = printable(placed.panel->title);
        spot.text = (title.isEmpty() ? title : title + dot()) + printable(curve.name) + dot() +
                    printable(placed.panel->x.label) + QLatin1Char(' ') + number_label(curve.x[at]) +
                    QStringLiteral(": ") + number_label(curve.y[at]) + deviation(curve, at);
        return spot;
    }

    /// " ± 0.1" where there is one.
    static QString deviation(const Curve& curve, std::size_t at) {
        if (at >= curve.error.size() || !std::isfinite(curve.error[at])) return {};
        return QStringLiteral(" ± ") + number_label(curve.error[at]);
    }

    FigureSpot operator()(const Radar& radar) const {
        FigureSpot spot;
        spot.text = printable(placed.panel->title);
        if (!radar.nothing.empty()) {
            spot.text += dot() + printable(radar.nothing);
            return spot;
        }
        for (const auto& series : radar.series) {
            QStringList values;
            for (std::size_t k = 0; k < radar.spokes.size() && k < series.values.size(); ++k) {
                const auto number = [](double value) {
                    return std::isnan(value) ? QStringLiteral("–") : QString::number(value, 'f', 2);
                };
                values << printable(radar.spokes[k]) + QLatin1Char(' ') + number(series.values[k]);
                if (k < series.deviations.size() && !std::isnan(series.deviations[k]))
                    values.back() += QStringLiteral(" ± ") + number(series.deviations[k]);
            }
            if (!values.isEmpty()) spot.text += dot() + values.join(QStringLiteral("  "));
        }
        return spot;
    }

    FigureSpot operator()(const HeatMap& map) const {
        FigureSpot spot;
        if (map.rows <= 0 || map.columns <= 0) return spot;
        const auto cell = [](double at, std::int64_t count) {
            return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(at)), 0, count - 1);
        };
        const std::int64_t column = cell(across(placed, place.x()), map.columns);
        const std::int64_t row = cell(up(placed, place.y()), map.rows);
        spot.row = static_cast<int>(row);
        spot.column = static_cast<int>(column);
        const double value = map.values[static_cast<std::size_t>(row * map.columns + column)];
        const Panel& panel = *placed.panel;
        spot.text = QStringLiteral("%1, %2: %3")
                        .arg(cell_name(panel.y, row, QObject::tr("row")),
                             cell_name(panel.x, column, QObject::tr("column")), number_label(value));
        if (!panel.title.empty()) spot.text = printable(panel.title) + dot() + spot.text;
        return spot;
    }

    /// "layer 3": the axis and its tick there; without ticks the cell's number.
    static QString cell_name(const Axis& axis, std::int64_t cell, const QString& otherwise) {
        for (const Tick& tick : axis.ticks) {
            if (tick.position == static_cast<double>(cell))
                return printable(axis.label) + QLatin1Char(' ') + printable(tick.label);
        }
        return otherwise + QLatin1Char(' ') + QString::number(cell);
    }

    template <class Other>
    FigureSpot operator()(const Other&) const {
        return {};
    }
};

/// Area in which a pointer means the panel: with its title, and beside ridges with their names and counts.
QRectF reach(const PlacedPanel& placed) {
    const bool ridges = std::holds_alternative<Ridges>(placed.panel->content);
    return placed.plot.adjusted(ridges ? -units(14) : 0, -units(5), ridges ? units(40) : 0, units(2));
}

}  // namespace

double unscaled(ScaleKind scale, double place, double linear_range) {
    switch (scale) {
        case ScaleKind::square_root:
            return std::copysign(place * place, place);
        case ScaleKind::logarithmic:
            return std::pow(10.0, place);
        case ScaleKind::symmetric_log:
            if (std::abs(place) <= 1) return place * linear_range;
            return std::copysign(linear_range * std::exp(std::abs(place) - 1), place);
        case ScaleKind::linear:
            break;
    }
    return place;
}

namespace {

/// The subject of a cell's tick.
Subject cell_subject(const Axis& axis, int cell) {
    const auto tick = std::find_if(axis.ticks.begin(), axis.ticks.end(),
                                   [&](const Tick& one) { return one.position == static_cast<double>(cell); });
    return tick == axis.ticks.end() ? Subject{} : tick->subject;
}

/// The subject of a row and, where columns show different things, of one of them. Row -1: a panel without rows.
Subject subject_at(const Panel& panel, int row, int column) {
    if (row < 0) return std::holds_alternative<Radar>(panel.content) ? panel.subject : Subject{};
    const auto at = static_cast<std::size_t>(row);
    if (const auto* ridges = std::get_if<Ridges>(&panel.content))
        return ridges->ridges[at].subject.within(panel.subject);
    if (const auto* curves = std::get_if<Curves>(&panel.content)) {
        const Curve& curve = curves->curves[at];
        const std::size_t cell =
            column < 0 ? curve.cells.size() : static_cast<std::size_t>(column) / curve.points_per_cell;
        const Subject own = cell < curve.cells.size() ? curve.cells[cell] : Subject{};
        return own.within(curve.subject).within(panel.subject);
    }
    return cell_subject(panel.y, row).within(cell_subject(panel.x, column)).within(panel.subject);
}

}  // namespace

std::vector<FigureMark> marks_of(const FigureData& figure, std::int64_t analysis, std::int64_t site,
                                 std::int64_t head) {
    std::vector<FigureMark> marks;
    for (int p = 0; p < std::ssize(figure.panels); ++p) {
        const Panel& panel = figure.panels[static_cast<std::size_t>(p)];
        const auto add = [&](const Subject& own, const Subject& whole, int row, int column) {
            if (!own.empty() && whole.shows(analysis, site, head)) marks.push_back({p, row, column});
        };
        if (const auto* ridges = std::get_if<Ridges>(&panel.content)) {
            for (int r = 0; r < std::ssize(ridges->ridges); ++r)
                add(ridges->ridges[static_cast<std::size_t>(r)].subject, subject_at(panel, r, -1), r, -1);
        } else if (const auto* curves = std::get_if<Curves>(&panel.content)) {
            for (int c = 0; c < std::ssize(curves->curves); ++c)
                add(curves->curves[static_cast<std::size_t>(c)].subject, subject_at(panel, c, -1), c, -1);
        } else if (std::holds_alternative<HeatMap>(panel.content)) {
            for (const Tick& row : panel.y.ticks) {
                for (const Tick& column : panel.x.ticks) {
                    if (row.subject.empty()) continue;
                    const Subject cell = row.subject.within(column.subject).within(panel.subject);
                    add(column.subject, cell, static_cast<int>(row.position), static_cast<int>(column.position));
                }
            }
        } else if (std::holds_alternative<Radar>(panel.content)) {
            add(panel.subject, panel.subject, -1, -1);
        }
    }
    return marks;
}

QString row_text(const Panel& panel, int row) {
    const auto index = static_cast<std::size_t>(row);
    if (const auto* ridges = std::get_if<Ridges>(&panel.content); ridges && row >= 0 && index < ridges->ridges.size()) {
        const Ridge& ridge = ridges->ridges[index];
        QString text = row_name(panel, ridge.name);
        if (ridge.minimum <= ridge.maximum)
            text += QObject::tr(": %1 to %2").arg(number_label(ridge.minimum), number_label(ridge.maximum));
        if (std::isfinite(ridge.mean)) text += QObject::tr(", mean %1").arg(number_label(ridge.mean));
        if (std::isfinite(ridge.deviation)) text += QStringLiteral(" ± ") + number_label(ridge.deviation);
        for (std::size_t k = 0; k < ridge.notes.size() && k < ridges->note_titles.size(); ++k)
            text += dot() + printable(ridges->note_titles[k]) + QStringLiteral(": ") + printable(ridge.notes[k]);
        return text;
    }
    if (const auto* curves = std::get_if<Curves>(&panel.content); curves && row >= 0 && index < curves->curves.size())
        return printable(curves->curves[index].name);
    return {};
}

FigureSpot spot_at(const FigureLayout& layout, QPointF place) {
    for (const bool exact : {true, false}) {
        for (std::size_t p = 0; p < layout.panels.size(); ++p) {
            const PlacedPanel& placed = layout.panels[p];
            if (!(exact ? placed.plot : reach(placed)).contains(place)) continue;
            FigureSpot spot = std::visit(Finder{placed, place}, placed.panel->content);
            spot.panel = static_cast<int>(p);
            spot.subject = subject_at(*placed.panel, spot.row, spot.column);
            return spot;
        }
    }
    return {};
}

QRectF panel_area(const FigureLayout& layout, int panel) {
    if (panel < 0 || panel >= std::ssize(layout.panels)) return {};
    const PlacedPanel& placed = layout.panels[static_cast<std::size_t>(panel)];
    const double title = placed.panel->title.empty() ? 0 : text_height(figure_font(layout.text_points));
    return placed.plot.adjusted(-5, -5 - title, 5, 5);
}

QRectF cell_area(const FigureLayout& layout, int panel, int row, int column) {
    if (panel < 0 || panel >= std::ssize(layout.panels) || row < 0 || column < 0) return {};
    const PlacedPanel& placed = layout.panels[static_cast<std::size_t>(panel)];
    const auto* map = std::get_if<HeatMap>(&placed.panel->content);
    if (!map || row >= map->rows || column >= map->columns) return {};
    const auto x = [&](int at) {
        return placed.plot.left() + (at - placed.x.low) / (placed.x.high - placed.x.low) * placed.plot.width();
    };
    const auto y = [&](int at) {
        return placed.plot.bottom() - (at - placed.y.low) / (placed.y.high - placed.y.low) * placed.plot.height();
    };
    return QRectF(QPointF(x(column), y(row)), QPointF(x(column + 1), y(row + 1))).normalized();
}

QPainterPath row_path(const FigureLayout& layout, int panel, int row) {
    QPainterPath path;
    if (panel < 0 || panel >= std::ssize(layout.panels) || row < 0) return path;
    const PlacedPanel& placed = layout.panels[static_cast<std::size_t>(panel)];
    const auto index = static_cast<std::size_t>(row);
    if (const auto* ridges = std::get_if<Ridges>(&placed.panel->content); ridges && index < ridges->ridges.size()) {
        const auto at = [&](double y) {
            const double share = (y - placed.y.low) / (placed.y.high - placed.y.low);
            return placed.plot.bottom() - share * placed.plot.height();
        };
        const double below = ridges->mirrored ? 0.5 : kRidgeBelow;
        const double top = at(row - 1 + below), bottom = std::min(at(row + below), placed.plot.bottom());
        path.addRect(QRectF(QPointF(placed.plot.left(), top), QPointF(placed.plot.right(), bottom)));
    } else if (const auto* curves = std::get_if<Curves>(&placed.panel->content);
               curves && index < curves->curves.size()) {
        const Curve& curve = curves->curves[index];
        bool pen_down = false;
        for (std::size_t i = 0; i < curve.x.size(); ++i) {
            const QPointF to = place_of(placed, curve.x[i], curve.y[i]);
            const bool there = std::isfinite(to.x()) && std::isfinite(to.y());
            if (there && pen_down)
                path.lineTo(to);
            else if (there)
                path.moveTo(to);
            pen_down = there;
        }
    }
    return path;
}

QList<QLineF> row_lines(const FigureLayout& layout, int panel, int row) {
    const QPainterPath path = row_path(layout, panel, row);
    QList<QLineF> lines;
    for (int i = 1; i < path.elementCount(); ++i)
        if (path.elementAt(i).isLineTo()) lines << QLineF(path.elementAt(i - 1), path.elementAt(i));
    return lines;
}

}  // namespace headscope::widgets

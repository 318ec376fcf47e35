// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/axis_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "widgets/fonts.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

using namespace figures;

constexpr double kMosaicGap = 0.07;  // as cell_image.cpp draws it

using Limits = AxisLimits;

struct DataRange {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    void take(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

Limits data_limits(const Axis& axis, DataRange data, double padding) {
    Limits limits;
    if (axis.range) {
        data.low = axis.range->first;
        data.high = axis.range->second;
        padding = 0;
    }
    if (!(data.low <= data.high) || !std::isfinite(data.high - data.low)) data = {0, 1};
    limits.low = scaled(axis.scale, data.low, axis.linear_range);
    limits.high = scaled(axis.scale, data.high, axis.linear_range);
    if (!std::isfinite(limits.low)) limits.low = limits.high - 4;
    const double extent = limits.high - limits.low;
    const double extra = extent > 0 ? extent * padding : 0.5;
    limits.low -= extra;
    limits.high += extra;
    return limits;
}

struct LimitsOf {
    const Panel& panel;
    bool horizontal;

    const Axis& axis() const { return horizontal ? panel.x : panel.y; }
    Limits cells(std::int64_t count, double gap) const {
        const double end = std::max(1.0, static_cast<double>(count)) - gap;
        return horizontal ? Limits{0, end, true, count} : Limits{end, 0, true, count};
    }
    Limits operator()(const HeatMap& map) const { return cells(horizontal ? map.columns : map.rows, 0); }
    Limits operator()(const Mosaic& mosaic) const {
        return cells(horizontal ? mosaic.columns : mosaic.rows, kMosaicGap);
    }
    Limits operator()(const Curves& curves) const {
        DataRange range;
        for (const auto& curve : curves.curves) {
            for (const double value : horizontal ? curve.x : curve.y) range.take(value);
        }
        return data_limits(axis(), range, horizontal ? 0.0 : 0.04);
    }
    Limits operator()(const Ridges& ridges) const {
        const auto rows = static_cast<double>(ridges.ridges.size());
        if (!horizontal && ridges.mirrored) return {rows - 0.45, -0.55, false, 0};
        if (!horizontal) return {rows - 0.6, -ridges.overlap - 0.12, false, 0};
        DataRange range;
        for (const auto& ridge : ridges.ridges) {
            range.take(ridge.minimum);
            range.take(ridge.maximum);
        }
        return data_limits(axis(), range, 0.02);
    }
    Limits operator()(const Radar&) const { return {}; }
    Limits operator()(const TextBlock&) const { return {}; }
    Limits operator()(const Links&) const { return {}; }
};

double size_along(const QFont& font, const QString& label, bool horizontal) {
    return horizontal ? text_width(font, label) : text_height(font);
}

void thinned_ticks(PlacedAxis& placed, const std::vector<std::pair<double, QString>>& all, const QFont& font,
                   bool horizontal, double length, bool regular) {
    const double scale = length / std::abs(placed.high - placed.low);
    const double gap = horizontal ? text_width(font, "0") : 0;
    if (regular) {
        double widest = 0;
        for (const auto& tick : all) widest = std::max(widest, size_along(font, tick.second, horizontal));
        const double apart = all.size() > 1 ? std::abs(all[1].first - all[0].first) * scale : length;
        const auto stride = static_cast<std::size_t>(round_stride((widest * (horizontal ? 1 : 0.92) + gap) / apart));
        for (std::size_t i = 0; i < all.size(); i += stride) placed.ticks.push_back(all[i]);
        return;
    }
    double free_from = -std::numeric_limits<double>::infinity();
    for (const auto& tick : all) {
        const double size = size_along(font, tick.second, horizontal);
        const double at = (tick.first - std::min(placed.low, placed.high)) * scale;
        if (at - size / 2 < free_from) continue;
        placed.ticks.push_back(tick);
        free_from = at + size / 2 + gap;
    }
}

void cell_ticks(PlacedAxis& placed, const Axis& axis, std::int64_t count, bool horizontal, double length,
                double tick_points, double centre, bool token_labels) {
    const QFont font = figure_font(tick_points);
    const double cell = length / std::max<double>(1, static_cast<double>(count));
    if (token_labels && !axis.cell_labels.empty() && std::ssize(axis.cell_labels) == count) {
        const double points = std::min(tick_points, std::floor(cell * 0.9 / units_of_points(1) * 4) / 4);
        // Line height is about 1.36 of the size; neighbours may share their leading, not their letters.
        if (points * 1.05 >= kSmallestToken) {
            placed.tokens = true;
            placed.token_points = std::max(points, kSmallestToken);
            for (std::int64_t i = 0; i < count; ++i) {
                placed.ticks.emplace_back(static_cast<double>(i) + centre,
                                          printable(axis.cell_labels[static_cast<std::size_t>(i)]));
            }
            return;
        }
    }
    std::vector<std::pair<double, QString>> all;
    if (!axis.ticks.empty()) {
        for (const auto& tick : axis.ticks) {
            const double at = (tick.position - static_cast<double>(axis.first_cell)) * axis.cells_per_value;
            all.emplace_back(at + centre, printable(tick.label));
        }
        thinned_ticks(placed, all, font, horizontal, length, true);
        return;
    }
    const auto first = static_cast<double>(axis.first_cell);
    const double positions = static_cast<double>(count) / axis.cells_per_value;
    const QString longest = QString::number(static_cast<qint64>(first + positions));
    const double room = std::max(size_along(font, longest, horizontal) * 1.6, length / 9);
    const std::int64_t stride = round_stride(positions * room / length);
    const auto last = static_cast<std::int64_t>(first + positions - 0.5);
    for (std::int64_t p = (axis.first_cell + stride - 1) / stride * stride; p <= last; p += stride) {
        const double inside = axis.cells_per_value >= 1 ? 0.5 * axis.cells_per_value : 0.0;
        placed.ticks.emplace_back((static_cast<double>(p) - first) * axis.cells_per_value + inside, QString::number(p));
    }
}

}  // namespace

bool has_no_axes(const Panel& panel) {
    return std::holds_alternative<Radar>(panel.content) || std::holds_alternative<TextBlock>(panel.content) ||
           std::holds_alternative<Links>(panel.content);
}

double PlacedAxis::place(const Axis& axis, double value) const {
    if (cells) return (value - static_cast<double>(axis.first_cell)) * axis.cells_per_value;
    return scaled(axis.scale, value, axis.linear_range);
}

namespace {

/// Significant digits with which evenly spaced ticks differ.
int digits_apart(const std::vector<double>& ticks) {
    if (ticks.size() < 2) return 0;
    const double largest = std::max(std::abs(ticks.front()), std::abs(ticks.back()));
    return static_cast<int>(std::ceil(std::log10(largest / (ticks[1] - ticks[0])) + 1e-9)) + 1;
}

/// As number_label(), with more digits where neighbours would read the same.
QString tick_label(double value, int digits) {
    constexpr int usual = 4, most = 9;
    if (digits <= usual || digits > most || std::abs(value) < 1e-3 || std::abs(value) >= 9999.5)
        return number_label(value);
    return (value < 0 ? QStringLiteral("−") : QString()) + QString::number(std::abs(value), 'g', digits);
}

}  // namespace

AxisLimits axis_limits(const Panel& panel, bool horizontal) {
    return std::visit(LimitsOf{panel, horizontal}, panel.content);
}

PlacedAxis place_axis(const Panel& panel, const AxisLimits& limits, bool horizontal, double length, double tick_points,
                      double label_share, bool token_labels) {
    const Axis& axis = horizontal ? panel.x : panel.y;
    PlacedAxis placed;
    placed.low = limits.low;
    placed.high = limits.high;
    placed.cells = limits.cells;
    const QFont font = figure_font(tick_points);
    if (limits.cells) {
        double centre = 0.5;
        if (const auto* mosaic = std::get_if<Mosaic>(&panel.content)) {
            if (!mosaic->tile_labels.empty()) return placed;
            const double label = horizontal ? 0 : label_share;
            centre = label + (1 - kMosaicGap - label) / 2;
        }
        cell_ticks(placed, axis, limits.count, horizontal, length, tick_points, centre, token_labels);
        return placed;
    }
    std::vector<std::pair<double, QString>> all;
    const auto lay_out = [&] {
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        placed.ticks.clear();
        thinned_ticks(placed, all, font, horizontal, length, false);
    };
    if (const auto* ridges = std::get_if<Ridges>(&panel.content); ridges != nullptr && !horizontal) {
        for (std::size_t i = 0; i < ridges->ridges.size(); ++i) {
            all.emplace_back(static_cast<double>(i), printable(ridges->ridges[i].name));
        }
        thinned_ticks(placed, all, font, horizontal, length, true);
        return placed;
    }
    if (has_no_axes(panel)) return placed;
    if (!axis.ticks.empty()) {
        for (const auto& tick : axis.ticks) {
            all.emplace_back(scaled(axis.scale, tick.position, axis.linear_range), printable(tick.label));
        }
    } else {
        const double low = std::min(placed.low, placed.high), high = std::max(placed.low, placed.high);
        const auto value_at = [&](double place) {
            switch (axis.scale) {
                case ScaleKind::square_root:
                    return std::copysign(place * place, place);
                case ScaleKind::logarithmic:
                    return std::pow(10.0, place);
                case ScaleKind::symmetric_log:
                    return std::copysign(std::abs(place) > 1 ? std::exp(std::abs(place) - 1) : std::abs(place), place) *
                           axis.linear_range;
                case ScaleKind::linear:
                    break;
            }
            return place;
        };
        const double room = horizontal ? text_width(font, "−1000") * 1.25 : text_height(font) * 1.8;
        const int wanted = std::clamp(static_cast<int>(length / room), 2, 9);
        // A single tick shows no scale: try closer round values if there is room for two.
        for (int closer = 1; closer <= 4 && placed.ticks.size() < 2; closer *= 2) {
            const auto values =
                round_ticks(axis.scale, value_at(low), value_at(high), wanted * closer, axis.linear_range);
            const int digits = axis.scale == ScaleKind::linear ? digits_apart(values) : 0;
            all.clear();
            for (const double value : values)
                all.emplace_back(scaled(axis.scale, value, axis.linear_range), tick_label(value, digits));
            lay_out();
        }
        return placed;
    }
    lay_out();
    return placed;
}

double axis_margin(const PlacedAxis& placed, const Axis& axis, bool horizontal, double tick_points) {
    double margin = 0;
    if (placed.labels && !placed.ticks.empty()) {
        const QFont font = figure_font(placed.tokens ? placed.token_points : tick_points);
        double most = 0;
        for (const auto& tick : placed.ticks) {
            // Turned tokens need their width below the axis.
            const bool along = horizontal != placed.tokens;
            most = std::max(most, horizontal ? (along ? text_height(font) : text_width(font, tick.second))
                                             : text_width(font, tick.second));
        }
        margin += most + kTickPadding + (placed.tokens ? 0 : kTickLength);
    }
    if (placed.labels && !axis.label.empty()) {
        margin += text_height(figure_font(tick_points)) + (horizontal ? 0 : kLabelPadding);
    }
    return margin;
}

std::pair<double, double> overhang(const PlacedAxis& placed, double length, double tick_points) {
    std::pair<double, double> out{0, 0};
    if (!placed.labels || placed.tokens) return out;
    const QFont font = figure_font(tick_points);
    for (const auto& tick : placed.ticks) {
        const double at = (tick.first - placed.low) / (placed.high - placed.low) * length;
        const double half = text_width(font, tick.second) / 2;
        out.first = std::max(out.first, half - at);
        out.second = std::max(out.second, at + half - length);
    }
    return out;
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kRounding = 1e-6;  ///< as the recipe: the sparsity of a softmax is 0 but for this

struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

    void add(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool empty() const { return !(low <= high); }
    double share(double value) const {
        if (!std::isfinite(value) || empty()) return kNoValue;
        return high > low ? (value - low) / (high - low) : 0.5;
    }
};

/// Shares, distances and counts begin at 0; these do not.
bool from_zero(const std::string& name) {
    constexpr std::array<std::string_view, 4> kOwnRange{"entropy", "entropy_row_mean", "concentration", "density"};
    return std::find(kOwnRange.begin(), kOwnRange.end(), name) == kOwnRange.end() && name.rfind("score_m", 0) != 0;
}

figures::ColourScale absolute_scale(Range range, bool zero) {
    figures::ColourScale scale;
    if (range.empty()) return scale;
    if (range.low < -kRounding && range.high > kRounding) {
        scale.map = figures::ColourMap::diverging;
        scale.maximum = std::max(-range.low, range.high);
        scale.minimum = -scale.maximum;
        return scale;
    }
    scale.minimum = zero ? (range.low < -kRounding ? range.low : 0.0) : range.low;
    scale.maximum = range.high;
    if (scale.maximum - scale.minimum < kRounding * std::max(1.0, std::abs(scale.maximum)))
        scale.maximum = scale.minimum + (zero ? 1.0 : std::max(1.0, std::abs(scale.minimum)));
    return scale;
}

}  // namespace

NumberFormat number_format(std::span<const double> values, int digits) {
    double most = 0;
    bool whole = true;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        most = std::max(most, std::abs(value));
        whole = whole && value == std::floor(value);
    }
    if (whole) return {0};
    const int before = most >= 1 ? static_cast<int>(std::floor(std::log10(most))) + 1 : 0;
    const int after = most > 0 && most < 0.1 ? 1 : 0;
    return {std::clamp(digits - before + after, 0, digits + 1)};
}

QString NumberFormat::text(double value) const {
    if (std::isnan(value)) return QStringLiteral("–");
    if (std::isinf(value)) return value < 0 ? QStringLiteral("−∞") : QStringLiteral("∞");
    const double size = std::abs(value);
    // Plain numbers with more digits are hard to read; below one digit they would read as zero.
    if (size >= 1e6 || (size > 0 && size < std::pow(10.0, -decimals) / 2)) return number_label(value);
    const QString text = QString::number(size, 'f', decimals);
    return value < 0 && text.toDouble() != 0 ? QStringLiteral("−") + text : text;
}

HeatCells heat_cells(const workspace::HeadTable& table, std::size_t column, figures::Normalise normalise) {
    HeatCells cells;
    Range all;
    std::vector<Range> layers;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        const double value = table.value(row, column);
        cells.values.push_back(value);
        if (!table.deviation.empty()) cells.deviation.push_back(table.deviation[row * table.columns.size() + column]);
        const auto site = static_cast<std::size_t>(table.rows[row].site);
        if (layers.size() <= site) layers.resize(site + 1);
        layers[site].add(value);
        all.add(value);
    }
    cells.format = number_format(cells.values);
    cells.lowest = all.empty() ? kNoValue : all.low;
    cells.highest = all.empty() ? kNoValue : all.high;
    const std::string& name = table.columns.at(column);
    if (normalise == figures::Normalise::absolute) cells.scale = absolute_scale(all, from_zero(name));
    for (std::size_t row = 0; row < cells.values.size(); ++row) {
        const double value = cells.values[row];
        switch (normalise) {
            case figures::Normalise::absolute:
                cells.fractions.push_back(std::isfinite(value) ? fraction(cells.scale, value) : kNoValue);
                break;
            case figures::Normalise::minmax:
                cells.fractions.push_back(all.share(value));
                break;
            case figures::Normalise::layer:
                cells.fractions.push_back(layers[static_cast<std::size_t>(table.rows[row].site)].share(value));
                break;
        }
    }
    return cells;
}

QString value_with_deviation(const HeatCells& cells, std::size_t row, std::string_view unit) {
    QString text = cells.format.text(cells.values.at(row));
    if (!cells.deviation.empty() && !std::isnan(cells.deviation[row]))
        text += QStringLiteral(" ± ") + cells.format.text(cells.deviation[row]);
    if (!unit.empty() && !std::isnan(cells.values[row]))
        text += QLatin1Char(' ') + QString::fromUtf8(unit.data(), static_cast<qsizetype>(unit.size()));
    return text;
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/map/map_look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/figures/map_values.h"

namespace headscope::widgets {
namespace {

using figures::CellScale;
using figures::ScaleKind;

constexpr std::int64_t kShort = 256;   ///< as in the `attention` figure: longer texts need decades
constexpr double kLeastWeight = 1e-4;  ///< of the logarithmic scale; smaller weights are drawn as this one
constexpr double kLeastLogits = 1e-3;  ///< a head without scores has a scale all the same

constexpr std::array<std::pair<CellScale, const char*>, 5> kScales{{{CellScale::by_length, "by_length"},
                                                                    {CellScale::linear, "linear"},
                                                                    {CellScale::logarithmic, "logarithmic"},
                                                                    {CellScale::square_root, "square_root"},
                                                                    {CellScale::row_rank, "row_rank"}}};

constexpr std::array<std::pair<figures::MapValues, const char*>, 5> kMapValues{
    {{figures::MapValues::weights, "weights"},
     {figures::MapValues::logits, "logits"},
     {figures::MapValues::norms, "norms"},
     {figures::MapValues::layer_norms, "layer_norms"},
     {figures::MapValues::rollout, "rollout"}}};

}  // namespace

CellScale MapLook::scale_for(std::int64_t length) const {
    if (scale != CellScale::by_length) return scale;
    if (values == Values::logits) return CellScale::linear;
    if (values == Values::implicit) return CellScale::square_root;
    return length > kShort ? CellScale::logarithmic : CellScale::square_root;
}

figures::ColourScale MapLook::colours(std::int64_t length, double largest) const {
    figures::ColourScale colours;
    const CellScale chosen = scale_for(length);
    if (chosen == CellScale::logarithmic) colours.scale = ScaleKind::logarithmic;
    if (chosen == CellScale::square_root) colours.scale = ScaleKind::square_root;
    const char* how = chosen == CellScale::logarithmic   ? ", logarithmic"
                      : chosen == CellScale::square_root ? ", square root"
                                                         : "";
    const std::string pooled = pooling == figures::Pooling::maximum ? "maximum" : "mean";
    if (ranks()) {
        colours.label = "rank of the " + (computed() ? figures::values_word(values) : std::string("weight")) +
                        " in its row (" + pooled + ")";
    } else if (values == Values::implicit) {
        colours.map = figures::ColourMap::diverging;
        colours.maximum = std::isfinite(largest) && largest > 0 ? largest : 1.0;
        colours.minimum = -colours.maximum;
        if (chosen == CellScale::logarithmic) colours.scale = ScaleKind::symmetric_log;
        colours.label = figures::values_label(values) + " (" +
                        (pooling == figures::Pooling::maximum ? std::string("greatest magnitude") : pooled) + how + ")";
    } else if (logits()) {
        const double most = std::isfinite(largest) ? std::max(largest, kLeastLogits) : 1.0;
        colours.map = figures::ColourMap::diverging;
        colours.minimum = -most;
        colours.maximum = most;
        if (chosen == CellScale::logarithmic) colours.scale = ScaleKind::symmetric_log;
        colours.label = figures::values_label(values) + " (" +
                        (pooling == figures::Pooling::maximum ? std::string("greatest magnitude") : pooled) + how + ")";
    } else {
        if (figures::of_norms(values) && std::isfinite(largest) && largest > 0) colours.maximum = largest;
        if (chosen == CellScale::logarithmic) colours.minimum = kLeastWeight * colours.maximum;
        colours.label = figures::values_label(values) + " (" + pooled + how + ")";
    }
    return colours;
}

figures::ColourScale MapLook::curve_colours(std::int64_t length, double largest) const {
    MapLook look = *this;
    if (ranks()) look.scale = CellScale::logarithmic;
    return look.colours(length, largest);
}

QJsonObject MapLook::state() const {
    QJsonObject state;
    for (const auto& [kind, name] : kMapValues)
        if (kind == values) state[QLatin1String("values")] = QLatin1String(name);
    state[QLatin1String("pooling")] = QLatin1String(pooling == figures::Pooling::mean ? "mean" : "maximum");
    state[QLatin1String("units")] = QLatin1String(words ? "words" : "pieces");
    for (const auto& [kind, name] : kScales)
        if (kind == scale) state[QLatin1String("scale")] = QLatin1String(name);
    return state;
}

void MapLook::restore(const QJsonObject& state) {
    const QString shown = state[QLatin1String("values")].toString(), pool = state[QLatin1String("pooling")].toString();
    for (const auto& [kind, name] : kMapValues)
        if (shown == QLatin1String(name)) values = kind;
    const QString units = state[QLatin1String("units")].toString();
    if (units == QLatin1String("words")) words = true;
    if (units == QLatin1String("pieces")) words = false;
    if (pool == QLatin1String("mean")) pooling = figures::Pooling::mean;
    if (pool == QLatin1String("maximum")) pooling = figures::Pooling::maximum;
    for (const auto& [kind, name] : kScales)
        if (state[QLatin1String("scale")].toString() == QLatin1String(name)) scale = kind;
}

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QString>

#include "core/figures/figure_options.h"

namespace headscope::widgets {

/// Values that the map view shows of a head, and how they become colors.
struct MapLook {
    using Values = figures::MapValues;
    Values values = Values::weights;
    figures::CellScale scale = figures::CellScale::by_length;
    figures::Pooling pooling = figures::Pooling::maximum;

    bool words = false;  ///< in place of pieces; of weights and of one sequence only

    bool operator==(const MapLook&) const = default;

    bool ranks() const { return scale == figures::CellScale::row_rank; }
    /// True if tiles are made of logits. Ranks of weights and of logits are equal.
    bool logits() const { return values == Values::logits && !ranks(); }
    /// Norms, rollout and implicit matrices: maps of their own.
    bool computed() const { return values != Values::weights && values != Values::logits; }
    /// by_length resolved, for a map of that many positions along its longer side.
    figures::CellScale scale_for(std::int64_t length) const;
    /// `largest`: greatest magnitude of the logits, or what no norm is above. Weights: the scales of the `attention`
    /// figure.
    figures::ColourScale colours(std::int64_t length, double largest) const;
    /// Scale of the curves beside the map; with ranks, of the weights.
    figures::ColourScale curve_colours(std::int64_t length, double largest) const;

    QJsonObject state() const;
    /// Unknown values are left alone.
    void restore(const QJsonObject& state);
};

}  // namespace headscope::widgets

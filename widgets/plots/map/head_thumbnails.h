// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/analysis/analysis_file.h"
#include "widgets/plots/colour_map.h"

namespace headscope::widgets {

/// How the thumbnails of a site's heads are wanted.
struct ThumbnailRequest {
    std::string statistic = "mean";       ///< of a block: mean, maximum
    std::vector<std::int64_t> sequences;  ///< more than one: their mean, where they are of equal size
    std::int64_t site = 0;
    int pixels = 128;               ///< of a side
    std::optional<double> highest;  ///< the end of the colour scale; empty: each head its own
    ColourTable colours{};
    QRgb none = 0, zero = 0;
};

/// All heads of one site, ready to be drawn.
struct ThumbnailStrip {
    std::vector<QImage> images;
    std::vector<double> highest;  ///< by head; 0: nothing is there
};

inline std::int64_t bytes_of(const ThumbnailStrip& strip) {
    std::int64_t bytes = 0;
    for (const QImage& image : strip.images) bytes += image.sizeInBytes();
    return bytes;
}

/// Reads and colours; for the thread that owns the file. Blocks wholly in a causal layer's future are drawn as none.
/// Throws Error.
std::shared_ptr<const ThumbnailStrip> draw_thumbnails(const store::AnalysisFile& file, const ThumbnailRequest& wish);
/// The largest magnitude of all heads of the site.
double highest_of_thumbnails(const store::AnalysisFile& file, const ThumbnailRequest& wish);

/// The scale below `highest`: logarithmic, three decades for maxima and four for means, as the recipe `thumbnails`.
figures::ColourScale thumbnail_scale(const std::string& statistic, double highest);
/// Scale of implicit matrices: minus to plus the highest magnitude, by square root, for a diverging table of colors.
figures::ColourScale implicit_scale(double highest);
/// Round numbers not below `value` (1, 2, 5, 10, ...), at most 1: a shared scale that seldom changes while sites come.
double round_up(double value);

}  // namespace headscope::widgets

// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/head_thumbnails.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/figures/recipe.h"
#include "widgets/plots/map/cell_image.h"

namespace headscope::widgets {
namespace {

constexpr float kNoCell = std::numeric_limits<float>::quiet_NaN();

struct Cells {
    std::int64_t heads = 0, rows = 0, columns = 0;
    std::vector<float> values;  ///< [heads, rows, columns]

    std::span<const float> head(std::int64_t h) const {
        const std::int64_t size = rows * columns;
        return std::span(values).subspan(static_cast<std::size_t>(h * size), static_cast<std::size_t>(size));
    }
};

Cells read_cells(const store::AnalysisFile& file, const ThumbnailRequest& wish) {
    const Site& site = file.header().sites.at(static_cast<std::size_t>(wish.site));
    Cells cells;
    cells.heads = site.heads;
    std::vector<double> sums;
    for (const std::int64_t s : wish.sequences) {
        const store::Values stored = file.thumbnail(wish.statistic, s, wish.site);
        // The file's size is of its longest sequence; a shorter one fills the upper left corner.
        const std::int64_t side = stored.shape[1];
        cells.rows = std::min(side, file.header().queries(s, site));
        cells.columns = std::min(side, file.header().keys(s, site));
        sums.resize(static_cast<std::size_t>(cells.heads * cells.rows * cells.columns), 0.0);
        std::size_t at = 0;
        for (std::int64_t h = 0; h < cells.heads; ++h)
            for (std::int64_t r = 0; r < cells.rows; ++r)
                for (std::int64_t c = 0; c < cells.columns; ++c)
                    sums[at++] += stored.data[static_cast<std::size_t>((h * side + r) * side + c)];
    }
    const bool causal = site.causal && site.is_self();
    const auto count = static_cast<double>(std::max<std::size_t>(1, wish.sequences.size()));
    cells.values.reserve(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto in_head = static_cast<std::int64_t>(i) % (cells.rows * cells.columns);
        const bool future = causal && in_head % cells.columns > in_head / cells.columns;
        cells.values.push_back(future || !std::isfinite(sums[i]) ? kNoCell : static_cast<float>(sums[i] / count));
    }
    return cells;
}

double highest(std::span<const float> values) {
    float most = 0;
    for (const float value : values)
        if (!std::isnan(value)) most = std::max(most, std::abs(value));
    return most;
}

}  // namespace

figures::ColourScale thumbnail_scale(const std::string& statistic, double highest) {
    figures::ColourScale scale;
    scale.maximum = highest > 0 ? highest : 1;
    scale.scale = figures::ScaleKind::logarithmic;
    scale.minimum = scale.maximum * (statistic == "maximum" ? 1e-3 : 1e-4);
    return scale;
}

figures::ColourScale implicit_scale(double highest) {
    figures::ColourScale scale;
    scale.map = figures::ColourMap::diverging;
    scale.scale = figures::ScaleKind::square_root;
    scale.maximum = highest > 0 ? highest : 1;
    scale.minimum = -scale.maximum;
    return scale;
}

double round_up(double value) {
    if (!(value > 0)) return 1;
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
        if (factor * power >= value * (1 - 1e-9)) return std::min(1.0, factor * power);
    return 1;
}

std::shared_ptr<const ThumbnailStrip> draw_thumbnails(const store::AnalysisFile& file, const ThumbnailRequest& wish) {
    const Cells cells = read_cells(file, wish);
    const bool implicit = file.header().sites.at(static_cast<std::size_t>(wish.site)).has_implicit;
    const auto sparse = figures::heads_with_zeros(file, wish.site, wish.sequences);
    auto strip = std::make_shared<ThumbnailStrip>();
    for (std::int64_t h = 0; h < cells.heads; ++h) {
        const auto values = cells.head(h);
        strip->highest.push_back(highest(values));
        const double end = wish.highest.value_or(strip->highest.back());
        figures::ColourScale scale = implicit ? implicit_scale(end) : thumbnail_scale(wish.statistic, end);
        scale.zero_apart = !implicit && sparse[static_cast<std::size_t>(h)];
        QImage image(wish.pixels, wish.pixels, QImage::Format_RGB32);
        const auto pooling = wish.statistic != "maximum" ? figures::Pooling::mean
                             : implicit                  ? figures::Pooling::extreme
                                                         : figures::Pooling::maximum;
        if (values.empty())
            image.fill(wish.none);
        else
            paint_cells(values, cells.rows, cells.columns, pooling, {scale, wish.colours, wish.none, wish.zero}, image,
                        image.rect());
        strip->images.push_back(std::move(image));
    }
    return strip;
}

double highest_of_thumbnails(const store::AnalysisFile& file, const ThumbnailRequest& wish) {
    return highest(read_cells(file, wish).values);
}

}  // namespace headscope::widgets

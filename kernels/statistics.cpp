// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/statistics.h"

#include <algorithm>
#include <limits>

#include "kernels/indicators.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {

void prepare_statistics(const AttentionInput& input, const StatisticsRequest& request, Statistics& out) {
    out = Statistics{};
    out.batch = input.query.batch;
    out.heads = input.query.heads;
    out.queries = input.query.length;
    out.keys = input.key.length;
    const auto sites = static_cast<std::size_t>(out.batch * out.heads);
    const auto queries = static_cast<std::size_t>(out.queries), keys = static_cast<std::size_t>(out.keys);
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    for (const Indicator& one : indicators())
        if (one.values != nullptr) (out.*one.values).assign(sites, undefined);
    out.local_focus.assign(sites * request.local_distances.size(), undefined);
    out.score_above.assign(sites * 3, 0);
    out.row_constant.assign(sites * queries, 0.0F);
    if (request.head_diversity) out.head_diversity.assign(static_cast<std::size_t>(out.batch), 0.0);
    if (request.column_mass) out.column_mass.assign(sites * keys, 0.0F);
    if (request.histogram) {
        out.histogram_row_step = histogram_step(request.histogram_row_step, out.queries);
        out.histogram.assign(sites * kHistogramBins, 0);
    }
    if (request.thumbnails) {
        out.thumbnail_rows = std::min(request.thumbnail_size, out.queries);
        out.thumbnail_columns = std::min(request.thumbnail_size, out.keys);
        out.thumbnail_mean.assign(sites * static_cast<std::size_t>(out.thumbnail_rows * out.thumbnail_columns), 0.0F);
        out.thumbnail_maximum = out.thumbnail_mean;
    }
    if (request.per_query) {
        for (auto* field : {&out.query_entropy, &out.query_square_sum, &out.query_sink, &out.query_mean_distance}) {
            field->assign(sites * queries, 0.0F);
        }
    }
}

}  // namespace headscope::kernels

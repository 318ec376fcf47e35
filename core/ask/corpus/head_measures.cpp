// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/corpus/head_measures.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>

#include "core/analysis/dense_rows.h"
#include "core/ask/cells.h"
#include "core/ask/readers.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_header.h"
#include "kernels/indicators.h"

namespace headscope::ask::corpus {
namespace {

constexpr std::size_t kLanes = 4;  // sums side by side: one alone waits for itself

struct Moments {
    double weight = 0, place = 0, square = 0;
};

/// Sums of w, w x and w x x of weights at x = 0, 1, ..
Moments moments_of(std::span<const float> weights) {
    double sum[kLanes] = {}, first[kLanes] = {}, second[kLanes] = {};
    double place[kLanes] = {};  // counts on: conversions of x take longer
    for (std::size_t lane = 0; lane < kLanes; ++lane) place[lane] = static_cast<double>(lane);
    const std::size_t whole = weights.size() / kLanes * kLanes;
    for (std::size_t x = 0; x < whole; x += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const double weight = weights[x + lane];
            sum[lane] += weight;
            first[lane] += weight * place[lane];
            second[lane] += weight * place[lane] * place[lane];
            place[lane] += static_cast<double>(kLanes);
        }
    }
    Moments all;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        all.weight += sum[lane];
        all.place += first[lane];
        all.square += second[lane];
    }
    for (std::size_t x = whole; x < weights.size(); ++x) {
        const double weight = weights[x], last = static_cast<double>(x);
        all.weight += weight;
        all.place += weight * last;
        all.square += weight * last * last;
    }
    return all;
}

/// The largest of one or more weights.
float largest_of(std::span<const float> weights) {
    constexpr std::size_t lanes = 2 * kLanes;
    float largest[lanes];
    std::fill(largest, largest + lanes, weights.front());
    const std::size_t whole = weights.size() / lanes * lanes;
    for (std::size_t x = 0; x < whole; x += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) largest[lane] = std::max(largest[lane], weights[x + lane]);
    for (std::size_t x = whole; x < weights.size(); ++x) largest[0] = std::max(largest[0], weights[x]);
    return *std::max_element(largest, largest + lanes);
}

/// Adds row i of a head: the weights of keys 0 to i.
void add_row(std::span<const float> row, const std::vector<std::int64_t>& followers, HeadMeasures& head) {
    const std::size_t i = row.size() - 1;
    head.self += row[i];
    if (i > 0) head.previous += row[i - 1];
    for (const std::int64_t key : followers) head.induction += row[static_cast<std::size_t>(key)];
    double sum = 0;
    for (std::size_t bin = 0, end = i + 1; end > 0; ++bin) {
        const auto beyond = static_cast<std::size_t>(bin_begin(bin + 1));  // distances of this bin are smaller
        const std::size_t begin = bin + 1 < kDistanceBins && beyond <= i ? i + 1 - beyond : 0;
        const Moments part = moments_of(row.subspan(begin, end - begin));
        // At place x the distance is i - begin - x.
        const double far = static_cast<double>(i - begin);
        sum += part.weight;
        head.distances[bin] += part.weight;
        head.distance += far * part.weight - part.place;
        head.square += far * far * part.weight - 2 * far * part.place + part.square;
        end = begin;
    }
    if (i == 0) return;
    const auto keys = row.subspan(1);
    const float largest = largest_of(keys);
    if (largest > head.maximum) {
        head.maximum = largest;
        head.query = static_cast<std::int64_t>(i);
        head.key = std::find(keys.begin(), keys.end(), largest) - keys.begin() + 1;
    }
    head.query_mass[i] = static_cast<float>(sum - row[0]);
    for (std::size_t j = 1; j <= i; ++j) head.key_mass[j] += row[j];
}

}  // namespace

std::size_t distance_bin(std::int64_t distance) {
    const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(distance)));
    return std::min(width, kDistanceBins - 1);
}

std::int64_t bin_begin(std::size_t bin) {
    return bin == 0 ? 0 : std::int64_t{1} << (bin - 1);
}

std::vector<std::vector<std::int64_t>> induction_keys(const std::vector<std::int32_t>& ids) {
    std::map<std::int32_t, std::vector<std::int64_t>> behind;
    std::vector<std::vector<std::int64_t>> keys;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        keys.push_back(behind[ids[i]]);
        behind[ids[i]].push_back(static_cast<std::int64_t>(i) + 1);
    }
    return keys;
}

std::vector<HeadMeasures> measure_heads(model::Model& model, const store::SequenceTokens& text, std::int64_t heads,
                                        model::Editor* editor, const Cancellation& cancellation) {
    const std::vector<std::int32_t>& ids = text.predicted().ids;
    std::vector<HeadMeasures> all(model.sites().size() * static_cast<std::size_t>(heads));
    const auto followers = induction_keys(ids);
    const auto kinds = kernels::indicators_of(kernels::IndicatorKind::weights);
    SiteReader reader(model.sites(), text, [&](const model::AttentionRecord& record) {
        if (!attends_predicted(record.description)) return;
        const std::size_t first = static_cast<std::size_t>(record.site.value * heads), length = ids.size();
        for (std::int64_t h = 0; h < record.query.size(1); ++h) {
            const auto own = static_cast<std::size_t>(h);
            HeadMeasures& head = all[first + own];
            head.measured = true;
            head.entropy = record.statistics.entropy[own];
            head.query_mass.assign(length, 0);
            head.key_mass.assign(length, 0);
            for (const kernels::Indicator* kind : kinds)
                head.indicators.push_back((record.statistics.*kind->values)[own]);
        }
        analysis::for_dense_rows(record, 0, cancellation,
                                 [&](std::int64_t h, std::int64_t begin, std::span<const float> block) {
                                     HeadMeasures& head = all[first + static_cast<std::size_t>(h)];
                                     for (std::size_t row = 0; row * length < block.size(); ++row) {
                                         const std::size_t i = static_cast<std::size_t>(begin) + row;
                                         add_row(block.subspan(row * length, i + 1), followers[i], head);
                                     }
                                 });
    });
    read_run(model, text_input(text), reader, nullptr, editor, cancellation);
    return all;
}

}  // namespace headscope::ask::corpus

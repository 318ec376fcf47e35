// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Made-up analyses of models whose scores have biases by distance and whose weights have offsets: Lazy Attention with
// learned ones, ALiBi with slopes. Numbers are such that tests can say them again.

#include <algorithm>

#include "tests/core/store/synthetic_analysis.h"

namespace headscope::tests {

struct LazySample {
    LazySample() {
        analysis.lengths = {24, 17};
        analysis.model_name = "lazy";
    }
    SyntheticAnalysis analysis;
    std::int32_t window = 64;  ///< distances with a bias; 0: none
    std::int32_t first = 0;    ///< the first of them: below 0, keys behind the query have biases, too
    bool offsets = true, slopes = false;
};

/// A file of the same sizes, with ALiBi's slopes and nothing learned.
inline LazySample alibi_sample() {
    LazySample sample;
    sample.analysis.model_name = "alibi";
    sample.window = 0;
    sample.offsets = false;
    sample.slopes = true;
    return sample;
}

inline float lazy_bias(std::int64_t layer, std::int64_t head, std::int64_t distance) {
    return 0.5F - 0.03125F * static_cast<float>((head + 1) * std::abs(distance)) / static_cast<float>(layer + 1);
}
inline float lazy_offset(std::int64_t layer, std::int64_t head) {
    return -1.0F - 0.125F * static_cast<float>(head * (layer + 1));
}
/// The same for all layers, as in ALiBi.
inline float lazy_slope(std::int64_t head) {
    return std::exp2(-static_cast<float>(head + 1));
}

inline store::AnalysisHeader lazy_header(const LazySample& sample) {
    store::AnalysisHeader header = synthetic_header(sample.analysis);
    if (sample.offsets) header.mixers.assign(header.mixers.size(), "lazy");
    for (Site& site : header.sites) {
        site.bias_first = sample.first;
        site.bias_length = sample.window;
        site.has_offsets = sample.offsets;
        site.has_slopes = sample.slopes;
    }
    header.take_parameters();
    return header;
}

/// With offsets half of what is not the sink is released, and small weights are 0.
inline kernels::Statistics lazy_statistics(const LazySample& sample, std::int64_t length, std::int32_t layer,
                                           std::uint64_t seed) {
    kernels::Statistics st = synthetic_statistics(sample.analysis, length, layer, seed);
    if (!sample.offsets) {
        std::fill(st.zero_fraction.begin(), st.zero_fraction.end(), 0.0);
        return st;
    }
    for (std::size_t h = 0; h < st.sink.size(); ++h) {
        st.density[h] = (1 - st.sink[h]) / 2;
        st.sparsity[h] = 1 - st.sink[h] - st.density[h];
        st.zero_fraction[h] = 0.5 + 0.125 * static_cast<double>(h) / (layer + 1);
    }
    for (auto* cells : {&st.thumbnail_mean, &st.thumbnail_maximum})
        for (float& cell : *cells) cell = std::max(0.0F, cell - 0.04F);
    return st;
}

inline void write_lazy_analysis(const std::filesystem::path& path, const LazySample& sample) {
    const SyntheticAnalysis& a = sample.analysis;
    store::AnalysisWriter writer(path, lazy_header(sample));
    for (std::int32_t layer = 0; layer < a.layers; ++layer) {
        std::vector<float> offsets, slopes, biases;
        for (std::int32_t h = 0; h < a.heads; ++h) {
            if (sample.offsets) offsets.push_back(lazy_offset(layer, h));
            if (sample.slopes) slopes.push_back(lazy_slope(h));
            for (std::int32_t i = 0; i < sample.window; ++i) biases.push_back(lazy_bias(layer, h, sample.first + i));
        }
        writer.write_parameters(layer, offsets, slopes, biases);
        for (std::size_t s = 0; s < a.lengths.size(); ++s) {
            const auto sequence = static_cast<std::int64_t>(s);
            const std::uint64_t seed = a.seed + 17 * s;
            if (a.record.maps) {
                SyntheticMap map = synthetic_map(a, a.lengths[s], seed + static_cast<std::uint64_t>(layer));
                if (sample.offsets) {
                    map.rule.normaliser = kernels::Normaliser::elastic;
                    map.rule.offsets = offsets;
                }
                writer.write_map(sequence, layer, map.query, map.key, map.row_constant, map.rule, 0);
            }
            if (a.record.states) write_synthetic_states(writer, a, sequence, layer);
            writer.write_site(sequence, layer, lazy_statistics(sample, a.lengths[s], layer, seed), 0);
        }
    }
    for (std::size_t s = 0; s < a.lengths.size(); ++s) write_synthetic_output(writer, a, static_cast<std::int64_t>(s));
    writer.publish();
}

}  // namespace headscope::tests

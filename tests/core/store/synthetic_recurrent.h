// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A complete analysis file of a made-up model with recurrent layers: layer 0 is NAtS-L (site 0 its softmax branch with
// two heads, site 1 its linear branch with four), layer 1 a recurrent mixer of four heads (site 2), layer 2 softmax
// attention (site 3), layer 3 a mixer without any matrix (site 4). No model is run.

#include <algorithm>
#include <cmath>

#include "kernels/recurrent.h"
#include "tests/core/store/synthetic_analysis.h"

namespace headscope::tests {

struct RecurrentSample {
    std::vector<std::int64_t> lengths{24, 19};
    std::int64_t chunk = 8;
    store::RecordLevels record = [] {
        store::RecordLevels levels;
        levels.maps = levels.implicit = levels.branches = true;
        return levels;
    }();
    std::set<int> measured_layers;
    std::string model_name = "recurrent";
    std::uint64_t seed = 1;
};

inline constexpr std::int64_t kSoftmaxBranch = 0, kLinearBranch = 1, kRecurrentSite = 2, kSoftmaxSite = 3;

inline SyntheticAnalysis synthetic_of(const RecurrentSample& r) {
    SyntheticAnalysis a;
    a.lengths = r.lengths;
    a.layers = 4;
    a.record = r.record;
    a.measured_layers = r.measured_layers;
    a.model_name = r.model_name;
    a.seed = r.seed;
    return a;
}

inline store::AnalysisHeader recurrent_header(const RecurrentSample& r) {
    store::AnalysisHeader header = synthetic_header(synthetic_of(r));
    header.mixers = {"natsl", "gated_deltanet", "standard", "mamba"};
    const Site plain = header.sites[2];
    Site softmax = header.sites[0], linear = header.sites[0], recurrent = header.sites[1], none = header.sites[3];
    softmax.branch = "softmax";
    softmax.heads = 2;
    softmax.key_value_heads = 1;
    linear.branch = "linear";
    for (Site* site : {&linear, &recurrent}) {
        site->has_matrix = false;
        site->has_implicit = true;
    }
    linear.type_chunk = static_cast<std::int32_t>(r.chunk);
    none.has_matrix = false;
    header.sites = {softmax, linear, recurrent, plain, none};
    header.type_chunk = r.chunk;
    return header;
}

/// [heads, length, length]: coefficients of both signs that fall with distance; the last head's first row is 0.
inline std::vector<float> synthetic_implicit(std::int64_t heads, std::int64_t length, std::uint64_t seed) {
    std::mt19937_64 random(seed + 91);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    std::vector<float> matrix;
    for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < length; ++i) {
            for (std::int64_t j = 0; j < length; ++j) {
                const float size = uniform(random) * std::pow(0.9F, static_cast<float>(i - j));
                matrix.push_back(j > i || (i == 0 && h + 1 == heads) ? 0.0F : size);
            }
        }
    }
    return matrix;
}

/// By the definition: of the rows of |A| over their sums; rows that sum to 0 add nothing.
inline kernels::ImplicitStatistics implicit_statistics_of(const std::vector<float>& matrix, std::int64_t heads,
                                                          std::int64_t length) {
    kernels::ImplicitStatistics found;
    const float* row = matrix.data();
    for (std::int64_t h = 0; h < heads; ++h) {
        double entropy = 0, squares = 0, rows = 0;
        for (std::int64_t i = 0; i < length; ++i, row += length) {
            double sum = 0;
            for (std::int64_t j = 0; j < length; ++j) sum += std::abs(static_cast<double>(row[j]));
            if (sum == 0) continue;
            ++rows;
            for (std::int64_t j = 0; j < length; ++j) {
                const double share = std::abs(static_cast<double>(row[j])) / sum;
                if (share > 0) entropy -= share * std::log(share);
                squares += share * share;
            }
        }
        found.entropy.push_back(entropy);
        found.entropy_row_mean.push_back(entropy / rows);
        found.concentration.push_back(std::sqrt(squares));
    }
    return found;
}

/// [heads, chunks]: head h has its first (h + seed) mod (chunks + 1) chunks softmax.
inline std::vector<std::int8_t> synthetic_types(std::int64_t heads, std::int64_t chunks, std::uint64_t seed) {
    std::vector<std::int8_t> types;
    for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t softmax = (h + static_cast<std::int64_t>(seed)) % (chunks + 1);
        for (std::int64_t c = 0; c < chunks; ++c) types.push_back(c < softmax ? 0 : 1);
    }
    return types;
}

inline void write_recurrent_analysis(const std::filesystem::path& path, const RecurrentSample& r = {}) {
    const store::AnalysisHeader header = recurrent_header(r);
    store::AnalysisWriter writer(path, header);
    const SyntheticAnalysis a = synthetic_of(r);
    for (std::int64_t s = 0; s < std::ssize(r.lengths); ++s) {
        const std::int64_t length = r.lengths[static_cast<std::size_t>(s)];
        const std::uint64_t seed = r.seed + 17 * static_cast<std::uint64_t>(s);
        for (std::int64_t i = 0; i < std::ssize(header.sites); ++i) {
            const Site& site = header.sites[static_cast<std::size_t>(i)];
            if (header.measured(site)) {
                SyntheticAnalysis own = a;
                own.heads = site.heads;
                own.key_value_heads = site.key_value_heads;
                if (r.record.maps) {
                    const SyntheticMap map = synthetic_map(own, length, seed + static_cast<std::uint64_t>(i));
                    writer.write_map(s, i, map.query, map.key, map.row_constant, map.rule, 0);
                }
                if (r.record.branches && header.weighed(site)) {
                    std::vector<float> weights;
                    for (std::int64_t k = 0; k < site.heads * length; ++k) {
                        const float share = 0.5F + 0.4F * std::sin(static_cast<float>(k));
                        weights.insert(weights.end(), {share, 1 - share});
                    }
                    writer.write_branch_weights(s, i, weights);
                }
                writer.write_site(s, i, synthetic_statistics(own, length, site.layer, seed), 0);
            }
            if (!header.measured_implicit(site)) continue;
            if (site.type_chunk > 0) {
                const std::int64_t chunks = (length + r.chunk - 1) / r.chunk;
                const auto types = synthetic_types(site.heads, chunks, seed);
                std::vector<double> fractions;
                for (auto row = types.begin(); row != types.end(); row += chunks)
                    fractions.push_back(static_cast<double>(std::count(row, row + chunks, std::int8_t{0})) /
                                        static_cast<double>(chunks));
                writer.write_token_types(s, i, types, fractions, site.heads);
            }
            const auto matrix = synthetic_implicit(site.heads, length, seed + static_cast<std::uint64_t>(i));
            if (r.record.implicit) writer.write_implicit(s, i, matrix, 1e-6);
            writer.write_implicit_site(s, i, implicit_statistics_of(matrix, site.heads, length), 0);
        }
        write_synthetic_output(writer, a, s);
    }
    writer.publish();
}

}  // namespace headscope::tests

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A complete analysis file with made-up but plausible numbers, for tests that read or draw one: heads lean to the
// first key, to their neighbours or to nothing in particular, and change from layer to layer. No model is run.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/store/analysis/analysis_writer.h"

namespace headscope::tests {

struct SyntheticAnalysis {
    std::vector<std::int64_t> lengths{24};  ///< tokens of each sequence
    std::int32_t layers = 3;
    std::int32_t heads = 4;
    std::int32_t key_value_heads = 2;
    std::int32_t key_size = 8;
    std::int64_t vocabulary = 32;
    std::int64_t max_positions = 1024;
    bool causal = true;
    store::RecordLevels record;
    std::int64_t experts = 6, experts_per_token = 2;  ///< with record.experts
    std::set<int> plain_layers;                       ///< that have none
    store::MapType map_type = store::MapType::float32;
    std::string model_name = "synthetic";
    std::uint64_t seed = 1;
    std::set<int> measured_layers;
    std::vector<std::int64_t> local_distances{0, 1, 2, 3};
    std::string model_sha256 = std::string(64, '0');
    std::vector<std::string> problems;
};

inline store::AnalysisHeader synthetic_header(const SyntheticAnalysis& a) {
    store::AnalysisHeader header;
    header.program_version = "0.0.0";
    header.created = "2026-01-01T00:00:00Z";
    header.model_name = a.model_name;
    header.model_type = a.causal ? "llama" : "bert";
    header.model_sha256 = a.model_sha256;
    header.config_json = R"({"model_type": "synthetic"})";
    header.settings_json = R"({"record": []})";
    header.seed = a.seed;
    header.mixers.assign(static_cast<std::size_t>(a.layers), "standard");
    for (std::int32_t layer = 0; layer < a.layers; ++layer) {
        Site site;
        site.layer = layer;
        site.stack = a.causal ? "text" : "encoder";
        site.heads = a.heads;
        site.key_value_heads = a.key_value_heads;
        site.key_size = site.value_size = a.key_size;
        site.causal = a.causal;
        header.sites.push_back(site);
    }
    // Half a character and an ideograph: what labels have to bear.
    const std::vector<std::string> words{" the", " wind",         "ow",   " of", " light",
                                         ",",    " \xE6\x9C\x88", "\xE6", "\n",  " sea"};
    for (const std::int64_t length : a.lengths) {
        store::SequenceTokens tokens;
        for (std::int64_t i = 0; i < length; ++i) {
            const std::string& piece = words[static_cast<std::size_t>(i * 7 % 10)];
            const auto begin = static_cast<std::int64_t>(tokens.text.size());
            tokens.ids.push_back(static_cast<std::int32_t>(i * 7 % 10));
            tokens.pieces.push_back(piece);
            tokens.text += piece == "\xE6" ? "x" : piece;
            tokens.offsets.push_back({begin, static_cast<std::int64_t>(tokens.text.size())});
        }
        header.sequences.push_back(std::move(tokens));
    }
    header.measured_layers = a.measured_layers;
    header.local_distances = a.local_distances;
    header.record = a.record;
    header.hidden_boundaries = a.layers + 1;
    header.vocabulary = a.vocabulary;
    header.experts = a.experts;
    header.experts_per_token = a.experts_per_token;
    header.max_positions = a.max_positions;
    header.map_type = a.map_type;
    return header;
}

/// Statistics of one sequence at one site, as an operator would give them for a batch of one.
inline kernels::Statistics synthetic_statistics(const SyntheticAnalysis& a, std::int64_t length, std::int32_t layer,
                                                std::uint64_t seed) {
    std::mt19937_64 random(seed * 1000003U + static_cast<std::uint64_t>(layer));
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    kernels::Statistics st;
    st.batch = 1;
    st.heads = a.heads;
    st.queries = st.keys = length;
    const double depth = (layer + 1.0) / a.layers, l = static_cast<double>(length);
    const std::int64_t size = std::min<std::int64_t>(128, length);
    st.thumbnail_rows = st.thumbnail_columns = size;
    st.histogram_row_step = 1;
    const auto& edges = kernels::histogram_edges();
    for (std::int32_t h = 0; h < a.heads; ++h) {
        const double sink = 0.9 * depth * uniform(random), width = 1.0 + 0.3 * l * uniform(random);
        const double row_entropy = (1.0 - sink) * std::log(1.0 + width);
        st.entropy.push_back(row_entropy * l);
        st.entropy_row_mean.push_back(row_entropy);
        st.concentration.push_back(std::sqrt(l * (sink * sink + (1 - sink) * (1 - sink) / (1.0 + width))));
        st.sink.push_back(sink);
        for (const std::int64_t n : a.local_distances)
            st.local_focus.push_back(n < length ? (1 - sink) * std::exp(-static_cast<double>(n) / width) / (1.0 + width)
                                                : NAN);
        st.density.push_back(1 - sink);
        st.sparsity.push_back(0.0);
        st.zero_fraction.push_back(0.1 * uniform(random));
        st.mean_distance.push_back(width);
        st.duplicate.push_back(0.1 * uniform(random));
        st.induction.push_back(0.3 * uniform(random) * depth);
        st.virtual_sink.push_back(std::numeric_limits<double>::quiet_NaN());
        for (std::int64_t j = 0; j < length; ++j) {
            st.column_mass.push_back(static_cast<float>(j == 0 ? sink : (1 - sink) * (0.5 + uniform(random)) / l));
        }
        const double mean = 2 * uniform(random) - 1, deviation = 1 + 4 * depth * uniform(random);
        const double pairs = l * (l + 1) / 2;
        const auto below = [&](double x) { return 0.5 * std::erfc((mean - x) / (deviation * std::sqrt(2.0))); };
        for (std::size_t bin = 0; bin + 1 < edges.size(); ++bin) {
            st.histogram.push_back(
                static_cast<std::uint64_t>(std::llround(pairs * (below(edges[bin + 1]) - below(edges[bin])))));
        }
        st.score_minimum.push_back(mean - 4 * deviation);
        st.score_maximum.push_back(mean + 4 * deviation);
        st.score_mean.push_back(mean);
        st.score_variance.push_back(deviation * deviation);
        for (const double limit : {10.0, 100.0, 1000.0}) {
            st.score_above.push_back(static_cast<std::uint64_t>(pairs * (below(-limit) + 1 - below(limit))));
        }
        for (std::int64_t row = 0; row < size; ++row) {
            for (std::int64_t column = 0; column < size; ++column) {
                const double distance = static_cast<double>(row - column) * l / static_cast<double>(size);
                double weight = (1 - sink) * std::exp(-std::abs(distance) / width) / (1.0 + width);
                if (column == 0) weight += sink;
                if (a.causal && column > row) weight = 0;
                st.thumbnail_mean.push_back(static_cast<float>(weight));
                st.thumbnail_maximum.push_back(static_cast<float>(std::min(1.0, 2 * weight)));
            }
        }
    }
    st.head_diversity.push_back(a.heads > 1 ? 0.5 * depth * uniform(random) / l : 0.0);
    return st;
}

struct SyntheticMap {
    std::vector<float> query, key, row_constant;
    kernels::ScoreRule rule;
};

/// Queries and keys whose scores favour the first key, with softmax constants computed the plain way.
inline SyntheticMap synthetic_map(const SyntheticAnalysis& a, std::int64_t length, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0.0F, 1.0F);
    SyntheticMap map;
    map.rule.scale = 1.0 / std::sqrt(static_cast<double>(a.key_size));
    map.rule.causal = a.causal;
    const auto d = static_cast<std::size_t>(a.key_size), n = static_cast<std::size_t>(length);
    map.query.resize(static_cast<std::size_t>(a.heads) * n * d);
    map.key.resize(static_cast<std::size_t>(a.key_value_heads) * n * d);
    for (float& value : map.query) value = normal(random);
    for (float& value : map.key) value = normal(random);
    for (std::size_t i = 0; i < map.query.size(); i += d) map.query[i] += 2.0F;
    for (std::size_t g = 0; g < static_cast<std::size_t>(a.key_value_heads); ++g) map.key[g * n * d] += 6.0F;
    for (std::size_t h = 0; h < static_cast<std::size_t>(a.heads); ++h) {
        const std::size_t g = h / static_cast<std::size_t>(a.heads / a.key_value_heads);
        for (std::size_t i = 0; i < n; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < (a.causal ? i + 1 : n); ++j) {
                double score = 0;
                for (std::size_t c = 0; c < d; ++c)
                    score += double(map.query[(h * n + i) * d + c]) * map.key[(g * n + j) * d + c];
                sum += std::exp(score * map.rule.scale);
            }
            map.row_constant.push_back(static_cast<float>(std::log(sum)));
        }
    }
    return map;
}

/// Experts of each token in order of weight: the deeper the layer, the more of them go through the first ones.
inline void write_synthetic_experts(store::AnalysisWriter& writer, const SyntheticAnalysis& a, std::int64_t s,
                                    std::int32_t layer, std::uint64_t seed) {
    std::mt19937_64 random(seed * 7919U + static_cast<std::uint64_t>(layer));
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<std::int16_t> index;
    std::vector<float> weight;
    for (std::int64_t i = 0; i < a.lengths.at(static_cast<std::size_t>(s)); ++i) {
        const double skew = std::pow(uniform(random), 1.0 + layer);
        const auto first = static_cast<std::int64_t>(skew * static_cast<double>(a.experts));
        const double fall = 0.2 + 0.6 * uniform(random),
                     whole = 1 - std::pow(fall, static_cast<double>(a.experts_per_token));
        for (std::int64_t rank = 0; rank < a.experts_per_token; ++rank) {
            index.push_back(static_cast<std::int16_t>((first + rank) % a.experts));
            weight.push_back(static_cast<float>(std::pow(fall, static_cast<double>(rank)) * (1 - fall) / whole));
        }
    }
    writer.write_experts(s, layer, index, weight);
}

/// Inner products of made-up vectors of three numbers, one a key and head.
inline std::vector<float> synthetic_products(const SyntheticAnalysis& a, std::int64_t keys, std::uint64_t seed) {
    std::mt19937_64 random(seed + 5);
    std::normal_distribution<float> normal(0.0F, 1.0F);
    const auto heads = static_cast<std::size_t>(a.heads);
    std::vector<float> given(heads * 3), products;
    for (std::int64_t j = 0; j < keys; ++j) {
        for (float& value : given) value = normal(random);
        for (std::size_t g = 0; g < heads; ++g) {
            for (std::size_t h = 0; h < heads; ++h)
                products.push_back(given[g * 3] * given[h * 3] + given[g * 3 + 1] * given[h * 3 + 1] +
                                   given[g * 3 + 2] * given[h * 3 + 2]);
        }
    }
    return products;
}

/// Norms and variances of queries, keys and values: all of them 1 + layer.
inline void write_synthetic_states(store::AnalysisWriter& writer, const SyntheticAnalysis& a, std::int64_t s,
                                   std::int32_t layer) {
    const auto n = static_cast<std::size_t>(a.lengths.at(static_cast<std::size_t>(s)));
    for (const char* name : {"q", "k", "v"}) {
        const std::int32_t heads = std::string(name) == "q" ? a.heads : a.key_value_heads;
        const std::vector<float> values(static_cast<std::size_t>(heads) * n, 1.0F + static_cast<float>(layer));
        writer.write_state(s, layer, std::string(name) + "_norm", values, heads);
        writer.write_state(s, layer, std::string(name) + "_variance", values, heads);
    }
}

/// Writes sequence `s` at every measured site of `layer`, with whatever the header records.
inline void write_synthetic_layer(store::AnalysisWriter& writer, const SyntheticAnalysis& a, std::int64_t s,
                                  std::int32_t layer) {
    const std::int64_t length = a.lengths.at(static_cast<std::size_t>(s));
    if (!a.measured_layers.empty() && !a.measured_layers.contains(layer)) return;
    const std::uint64_t seed = a.seed + 17 * static_cast<std::uint64_t>(s);
    const auto n = static_cast<std::size_t>(length);
    if (a.record.maps || a.record.attention) {
        const SyntheticMap map = synthetic_map(a, length, seed + static_cast<std::uint64_t>(layer));
        if (a.record.maps) writer.write_map(s, layer, map.query, map.key, map.row_constant, map.rule, 0);
        for (std::int64_t h = 0; a.record.attention && h < a.heads; ++h) {
            std::vector<float> rows(n * n, 0.0F);
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t j = 0; j <= (a.causal ? i : n - 1); ++j)
                    rows[i * n + j] = 1.0F / static_cast<float>(a.causal ? i + 1 : n);
            }
            writer.write_attention_rows(s, layer, h, 0, rows, length);
        }
    }
    if (a.record.norms) {
        writer.write_value_products(s, layer, synthetic_products(a, length, seed + static_cast<std::uint64_t>(layer)));
    }
    if (a.record.states) write_synthetic_states(writer, a, s, layer);
    if (a.record.experts && !a.plain_layers.contains(layer)) write_synthetic_experts(writer, a, s, layer, seed);
    writer.write_site(s, layer, synthetic_statistics(a, length, layer, seed), 0);
}

inline void write_synthetic_output(store::AnalysisWriter& writer, const SyntheticAnalysis& a, std::int64_t s) {
    const auto n = static_cast<std::size_t>(a.lengths.at(static_cast<std::size_t>(s)));
    std::vector<float> loss(n);
    for (std::size_t i = 0; i < n; ++i) loss[i] = 2.0F + 4.0F / static_cast<float>(i + 1);
    loss.back() = std::numeric_limits<float>::quiet_NaN();
    writer.write_loss(s, loss);
    if (a.record.logits) {
        std::vector<float> logits(n * static_cast<std::size_t>(a.vocabulary));
        for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 13);
        writer.write_logits(s, 0, logits);
    }
    for (std::int32_t boundary = 0; a.record.states && boundary <= a.layers; ++boundary) {
        const std::vector<float> values(n, static_cast<float>(boundary));
        writer.write_hidden_state(s, boundary, "hidden_norm", values);
        writer.write_hidden_state(s, boundary, "hidden_variance", values);
    }
}

inline void write_synthetic_analysis(const std::filesystem::path& path, const SyntheticAnalysis& a = {}) {
    store::AnalysisWriter writer(path, synthetic_header(a));
    for (std::size_t s = 0; s < a.lengths.size(); ++s) {
        for (std::int32_t layer = 0; layer < a.layers; ++layer)
            write_synthetic_layer(writer, a, static_cast<std::int64_t>(s), layer);
        write_synthetic_output(writer, a, static_cast<std::int64_t>(s));
    }
    writer.write_problems(a.problems);
    writer.publish();
}

}  // namespace headscope::tests

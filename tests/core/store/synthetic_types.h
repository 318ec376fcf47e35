// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A complete analysis file of a made-up NAtS-L hybrid: layers that are listed have a softmax branch (site with twice
// the heads) and a linear one with types, the others are softmax attention. No model is run.

#include <functional>
#include <utility>

#include "tests/core/store/synthetic_analysis.h"

namespace headscope::tests {

struct SyntheticTypes {
    SyntheticAnalysis plain;  ///< its heads are those of linear branches
    std::set<int> typed_layers{0, 2};
    std::int64_t chunk = 8;
    /// 0 softmax, 1 linear, of the chunk `at`.
    std::function<int(std::int64_t s, int layer, std::int64_t head, std::int64_t at)> type =
        [](std::int64_t s, int layer, std::int64_t head, std::int64_t at) {
            return at < (head + layer + s) % 4 ? 0 : 1;
        };
};

inline store::AnalysisHeader typed_header(const SyntheticTypes& t) {
    store::AnalysisHeader header = synthetic_header(t.plain);
    const std::vector<Site> plain = std::exchange(header.sites, {});
    for (const Site& site : plain) {
        if (!t.typed_layers.contains(site.layer)) {
            header.sites.push_back(site);
            continue;
        }
        Site softmax = site, linear = site;
        softmax.branch = "softmax";
        softmax.heads *= 2;
        softmax.key_value_heads *= 2;
        linear.branch = "linear";
        linear.key_value_heads = linear.heads;
        linear.has_matrix = false;
        linear.has_implicit = true;
        header.sites.insert(header.sites.end(), {softmax, linear});
        header.mixers[static_cast<std::size_t>(site.layer)] = "natsl";
    }
    header.type_chunk = t.chunk;
    return header;
}

inline void write_synthetic_types(const std::filesystem::path& path, const SyntheticTypes& t = {}) {
    const store::AnalysisHeader header = typed_header(t);
    store::AnalysisWriter writer(path, header);
    for (std::int64_t s = 0; s < std::ssize(t.plain.lengths); ++s) {
        const std::int64_t length = t.plain.lengths[static_cast<std::size_t>(s)];
        for (std::int64_t i = 0; i < std::ssize(header.sites); ++i) {
            const Site& site = header.sites[static_cast<std::size_t>(i)];
            const auto& measured = t.plain.measured_layers;
            if (!measured.empty() && !measured.contains(site.layer)) continue;
            SyntheticAnalysis own = t.plain;
            own.heads = site.heads;
            own.key_value_heads = site.key_value_heads;
            const std::uint64_t seed = own.seed + 17 * static_cast<std::uint64_t>(s) + static_cast<std::uint64_t>(i);
            kernels::Statistics found = synthetic_statistics(own, length, site.layer, seed);
            if (site.has_matrix && own.record.maps) {
                const SyntheticMap map = synthetic_map(own, length, seed);
                writer.write_map(s, i, map.query, map.key, map.row_constant, map.rule, 0);
            }
            if (!site.has_matrix) {  // absent, all of them
                kernels::Statistics none;
                none.batch = 1;
                none.heads = found.heads;
                none.queries = none.keys = length;
                found = none;
            }
            if (site.branch == "linear") {
                const std::int64_t chunks = (length + t.chunk - 1) / t.chunk;
                std::vector<std::int8_t> types;
                std::vector<double> fractions;
                for (std::int64_t h = 0; h < site.heads; ++h) {
                    std::int64_t softmax = 0;
                    for (std::int64_t c = 0; c < chunks; ++c) {
                        types.push_back(static_cast<std::int8_t>(t.type(s, site.layer, h, c)));
                        softmax += types.back() == 0 ? 1 : 0;
                    }
                    fractions.push_back(static_cast<double>(softmax) / static_cast<double>(chunks));
                }
                writer.write_token_types(s, i, types, fractions, site.heads);
            }
            writer.write_site(s, i, found, 0);
        }
        write_synthetic_output(writer, t.plain, s);
    }
    writer.publish();
}

}  // namespace headscope::tests

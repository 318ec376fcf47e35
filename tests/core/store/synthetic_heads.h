// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A made-up analysis of an encoder-decoder whose heads differ by embeddings, of layers 0 and 2; layer 1 is standard
// attention. Numbers are such that tests can say them again.

#include <cmath>
#include <numbers>

#include "tests/core/store/synthetic_analysis.h"

namespace headscope::tests {

inline store::AnalysisHeader head_embeddings_header(const SyntheticAnalysis& a) {
    store::AnalysisHeader header = synthetic_header(a);
    header.model_name = "heads";
    header.mixers = {"mhe_mul", "standard", "mhe_mul"};
    header.streams["target"] = header.sequences;
    header.sites[0].stack = header.sites[1].stack = "encoder";
    header.sites[0].causal = header.sites[1].causal = false;
    Site& own = header.sites[2];
    own.stack = "decoder";
    own.query_stream = own.key_stream = "target";
    Site cross = own;
    cross.kind = "cross";
    cross.key_stream = "tokens";
    cross.causal = false;
    header.sites.push_back(cross);
    for (const std::size_t site : {0, 2, 3}) {
        header.sites[site].has_head_embeddings = true;
        header.sites[site].key_value_heads = a.heads;
    }
    header.take_parameters();
    return header;
}

/// [3, heads, size]: head h's of part p at site s is (s + 1) (p + 1) (h + 1) long and turned by h times 30 degrees, of
/// values the other way round.
inline std::vector<float> made_head_embeddings(const SyntheticAnalysis& a, std::int64_t site) {
    std::vector<float> all;
    for (std::int32_t part = 0; part < 3; ++part) {
        for (std::int32_t h = 0; h < a.heads; ++h) {
            const double length = static_cast<double>((site + 1) * (part + 1) * (h + 1));
            const double angle = (part == 2 ? -1 : 1) * h * std::numbers::pi / 6;
            std::vector<float> one(static_cast<std::size_t>(a.key_size), 0.0F);
            one[0] = static_cast<float>(length * std::cos(angle));
            one[1] = static_cast<float>(length * std::sin(angle));
            all.insert(all.end(), one.begin(), one.end());
        }
    }
    return all;
}

inline void write_head_embeddings_analysis(const std::filesystem::path& path) {
    const SyntheticAnalysis a;
    const store::AnalysisHeader header = head_embeddings_header(a);
    store::AnalysisWriter writer(path, header);
    for (std::int32_t site = 0; site < 4; ++site) {
        if (header.sites[static_cast<std::size_t>(site)].has_head_embeddings)
            writer.write_head_embeddings(site, made_head_embeddings(a, site));
        kernels::Statistics statistics = synthetic_statistics(a, a.lengths[0], std::min(site, a.layers - 1), a.seed);
        statistics.head_diversity = {0.125 * (site + 1)};
        writer.write_site(0, site, statistics, 0);
    }
    write_synthetic_output(writer, a, 0);
    writer.publish();
}

}  // namespace headscope::tests

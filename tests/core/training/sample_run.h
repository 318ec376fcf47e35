// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <limits>

#include "core/run/events.h"

namespace headscope::test {

/// Events of a made-up run of two layers, the second of which has no matrix.
inline training::Started sample_start(std::int64_t step = 0) {
    training::Started started;
    started.step = step;
    started.job = "name = \"sample\"\n";
    started.program_version = "0.1.0";
    started.model_type = "headscope";
    started.config_json = "{}";
    started.parameters = 1000;
    started.mixers = {"standard", "mlp"};
    started.sites.resize(2);
    started.sites[0].heads = 2;
    started.sites[1].layer = 1;
    started.sites[1].heads = 2;
    started.sites[1].has_matrix = false;
    started.threads = 2;
    started.steps = 100;
    return started;
}

inline training::Step sample_step(std::int64_t n, double loss = 0) {
    return {n,
            n * 1024,
            loss > 0 ? loss : 1.0 + 4.0 / static_cast<double>(n),
            1e-3,
            0.5,
            1e4,
            0.25 * static_cast<double>(n),
            3e8};
}

inline training::ProbeResult sample_probe(std::int64_t step, float shade = 0.5F) {
    const double none = std::numeric_limits<double>::quiet_NaN(), s = static_cast<double>(step);
    training::ProbeResult probe;
    probe.step = step;
    probe.seconds = 0.01;
    probe.indicators = {
        {"entropy", {s, s + 0.5, none, none}},
        {"head_diversity", {0.25, none}},
        {"local_focus", {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, none, none, none, none, none, none, none, none}}};
    probe.thumbnail_size = 2;
    probe.thumbnails.assign(16, shade);
    return probe;
}

}  // namespace headscope::test

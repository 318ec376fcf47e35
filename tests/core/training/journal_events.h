// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Events of a journal, and their bytes.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/run/events.h"
#include "core/run/journal_reader.h"

namespace headscope::test {

inline training::Step step(std::int64_t n) {
    return {n, n * 1024, 5.0 / static_cast<double>(n), 1e-3, 0.5, 1e4, 0.25 * static_cast<double>(n), 3e8};
}

inline std::vector<training::What> one_of_each() {
    using namespace training;
    Started started;
    started.job = "name = \"ä\"\n[model]\npreset = \"tiny-1m\"\n";
    started.program_version = "0.1.0";
    started.model_type = "headscope";
    started.config_json = "{}";
    started.parameters = 1234567;
    started.mixers = {"standard", "mlp"};
    started.sites.resize(2);
    started.sites[0].heads = 4;
    started.sites[1].layer = 1;
    started.sites[1].has_matrix = false;
    started.sites[1].has_implicit = true;
    started.threads = 2;
    started.data_hash = std::string(64, 'a');
    started.steps = 1000;
    started.device = "cuda:0 A card sm_90";
    started.kernels = "cuda";
    ProbeResult probe;
    probe.step = 50;
    probe.indicators = {{"entropy", {1.5, 0.25, std::numeric_limits<double>::quiet_NaN(), 2}},
                        {"head_diversity", {1, 2}}};
    probe.thumbnail_size = 2;
    probe.thumbnails = {0.5F, 0.0F, 0.25F, 1.0F};
    return {started,
            step(1),
            Validation{1, 5.5, 4096, 0.5, 0.75},
            probe,
            Snapshot{200, "step-000200", 4000000, 0.25, true},
            Control{200, "learning_rate", "3e-4", "set", "00017-4-1"},
            SampleText{200, "In the", " beginning"},
            Log{LogLevel::warning, 200, "a spike"},
            StateChanged{RunState::failed, 201, "found a loss that is not finite"},
            Rewound{200, "resumed from step-000200"}};
}

/// Equal payloads mean equal events, NaN included.
inline std::vector<std::string> texts(const std::vector<training::Event>& events) {
    std::vector<std::string> all;
    for (const training::Event& event : events) {
        const training::EncodedEvent encoded = encode(event);
        all.push_back(std::to_string(encoded.type) + encoded.payload);
    }
    return all;
}

inline std::vector<training::Event> timed(const std::vector<training::What>& whats) {
    std::vector<training::Event> events;
    for (const training::What& what : whats) events.push_back({1000.0 + static_cast<double>(events.size()), what});
    return events;
}

inline std::string journal_of(const std::vector<training::Event>& events) {
    std::string bytes = training::journal_header();
    for (const training::Event& event : events) bytes += frame(encode(event));
    return bytes;
}

}  // namespace headscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/site.h"

namespace headscope::store {

/// One column each, a row a step: what run.h5 has in /training. Steps rise. `accuracy` is NaN where none was measured.
struct RunSteps {
    std::vector<std::int64_t> step, tokens;
    std::vector<double> loss, learning_rate, gradient_norm, tokens_per_second, seconds, memory, accuracy;
    std::size_t size() const { return step.size(); }
};

struct RunValidations {
    std::vector<std::int64_t> step, tokens;
    std::vector<double> loss, seconds, accuracy;
};

/// An indicator over the probes of a run: values [probes, n, H, width], or [probes, n] where it belongs to the layer.
struct RunIndicator {
    std::string name;
    bool per_head = true;
    std::int64_t width = 1;
    std::vector<double> values;
};

/// Indicators of one batch that stays the same, measured while the model learns. n sites, H heads (RunRecord::heads()).
struct RunProbes {
    std::vector<std::int64_t> step;
    std::vector<double> seconds;
    std::vector<RunIndicator> indicators;
    std::int64_t thumbnail_size = 0;
    std::vector<std::uint16_t> thumbnails;  ///< float16 bits, [probes, n, H, size, size], or empty

    const RunIndicator* find(const std::string& name) const;  ///< nullptr when there is none
    std::int64_t count() const { return static_cast<std::int64_t>(step.size()); }
};

struct RunSnapshot {
    std::int64_t step = 0;
    std::string name;
    std::int64_t bytes = 0;
    double seconds = 0;
    bool best = false;
};

struct RunControl {
    double time = 0;
    std::int64_t step = 0;
    std::string action, value, outcome;
};

struct RunSample {
    std::int64_t step = 0;
    std::string prompt, text;
};

struct RunLogLine {
    double time = 0;
    std::int64_t step = 0;
    std::string level;  ///< note, warning, error
    std::string text;
};

/// A training run as values: what run.h5 holds, and what its journal comes to. Where a run was resumed from an earlier
/// step, what came after that step before is not in here.
struct RunRecord {
    std::string name;   ///< the run folder's
    std::string title;  ///< what its job calls it, where somebody looked (training::job_name()); in no file
    std::string job;    ///< TOML
    std::string state;  ///< running, paused, stopped, finished, failed; interrupted: died without saying so
    std::string state_text;
    std::string program_version, created;  ///< created: ISO 8601, UTC
    std::string model_type, config_json, machine, data_hash;
    std::string device, kernels;  ///< as in analysis files; empty: of an older program
    std::int64_t parameters = 0, threads = 0, processes = 1, planned_steps = 0, resumed = 0;
    std::vector<std::string> mixers;  ///< of each layer
    std::vector<Site> sites;
    RunSteps training;
    RunValidations validation;
    RunProbes probes;
    std::vector<RunSnapshot> snapshots;
    std::vector<RunControl> controls;
    std::vector<RunSample> samples;
    std::vector<RunLogLine> log;

    std::int64_t heads() const;  ///< the most that any site has
    /// The last step, 0 before the first.
    std::int64_t last_step() const { return training.step.empty() ? 0 : training.step.back(); }
};

}  // namespace headscope::store

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a reproduction will train, so that it ends within its minutes: planned once from a short calibration, kept in
// plan.json, and followed on resume. No torch here. Errors: Error (format for a plan that is none).

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/training/job/job.h"

namespace headscope::reproduce {

/// Sizes of the models, all mixers alike.
struct Size {
    std::string name;
    std::int64_t hidden = 0, feed_forward = 0, layers = 0, heads = 0;
};
/// From small to large.
const std::vector<Size>& sizes();

struct Settings {
    double minutes = 40;
    std::vector<std::string> data;  ///< empty: the King James Bible
    std::int64_t seeds = 0;         ///< 0: as the minutes allow
    std::int64_t threads = 1;       ///< of one run; as many run at a time as the processors have room for
    std::int64_t workers = 1;       ///< runs at a time
};

/// How many of `wanted` runs go side by side in `room` bytes of free memory, when each holds `run` bytes at its peak:
/// at least one, and all where a size is not known (0). A tenth is left to others.
std::int64_t side_by_side(std::int64_t wanted, double run, double room);

/// Seconds of one training step of each mixer, uniform, and what every run and evaluation takes beside.
struct Calibration {
    std::string size;
    std::map<std::string, double> step_seconds;  ///< by mixer
    double run_overhead = 3;                     ///< seconds of a run beside its steps, with its evaluations
    double end = 45;                             ///< seconds of figures and report
};

/// One model to train.
struct Trial {
    std::string name;  ///< of its folder: "approximate-hybrid-seed1"
    std::string mixer, layout;
    std::int64_t seed = 1;
    bool ablation = false;  ///< of the layouts beside uniform and even
    /// As the paper calls it: "standard", "uniform", "hybrid", or the layout.
    std::string configuration() const;
    /// As figures call it: "Standard", "MLP hybrid", "RndEmbQK uniform seed 2".
    std::string label() const;
};

struct Plan {
    double minutes = 0;
    Size size;
    std::int64_t sequence_length = 256, batch = 4, steps = 0, seeds = 1, threads = 1, workers = 1;
    std::int64_t evaluation_tokens = 0;  ///< of the held-out text, for each context length
    std::vector<std::string> data;
    std::vector<Trial> trials;        ///< in the order in which they are trained; what does not fit falls off the end
    double planned_seconds = 0;       ///< of everything
    double end_seconds = 0;           ///< of figures and the report
    bool with_ablation = false;       ///< time is planned for the other layouts; else they come with what is left of it
    std::int64_t workers_wanted = 1;  ///< as many as the processors have room for
    double run_bytes = 0;             ///< that one of the processes held at its peak
    double room_bytes = 0;            ///< of memory that was free for them

    std::vector<std::int64_t> lengths() const;                               ///< 1/16 to 1 of the training length
    std::int64_t tokens() const { return steps * batch * sequence_length; }  ///< of each run
};

/// The trials of `seeds` seeds: Standard, and six mixers uniform and even; with `ablation` the other layouts of two of
/// them, one seed, each stack once (small stacks make some layouts equal).
std::vector<Trial> trials_of(std::int64_t seeds, std::int64_t layers, bool ablation);

/// Steps, seeds and trials for the minutes that are left after `spent` seconds. Three seeds with every layout, else
/// three seeds, else one seed with fewer things, by which of them gives every run a sensible number of steps.
Plan make_plan(const Settings& settings, const Size& size, const Calibration& calibration, double spent);

/// The largest size that gets enough tokens, by the speed of the smallest: `seconds_of_token` is of sizes().front(), in
/// one of `workers` runs.
const Size& choose_size(const Settings& settings, double seconds_of_token);

/// The job of a trial.
training::JobFile job_of(const Plan& plan, const Trial& trial);

std::string to_json(const Plan& plan);
Plan plan_from_json(const std::string& text, const std::string& where);

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The models that a replay trains so that it ends within its minutes: planned from a short calibration, kept in
// plan.json, followed on resume, and extended for more minutes. Errors: Error (format for a file that is no plan).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/reproduce/paper.h"
#include "core/training/job/job.h"

namespace headscope::reproduce {

/// Fewer updates teach no model more than the frequencies of tokens.
inline constexpr std::int64_t kFewestUpdates = 40;
/// Share of the time left that is planned with: machines slow down.
inline constexpr double kUsedTime = 0.86;

struct Settings {
    double minutes = 40;
    std::vector<std::string> data;  ///< empty: the paper's language, or the King James Bible
    std::int64_t seeds = 0;         ///< 0: as the minutes allow
    std::int64_t threads = 1;       ///< of one run; as many run at a time as the processors have room for
    std::int64_t workers = 1;       ///< runs at a time
};

/// How many of `wanted` runs go side by side in `room` bytes of free memory, when each holds `run` bytes at its peak:
/// at least one, and all where a size is not known (0). A tenth is left to others.
std::int64_t side_by_side(std::int64_t wanted, double run, double room);

/// How fast the runs of a paper are on a machine.
struct Pace {
    std::string size;  ///< of the models that were timed
    std::int64_t threads = 1, workers = 1;
    double spent = 0, end = 60;                  ///< seconds of the calibration, of figures and report
    std::map<std::string, double> step_seconds;  ///< by Paper::timed_key()
    std::map<std::string, double> overhead;      ///< seconds of a run besides its steps, by Paper::overhead_key()

    bool operator==(const Pace&) const = default;
};

struct Trial {
    std::string name;  ///< of its folder: "encoder-mhe_mul-seed2"
    const Model* model = nullptr;
    const Stack* stack = nullptr;
    std::int64_t seed = 1;
    bool extra = false;

    std::string label() const;    ///< as figures call it: "MLP hybrid", "RndEmbQK uniform seed 2"
    std::string subject() const;  ///< its name in claims, the same for all seeds
    /// Words of patterns: model, label, preset, objective, stack, seed ("2"), -seed ("-seed2" or "").
    std::optional<std::string> word(const std::string& word) const;
};

struct Plan {
    const Paper* paper = nullptr;
    double minutes = 0;
    double steps_minutes = 0;  ///< that steps and seeds were chosen for; `minutes`, or fewer
    std::string size;
    std::int64_t steps = 0, seeds = 1, threads = 1, workers = 1;
    std::int64_t workers_wanted = 1;     ///< as many as there are processors for
    std::int64_t evaluation_tokens = 0;  ///< of the held-out text, for each length
    std::int64_t mask_id = 0;            ///< the fixed token
    std::int64_t planned = 0;            ///< trials that time is planned for; the others use what is left
    std::vector<std::string> data;
    std::vector<Trial> trials;          ///< in the order in which they are trained
    std::vector<double> trial_seconds;  ///< of each of them, by the calibration
    double planned_seconds = 0, end_seconds = 0;
    double run_bytes = 0;   ///< that one of the processes held at its peak
    double room_bytes = 0;  ///< of memory that was free for them

    std::int64_t steps_of(const Stage& stage) const;
    std::int64_t tokens(const Stage& stage) const;  ///< of each run: words of equal number
    std::int64_t tokens() const { return tokens(paper->stages.front()); }
    /// Words of texts and commands: size, length, length@1,2,4 (times the training length), steps.STAGE, ...
    std::optional<std::string> word(const std::string& word) const;
    std::vector<const Stage*> stages_of(const Trial& trial) const;
    std::string run_name(const Trial& trial, const Stage& stage) const;
};

/// A plan with nothing in it yet, of the smallest models: to calibrate with.
Plan unplanned(const Paper& paper, const Settings& settings);
std::vector<Trial> trials_of(const Paper& paper, std::int64_t seeds, double minutes);
Trial trial_of(const Model& model, const Stack& stack, std::int64_t seed = 1);
/// Steps for the minutes that are left after the calibration: the first of the paper's choices of seeds and extras
/// that leaves each run tokens enough to learn from.
Plan make_plan(const Paper& paper, const Settings& settings, const Pace& calibration);
/// The plan for more minutes: the same steps and seeds, and the time behind `spent` seconds for trials that are not
/// done.
Plan longer_plan(const Plan& plan, double minutes, double spent, const std::function<bool(const Trial&)>& done);
/// The largest size whose runs see tokens enough, by the speed of the smallest.
std::string choose_size(const Paper& paper, const Settings& settings, double seconds_of_token);

/// The job of a stage. It names earlier runs and passages relative to the folder of its file; `runs`: the folder in
/// place of "runs".
training::JobFile job_of(const Plan& plan, const Trial& trial, const Stage& stage, const std::string& runs = "runs");
/// The job cut down to the few steps that show how long one takes.
training::JobFile to_time(training::JobFile job);

/// A training step by the paper's [timing], likewise.
training::JobFile timing_job(const Plan& plan, const Model& model);

std::string to_json(const Plan& plan);
Plan plan_from_json(const Paper& paper, const std::string& text, const std::string& where);

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What the plans and reports of the replays share whose models are presets of two sizes (natsl/, lazy/, thesis/). No
// torch here. Errors: Error (format for a plan that is none).

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/json.h"
#include "core/reproduce/claim.h"
#include "core/reproduce/plan.h"
#include "core/training/job/job.h"

namespace headscope::reproduce {

/// Fewer updates teach no model more than how often tokens are.
inline constexpr std::int64_t kFewestUpdates = 40;
/// Of the time that is left, what is planned with: machines slow down.
inline constexpr double kUsedTime = 0.86;
/// Tokens after which a small model uses its context, and has learned a recall task, or does not.
inline constexpr double kTokensToLearn = 2e6;
/// Fewer teach a model of this size no more than how often words are: what is claimed of it is undecided.
inline constexpr std::int64_t kTokensToJudge = 1'000'000;

struct ReplayPlan {
    double minutes = 0;
    std::string size;  ///< of the presets: "nano", "tiny"
    std::int64_t sequence_length = 0, batch = 0;
    std::int64_t threads = 1, workers = 1;
    std::vector<std::string> data;
    double planned_seconds = 0, end_seconds = 0, run_bytes = 0;
};

/// A plan for the settings: what is not said here is left to the paper.
void begin_plan(ReplayPlan& plan, const Settings& settings, const std::string& size, double end_seconds);
/// "tiny" where each of so many runs, by the speed of the small ones, would see kTokensToLearn; else "nano".
std::string size_for(const Settings& settings, double runs, double nano_seconds_of_token);
/// Seconds until all are done that take so long, each begun in order by the worker that is free first.
double until_done(const std::vector<double>& seconds, std::int64_t workers);

/// A job of so many steps with the plan's batches, AdamW and a cosine; no data, and no probe.
training::JobFile plan_job(const ReplayPlan& plan, std::int64_t steps);
/// The plan's text or the Bible, with a tokenizer of 1024 tokens made for it, the last 4 % held out.
void train_on_text(training::JobFile& job, const ReplayPlan& plan);

/// What plan.json has of every paper; "paper" says of which.
nlohmann::json plan_json(const ReplayPlan& plan, const std::string& paper);
void read_plan(ReplayPlan& plan, const JsonView& view, const std::string& paper, std::int64_t shortest_sequence);

/// What a report has beside its paper's numbers.
struct ReportFrame {
    std::vector<ReportFigure> figures;
    std::vector<std::string> missing, commands;
    std::string data, machine, program_version;
    double seconds = 0;
};
/// Said before claims where no run has kTokensToJudge; else nothing.
std::string too_few_tokens_markdown(bool learned);
/// A table's row, and its first two.
std::string row_markdown(const std::vector<std::string>& cells);
std::string table_head_markdown(const std::vector<std::string>& cells);
/// "12.3 M".
std::string millions_text(std::int64_t count);
/// The line of "How it was done" that says with what and how long.
std::string effort_markdown(const ReportFrame& frame, const ReplayPlan& plan);
/// The report's end: commands to do any of it by hand; nothing where there are none.
std::string commands_markdown(const ReportFrame& frame);

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/replay_plan.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace headscope::reproduce {

void begin_plan(ReplayPlan& plan, const Settings& settings, const std::string& size, double end_seconds) {
    plan.minutes = settings.minutes;
    plan.size = size;
    plan.data = settings.data;
    plan.threads = settings.threads;
    plan.workers = settings.workers;
    plan.end_seconds = end_seconds;
}

std::string size_for(const Settings& settings, double runs, double nano_seconds_of_token) {
    constexpr double slower = 5;  // a step of the wider models takes about so many times as long
    const double tokens = 60 * settings.minutes * kUsedTime * static_cast<double>(settings.workers) /
                          (runs * slower * nano_seconds_of_token);
    return tokens >= kTokensToLearn ? "tiny" : "nano";
}

double until_done(const std::vector<double>& seconds, std::int64_t workers) {
    std::vector<double> free(static_cast<std::size_t>(workers), 0.0);
    for (const double one : seconds) *std::min_element(free.begin(), free.end()) += one;
    return *std::max_element(free.begin(), free.end());
}

training::JobFile plan_job(const ReplayPlan& plan, std::int64_t steps) {
    training::JobFile job;
    job.data.sequence_length = plan.sequence_length;
    job.training.steps = steps;
    job.training.tokens.reset();
    job.training.minutes.reset();
    job.training.batch = plan.batch;
    job.training.threads = plan.threads;
    job.optimizer.learning_rate = 3e-3;
    job.schedule.kind = "cosine";
    job.schedule.warmup_steps = std::max<std::int64_t>(1, steps / 20);
    job.schedule.minimum_rate = job.optimizer.learning_rate / 10;
    job.evaluation.every = std::max<std::int64_t>(1, steps / 5);
    job.evaluation.batches = 4;
    job.snapshots.every = 0;
    job.snapshots.keep = 2;
    job.probe.every = 0;
    job.probe.sequences = 2;
    job.probe.length = plan.sequence_length;
    job.sample.every = 0;
    return job;
}

void train_on_text(training::JobFile& job, const ReplayPlan& plan) {
    if (plan.data.empty())
        job.data.corpus = "kjv";
    else
        job.data.text = plan.data;
    job.data.tokenizer = "train:1024";
    job.tokenizer_given = true;
    job.data.validation = 0.04;
}

nlohmann::json plan_json(const ReplayPlan& plan, const std::string& paper) {
    return {{"paper", paper},
            {"minutes", plan.minutes},
            {"size", plan.size},
            {"sequence_length", plan.sequence_length},
            {"batch", plan.batch},
            {"threads", plan.threads},
            {"workers", plan.workers},
            {"data", plan.data},
            {"planned_seconds", plan.planned_seconds},
            {"end_seconds", plan.end_seconds},
            {"run_bytes", plan.run_bytes}};
}

void read_plan(ReplayPlan& plan, const JsonView& view, const std::string& paper, std::int64_t shortest_sequence) {
    if (!view.has("paper") || view.at("paper").string() != paper)
        view.refuse(ErrorCode::format, "expected a plan of this paper");
    plan.minutes = view.at("minutes").number(0);
    plan.size = view.at("size").string();
    if (plan.size != "nano" && plan.size != "tiny") view.at("size").refuse(ErrorCode::format, "expected nano or tiny");
    plan.sequence_length = view.at("sequence_length").integer({shortest_sequence, 1 << 20});
    plan.batch = view.at("batch").integer({1, 1 << 20});
    plan.threads = view.at("threads").integer({1, 4096});
    plan.workers = view.at("workers").integer({1, 4096});
    plan.data = view.at("data").strings();
    plan.planned_seconds = view.at("planned_seconds").number(0);
    plan.end_seconds = view.at("end_seconds").number(0);
    plan.run_bytes = view.number_or("run_bytes", 0, 0);
}

std::string too_few_tokens_markdown(bool learned) {
    return learned ? ""
                   : "**Each model saw less than a million tokens: too few to learn more than how often words are. "
                     "More minutes are needed for verdicts.**";
}

std::string row_markdown(const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
}

std::string table_head_markdown(const std::vector<std::string>& cells) {
    return row_markdown(cells) + row_markdown(std::vector<std::string>(cells.size(), "---"));
}

std::string millions_text(std::int64_t count) {
    return number_text(static_cast<double>(count) / 1e6) + " M";
}

std::string effort_markdown(const ReportFrame& frame, const ReplayPlan& plan) {
    return "- " + frame.program_version + " on " + frame.machine + ". " + number_text(plan.minutes) +
           " minutes were given, " + seconds_text(frame.seconds) + " taken; " + std::to_string(plan.workers) +
           " at a time, on " + std::to_string(plan.threads) + " thread each.\n";
}

std::string commands_markdown(const ReportFrame& frame) {
    if (frame.commands.empty()) return "";
    std::string text = "Any of it again, by hand:\n\n";
    for (const std::string& command : frame.commands) text += "    " + command + "\n";
    return text;
}

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/reproduction.h"

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "app/commands/replayed_text.h"
#include "app/commands/reproduction_parts.h"
#include "app/own_program.h"
#include "core/base/error.h"
#include "core/base/in_threads.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/machine/memory_room.h"
#include "core/base/os_error.h"
#include "core/figures/options/figure_arguments.h"
#include "core/reproduce/paper.h"
#include "core/reproduce/report.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"

namespace headscope::app {

namespace fs = std::filesystem;
using reproduce::Plan;
using reproduce::Trial;

fs::path Reproduction::run_folder(const Trial& trial) const {
    return options_.folder / "runs" / trial.name;
}

bool Reproduction::analysed(const Trial& trial) const {
    return !trial.ablation;
}

/// Leads to the last snapshot; its name is what files and figures show.
fs::path Reproduction::model_link(const Trial& trial) const {
    return options_.folder / "models" / trial.label();
}

fs::path Reproduction::analysis_file(const Trial& trial) const {
    return options_.folder / "analyses" / (trial.label() + ".headscope.h5");
}

fs::path Reproduction::run() {
    if (enter_folder({"jobs", "runs", "models", "analyses", "figures"}))
        plan_ = reproduce::plan_from_json(read_small_file(plan_file(), kLargestPlan, "plan"), plan_file().string());
    else
        make_plan();
    enter_budget();
    write_text();

    std::vector<Replay::Trial> trials;
    for (const Trial& trial : plan_.trials)
        trials.push_back({trial.name, trial.ablation, [this, &trial] { return is_done(trial); },
                          [this, &trial] { do_trial(trial); }});
    do_trials(std::move(trials));
    gather();
    draw();
    const fs::path report = write_report();
    keep_time();
    return report;
}

void Reproduction::enter_budget() {
    budget_ = {plan_.minutes, plan_.planned_seconds, plan_.end_seconds,
               plan_.workers, plan_.run_bytes,       plan_.with_ablation};
}

void Reproduction::write_text() {
    const fs::path path = options_.folder / "text.txt";
    if (fs::exists(path)) return;
    write_file(path, held_out_passage(plan_.data));
}

bool Reproduction::is_done(const Trial& trial) const {
    const fs::path run = run_folder(trial);
    return fs::exists(run / "scores.evaluation.h5") &&
           (trial.configuration() != "hybrid" || fs::exists(run / "skip.evaluation.h5")) &&
           (!analysed(trial) || fs::exists(analysis_file(trial)));
}

void Reproduction::do_trial(const Trial& trial) {
    const fs::path run = run_folder(trial);
    train(reproduce::job_of(plan_, trial), options_.folder / "jobs" / (trial.name + ".toml"), run);
    if (!fs::exists(run / "scores.evaluation.h5")) evaluate(run, run / "scores.evaluation.h5", false);
    if (trial.configuration() == "hybrid" && !fs::exists(run / "skip.evaluation.h5"))
        evaluate(run, run / "skip.evaluation.h5", true);
    if (analysed(trial) && !fs::exists(analysis_file(trial))) analyse(trial);
}

void Reproduction::evaluate(const fs::path& run, const fs::path& output, bool skip) {
    std::string lengths;
    for (const auto length : plan_.lengths()) lengths += (lengths.empty() ? "" : ",") + std::to_string(length);
    std::vector<std::string> arguments{"evaluate", (run / "snapshots" / "last").string(),
                                       "--task",   "perplexity,next_token_accuracy",
                                       "--length", lengths,
                                       "--tokens", std::to_string(plan_.evaluation_tokens),
                                       "-o",       output.string()};
    arguments.insert(arguments.end(), {"--threads", std::to_string(plan_.threads)});
    if (skip) arguments.insert(arguments.end(), {"--skip", "others"});
    own(arguments);
}

void Reproduction::analyse(const Trial& trial) {
    const fs::path link = model_link(trial);
    if (!fs::is_symlink(link))
        fs::create_directory_symlink(fs::path("..") / "runs" / trial.name / "snapshots" / "last", link);
    analyse(link, analysis_file(trial));
}

void Reproduction::analyse(const fs::path& model, const fs::path& output) {
    own({"analyze", model.string(), "--file", (options_.folder / "text.txt").string(), "--length",
         std::to_string(plan_.sequence_length), "--threads", std::to_string(plan_.threads), "-o", output.string()});
}

void Reproduction::gather() {
    tell("gathering");
    evaluation_ = {};
    for (const Trial& trial : plan_.trials) {
        for (const char* name : {"scores.evaluation.h5", "skip.evaluation.h5"}) {
            const fs::path file = run_folder(trial) / name;
            if (!fs::exists(file)) continue;
            store::Evaluation one = store::read_evaluation(file);
            for (auto& model : one.models) {
                Trial any = trial;
                any.seed = 1;  // the table has a column of seeds
                model.name = any.label() + (model.skipped.empty() ? "" : " skip");
            }
            append(evaluation_, std::move(one));
        }
    }
    if (evaluation_.models.empty())
        throw Error(ErrorCode::usage, "reproduce", "expected time for at least one model",
                    "found none trained" + (missing_.empty() ? "" : ": " + missing_.front()));
    evaluation_.settings_json = nlohmann::json{{"reproduction", "deconattn"}}.dump();
    store::write_evaluation(options_.folder / "evaluation.evaluation.h5", evaluation_);
    write_file(options_.folder / "evaluation.csv", store::evaluation_csv(evaluation_));
    // For figures: what was trained, without hybrids that lack blocks; and of that the paper's two configurations.
    store::Evaluation trained = evaluation_, both = evaluation_;
    trained.results.clear();
    both.results.clear();
    for (const auto& result : evaluation_.results) {
        const auto& model = evaluation_.models[static_cast<std::size_t>(result.model)];
        if (!model.skipped.empty()) continue;
        trained.results.push_back(result);
        if (model.layout == "uniform" || model.layout == "even") both.results.push_back(result);
    }
    store::write_evaluation(options_.folder / "layouts.evaluation.h5", trained);
    store::write_evaluation(options_.folder / "contexts.evaluation.h5", both);
}

}  // namespace headscope::app

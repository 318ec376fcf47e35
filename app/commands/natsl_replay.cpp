// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/natsl_replay.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "app/commands/reproduction_parts.h"
#include "app/resources.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/machine/memory_room.h"
#include "core/run/run_history.h"
#include "core/store/evaluation_file.h"

namespace headscope::app {

namespace fs = std::filesystem;
namespace natsl = reproduce::natsl;

namespace {

constexpr std::int64_t kTrialSteps = 12;
constexpr const char* kTexts[] = {"prose", "verse", "code"};

bool is_natsl(const std::string& model) {
    return model.starts_with("natsl");
}

}  // namespace

fs::path NatslReplay::analysis_file(const Planned& trial, const std::string& text) const {
    return options_.folder / "analyses" / (trial.label() + ", " + text + ".headscope.h5");
}

/// Leads to the last snapshot; its name is what files and figures show.
fs::path NatslReplay::model_link(const Planned& trial) const {
    return options_.folder / "models" / (trial.task == natsl::Task::text ? "text" : "recall") / trial.label();
}

const NatslReplay::Planned* NatslReplay::text_trial(const std::string& model) const {
    for (const Planned& trial : plan_.trials)
        if (trial.model == model && trial.task == natsl::Task::text && is_done(trial)) return &trial;
    return nullptr;
}

fs::path NatslReplay::run() {
    if (enter_folder({"jobs", "runs", "models/text", "models/recall", "analyses", "figures"}))
        plan_ = natsl::plan_from_json(read_small_file(plan_file(), kLargestPlan, "plan"), plan_file().string());
    else
        make_plan();
    budget_ = {plan_.minutes, plan_.planned_seconds, plan_.end_seconds,
               plan_.workers, plan_.run_bytes,       plan_.ablations_planned};
    std::vector<Trial> trials;
    for (const Planned& trial : plan_.trials)
        trials.push_back({trial.name, !trial.ablation.empty(), [this, &trial] { return is_done(trial); },
                          [this, &trial] { do_trial(trial); }});
    do_trials(std::move(trials));
    time_models();
    draw();
    const fs::path report = write_report();
    keep_time();
    return report;
}

NatslReplay::Speed NatslReplay::calibrate(const std::string& size, const std::string& model) {
    Plan plan;
    plan.size = size;
    plan.data = options_.settings.data;
    plan.threads = options_.settings.threads;
    plan.text_steps = kTrialSteps;
    training::JobFile job = natsl::job_of(plan, {"calibration-" + model, model, "", natsl::Task::text});
    job.evaluation.every = 0;
    job.probe.every = 0;
    return time_training(job, model);
}

void NatslReplay::make_plan() {
    tell("calibrating");
    calibrate("nano", "transformer");  // makes the token file
    const Plan usual;
    const double a_step = calibrate("nano", "natsl").step;
    const std::int64_t wanted = options_.settings.workers;
    options_.settings.workers = workers_now(wanted);
    const std::string size =
        natsl::choose_size(options_.settings, a_step / static_cast<double>(usual.batch * usual.sequence_length));
    natsl::Calibration calibration;
    // Side by side, as the runs will be: they share memory and caches.
    std::vector<std::function<void()>> work;
    for (const natsl::Model& one : natsl::models())
        work.emplace_back([this, &calibration, &size, model = std::string(one.name)] {
            {
                const std::lock_guard lock(mutex_);
                tell("calibrating " + model);
            }
            const Speed speed = calibrate(size, model);
            const std::lock_guard lock(mutex_);
            calibration.step_seconds[model] = speed.step;
            calibration.run_overhead = std::max(calibration.run_overhead, speed.overhead);
        });
    side_by_side(work, options_.settings.workers);
    // What comes after training is done once here, so that its time is known too.
    plan_ = natsl::make_plan(options_.settings, size, calibration, spent());
    const fs::path run = options_.folder / "calibration" / "natsl";
    const double begin = now();
    evaluate_text(run, run / "scores.evaluation.h5");
    const double evaluation = now() - begin;
    calibration.run_overhead += 1.3 * evaluation + 10;
    // Every length takes up to 20 seconds to time, every figure a few to draw.
    const auto lengths = static_cast<double>(plan_.latency_lengths().size());
    calibration.end = std::min(0.45 * 60 * options_.settings.minutes, 45 + 25 * lengths);
    std::error_code ignored;
    fs::remove_all(options_.folder / "calibration", ignored);
    const double room = memory_room();
    options_.settings.workers = reproduce::side_by_side(options_.settings.workers, largest_, room);
    const double took = spent();
    plan_ = natsl::make_plan(options_.settings, size, calibration, took);
    announce("natsl",
             {size, 1, 1, took, calibration.end, calibration.step_seconds, {{"run", calibration.run_overhead}}});
    plan_.run_bytes = largest_;
    write_file(plan_file(), natsl::to_json(plan_));
    keep_time();
}

bool NatslReplay::is_done(const Planned& trial) const {
    if (!fs::exists(scores_file(trial))) return false;
    if (!is_natsl(trial.model) || trial.task != natsl::Task::text) return true;
    return std::all_of(std::begin(kTexts), std::end(kTexts),
                       [&](const char* text) { return fs::exists(analysis_file(trial, text)); });
}

void NatslReplay::do_trial(const Planned& trial) {
    train(natsl::job_of(plan_, trial), options_.folder / "jobs" / (trial.name + ".toml"), run_folder(trial));
    const fs::path link = model_link(trial);
    if (!fs::is_symlink(link))
        fs::create_directory_symlink(fs::path("..") / ".." / "runs" / trial.name / "snapshots" / "last", link);
    if (!fs::exists(scores_file(trial))) measure(trial);
    if (!is_natsl(trial.model) || trial.task != natsl::Task::text) return;
    for (const char* text : kTexts)
        if (!fs::exists(analysis_file(trial, text))) analyse(trial, text);
}

void NatslReplay::evaluate_text(const fs::path& run, const fs::path& output) {
    own({"evaluate", (run / "snapshots" / "last").string(), "--task", "position_perplexity", "--length",
         std::to_string(plan_.long_length()), "--task-option",
         "position_perplexity.bucket=" + std::to_string(plan_.sequence_length), "--beyond-positions", "--threads",
         std::to_string(plan_.threads), "-o", output.string()});
}

void NatslReplay::measure(const Planned& trial) {
    if (trial.task == natsl::Task::text) return evaluate_text(run_folder(trial), scores_file(trial));
    own({"evaluate", (run_folder(trial) / "snapshots" / "last").string(), "--task", "needle", "--length",
         joined(plan_.recall_lengths()), "--sequences", "200", "--beyond-positions", "--threads",
         std::to_string(plan_.threads), "-o", scores_file(trial).string()});
}

void NatslReplay::analyse(const Planned& trial, const std::string& text) {
    own({"analyze", model_link(trial).string(), "--file", (resource_folder() / "texts" / (text + ".txt")).string(),
         "--length", std::to_string(4 * plan_.sequence_length), "--beyond-positions", "--threads",
         std::to_string(plan_.threads), "-o", analysis_file(trial, text).string()});
}

void NatslReplay::time_models() {
    if (fs::exists(latency_file())) return;
    tell("timing");
    std::vector<std::string> words{"cost"};
    for (const natsl::Model& model : natsl::models())
        if (const Planned* trial = text_trial(std::string(model.name))) words.push_back(model_link(*trial).string());
    if (words.size() < 2) return;
    words.insert(words.end(),
                 {"--latency", "--lengths", joined(plan_.latency_lengths()), "-o", latency_file().string()});
    try {
        own(words);
    } catch (const Error& error) {
        missing_.push_back(std::string("Latency could not be measured: ") + error.what() + ".");
    }
}

natsl::Measured NatslReplay::gather() const {
    natsl::Measured measured;
    for (const Planned& trial : plan_.trials) {
        if (!fs::exists(scores_file(trial))) continue;
        const store::Evaluation scores = store::read_evaluation(scores_file(trial));
        if (scores.models.empty()) continue;
        for (const auto& result : scores.results) {
            if (trial.task == natsl::Task::text && result.metric == "token_perplexity")
                measured.position[trial.model][result.length] = result.value;
            if (trial.task == natsl::Task::recall && result.metric == "accuracy")
                measured.recall[trial.name][result.length] = result.value;
        }
        if (trial.task != natsl::Task::text) continue;
        measured.parameters[trial.model] = scores.models.front().parameters;
        if (!is_natsl(trial.model)) continue;
        for (const char* text : kTexts)
            if (fs::exists(analysis_file(trial, text)))
                measured.types.push_back(natsl::read_token_types(analysis_file(trial, text), trial.model, text));
        if (const auto share = natsl::softmax_share(training::read_run(run_folder(trial))))
            measured.softmax_share[trial.model] = *share;
    }
    if (!fs::exists(latency_file())) return measured;
    const store::Evaluation timed = store::read_evaluation(latency_file());
    for (const auto& result : timed.results) {
        const std::string& name = timed.models.at(static_cast<std::size_t>(result.model)).name;
        for (const natsl::Model& model : natsl::models()) {
            if (name != model.label) continue;
            natsl::Latency& latency = measured.latency[std::string(model.name)][result.length];
            if (result.metric == "seconds")
                (result.task == "prefill" ? latency.prefill : latency.decode) = result.value;
            if (result.metric == "cache_bytes") latency.cache_bytes = static_cast<std::int64_t>(result.value);
        }
    }
    return measured;
}

void NatslReplay::draw() {
    tell("drawing");
    store::Evaluation positions, recalls;
    std::vector<std::string> runs, recall_runs, types, timelines;
    for (const Planned& trial : plan_.trials) {
        if (!is_done(trial) || !trial.ablation.empty()) continue;
        store::Evaluation one = store::read_evaluation(scores_file(trial));
        store::Evaluation& all = trial.task == natsl::Task::text ? positions : recalls;
        for (auto& model : one.models) model.name = trial.label();
        append(all, std::move(one));
        (trial.task == natsl::Task::text ? runs : recall_runs).push_back(run_folder(trial).string());
        if (trial.task != natsl::Task::text || !is_natsl(trial.model)) continue;
        for (const char* text : kTexts) types.push_back(analysis_file(trial, text).string());
        timelines.push_back(run_folder(trial).string());
    }
    const fs::path position_file = options_.folder / "positions.evaluation.h5",
                   recall_file = options_.folder / "recall.evaluation.h5";
    if (!positions.models.empty()) store::write_evaluation(position_file, positions);
    if (!recalls.models.empty()) store::write_evaluation(recall_file, recalls);
    const auto types_of = [&types](const std::string& label) {
        std::vector<std::string> own;
        for (const std::string& file : types)
            if (fs::path(file).filename().string().starts_with(label + ",")) own.push_back(file);
        return own;
    };
    const char* const shares =
        "Share of chunks that each head gives to softmax, on prose, verse and source code (Fig. 5 and 8)";
    std::vector<WantedFigure> figures{
        {"position-perplexity",
         "Perplexity by position up to 8 times the training length (Fig. 3 and 6)",
         {position_file.string()},
         {"position-perplexity"}},
        {"recall", "Accuracy on the recall task by length (Fig. 7)", {recall_file.string()}, {"ruler"}},
        {"latency",
         "Seconds of prefill and of one more token by length (Fig. 4)",
         {latency_file().string()},
         {"latency"}},
        {"token-types-hybrid", shares, types_of("NAtS-L Hybrid"), {"token-types"}},
        {"token-types-natsl", shares, types_of("NAtS-L"), {"token-types"}}};
    if (!timelines.empty())
        figures.push_back({"softmax-fraction",
                           "Share of softmax chunks while NAtS-L Hybrid learns, by layer",
                           {timelines.front()},
                           {"timeline", "--indicator", "softmax_fraction"}});
    figures.push_back({"loss", "Loss of the six models on text", runs, {"loss"}});
    figures.push_back({"loss-recall", "Loss of the six models on the recall task", recall_runs, {"loss"}});
    draw_figures(figures, plan_.workers);
}

fs::path NatslReplay::write_report() {
    tell("writing the report");
    natsl::ReportInput input;
    input.plan = plan_;
    input.measured = gather();
    if (input.measured.position.empty() && input.measured.recall.empty())
        throw Error(ErrorCode::usage, "reproduce", "expected time for at least one model",
                    "found none trained" + (missing_.empty() ? "" : ": " + missing_.front()));
    static_cast<reproduce::ReportFrame&>(input) = report_frame(plan_.data);
    input.commands = {"headscope train jobs/natsl-hybrid-text.toml -o again",
                      "headscope evaluate again --task position_perplexity --length " +
                          std::to_string(plan_.long_length()) + " --task-option position_perplexity.bucket=" +
                          std::to_string(plan_.sequence_length) + " --beyond-positions",
                      "headscope analyze again/snapshots/last --file text.txt -o again.headscope.h5",
                      "headscope export again.headscope.h5 --figure token-types -o types.pdf"};
    const fs::path report = options_.folder / "report.md";
    write_file(report, natsl::report_markdown(input));
    return report;
}

}  // namespace headscope::app

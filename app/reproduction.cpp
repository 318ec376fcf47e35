// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/reproduction.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <thread>

#include <nlohmann/json.hpp>

#include "app/own_program.h"
#include "app/version.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/os_error.h"
#include "core/base/output_file.h"
#include "core/data/text_data.h"
#include "core/data/text_parts.h"
#include "core/reproduce/paper.h"
#include "core/reproduce/report.h"
#include "core/training/journal.h"
#include "core/training/journal_reader.h"

namespace headscope::app {

namespace fs = std::filesystem;
using reproduce::Plan;
using reproduce::Trial;

namespace {

constexpr std::uint64_t kLargestPlan = 1 << 20;
constexpr std::int64_t kCalibrationSteps = 20;
/// Figures of a whole report; one is drawn while calibrating.
constexpr double kFigures = 9;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_file(const fs::path& path, const std::string& text) {
    OutputFile file(path, {}, "file");
    file.append(text);
    file.publish();
}

/// The end of the last document: held out of training, which holds out from the end.
class LastText final : public data::PartSink {
public:
    void begin_document() override { text_.clear(); }
    void part(std::string_view text) override {
        text_ += text;
        if (text_.size() > 2 * kBytes) text_.erase(0, text_.size() - kBytes);
    }
    void end_document() override {
        if (!text_.empty()) last_ = text_;
    }
    /// Whole words of the last few thousand characters.
    std::string passage() const {
        std::string text = last_.size() > kBytes ? last_.substr(last_.size() - kBytes) : last_;
        const std::size_t space = text.find(' ');
        if (text.size() == kBytes && space != std::string::npos) text.erase(0, space + 1);
        return text;
    }

private:
    static constexpr std::size_t kBytes = 6000;
    std::string text_, last_;
};

std::string machine() {
    std::ifstream file("/proc/cpuinfo");
    int processors = 0;
    std::string name = "an unnamed processor";
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("processor", 0) == 0) ++processors;
        if (line.rfind("model name", 0) == 0) name = line.substr(line.find(':') + 2);
    }
    return std::to_string(processors) + " cores of " + escaped(name);
}

/// Median over the later steps of a short run: the first ones warm caches up.
std::vector<double> step_seconds(const fs::path& run) {
    std::vector<double> seconds;
    for (const auto& event : training::read_journal(run / training::kJournalName)) {
        const auto* step = std::get_if<training::Step>(&event.what);
        if (step == nullptr || step->tokens_per_second <= 0 || step->step < 3) continue;
        const double tokens = static_cast<double>(step->tokens) / static_cast<double>(step->step);
        seconds.push_back(tokens / step->tokens_per_second);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

}  // namespace

Reproduction::Reproduction(ReproduceOptions options, Progress& progress, const Cancellation& cancellation)
    : options_(std::move(options)), progress_(progress), cancellation_(cancellation), start_(now()) {}

double Reproduction::spent() const {
    return before_ + now() - start_;
}

void Reproduction::keep_time() const {
    write_file(options_.folder / "time.json", json_text({{"seconds", spent()}}));
}

void Reproduction::tell(const std::string& what) {
    const double total =
        std::max(plan_.planned_seconds > 0 ? plan_.planned_seconds : 60 * options_.settings.minutes, spent() + 1);
    progress_.advance(spent(), total, what);
}

fs::path Reproduction::run_folder(const Trial& trial) const {
    return options_.folder / "runs" / trial.name;
}

/// One seed of each configuration is analysed, and Standard with all of them.
bool Reproduction::analysed(const Trial& trial) const {
    return !trial.ablation && (trial.seed == 1 || trial.mixer == "standard");
}

/// As figures call it.
std::string Reproduction::label(const Trial& trial) const {
    return reproduce::label_of(trial.mixer) + (trial.mixer == "standard" ? "" : " " + trial.configuration()) +
           (trial.seed == 1 ? "" : " seed " + std::to_string(trial.seed));
}

/// Leads to the last snapshot; its name is what files and figures show.
fs::path Reproduction::model_link(const Trial& trial) const {
    return options_.folder / "models" / label(trial);
}

fs::path Reproduction::analysis_file(const Trial& trial) const {
    return options_.folder / "analyses" / (label(trial) + ".headscope.h5");
}

void Reproduction::own(const std::vector<std::string>& arguments, const std::vector<std::string>& before) {
    std::string line = "\n$ headscope";
    for (const auto& word : arguments) line += " " + word;
    const fs::path log = options_.folder / "log.txt";
    std::ofstream(log, std::ios::app) << line + "\n";
    const OwnRun run = run_own_program(arguments, log, cancellation_, before);
    if (run.status != 0)
        throw Error(ErrorCode::internal, "headscope " + arguments.front(), "expected it to succeed",
                    "found exit status " + std::to_string(run.status) + ": " + run.last_line);
}

fs::path Reproduction::run() {
    fs::create_directories(options_.folder);
    const fs::path plan_file = options_.folder / "plan.json";
    const bool planned = fs::exists(plan_file);
    if (planned && !options_.resume)
        throw Error(ErrorCode::usage, shown(options_.folder), "expected a new folder, or --resume",
                    "found a plan in it");
    if (!planned && !options_.resume && !fs::is_empty(options_.folder))
        throw Error(ErrorCode::usage, shown(options_.folder), "expected a new or empty folder", "found files in it");
    for (const char* name : {"jobs", "runs", "models", "analyses", "figures"})
        fs::create_directories(options_.folder / name);
    if (options_.resume && fs::exists(options_.folder / "time.json"))
        before_ = JsonView(read_json_file(options_.folder / "time.json", kLargestPlan, "time"), "time.json")
                      .at("seconds")
                      .number(0);
    if (planned)
        plan_ = reproduce::plan_from_json(read_small_file(plan_file, kLargestPlan, "plan"), plan_file.string());
    else
        make_plan();
    write_text();

    do_trials();
    gather();
    draw();
    const fs::path report = write_report();
    keep_time();
    return report;
}

void Reproduction::do_trials() {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < plan_.workers; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
}

/// One of the workers: takes trials until there is none, or no time for one.
void Reproduction::work() {
    try {
        for (;;) {
            const Trial* trial = nullptr;
            {
                const std::lock_guard lock(mutex_);
                while (next_ < plan_.trials.size() && is_done(plan_.trials[next_])) ++next_;
                if (next_ >= plan_.trials.size() || failure_) return;
                trial = &plan_.trials[next_++];
                late_ = late_ || 60 * plan_.minutes - plan_.end_seconds - spent() < 1.1 * trial_seconds_;
                if (late_) {
                    missing_.push_back("Left out, for the minutes were over: " + trial->name + ".");
                    continue;
                }
                tell("training " + trial->name + " (" + std::to_string(next_) + " of " +
                     std::to_string(plan_.trials.size()) + ")");
            }
            const double begin = spent();
            const Outcome outcome = do_trial(*trial);
            const std::lock_guard lock(mutex_);
            trial_seconds_ = std::max(trial_seconds_, spent() - begin);
            if (!outcome.done) missing_.push_back("Failed: " + trial->name + ": " + outcome.problem + ".");
            keep_time();
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
    }
}

Reproduction::Speed Reproduction::calibrate(const reproduce::Size& size, const std::string& mixer) {
    Plan plan;
    plan.size = size;
    plan.data = options_.settings.data;
    plan.threads = options_.settings.threads;
    plan.steps = kCalibrationSteps;
    const Trial trial{"calibration-" + mixer, mixer, "uniform", 1, false};
    const fs::path job = options_.folder / "jobs" / (trial.name + ".toml"),
                   run = options_.folder / "calibration" / mixer;
    training::JobFile settings = reproduce::job_of(plan, trial);
    settings.evaluation.every = 0;
    write_file(job, training::job_text(settings));
    std::error_code ignored;
    fs::remove_all(run, ignored);
    const double begin = now();
    own({"train", job.string(), "-o", run.string()}, options_.launch);
    const double took = now() - begin;
    const std::vector<double> seconds = step_seconds(run);
    if (seconds.empty()) throw Error(ErrorCode::internal, "calibration", "expected steps in the journal", "found none");
    const double median = seconds[seconds.size() / 2];
    return {median, std::max(0.3, took - median * static_cast<double>(kCalibrationSteps))};
}

void Reproduction::make_plan() {
    tell("calibrating");
    fs::create_directories(options_.folder / "calibration");
    const auto& smallest = reproduce::sizes().front();
    calibrate(smallest, "standard");  // makes the token file
    const Plan usual;
    const double tokens = static_cast<double>(usual.batch * usual.sequence_length);
    const reproduce::Size size =
        reproduce::choose_size(options_.settings, calibrate(smallest, "standard").step / tokens);
    // Side by side, as the runs will be: they share memory and caches.
    reproduce::Calibration calibration;
    calibration.run_overhead = 0;
    calibration.size = size.name;
    std::vector<std::string> mixers;
    for (const auto& mixer : reproduce::paper_mixers()) mixers.emplace_back(mixer.name);
    std::size_t next = 0;
    std::exception_ptr failure;
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < options_.settings.workers; ++i) {
        threads.emplace_back([&] {
            for (;;) {
                std::string mixer;
                {
                    const std::lock_guard lock(mutex_);
                    if (next == mixers.size() || failure) return;
                    mixer = mixers[next++];
                    tell("calibrating " + mixer);
                }
                try {
                    const Speed speed = calibrate(size, mixer);
                    const std::lock_guard lock(mutex_);
                    calibration.step_seconds[mixer] = speed.step;
                    calibration.run_overhead = std::max(calibration.run_overhead, speed.overhead);
                } catch (...) {
                    const std::lock_guard lock(mutex_);
                    if (!failure) failure = std::current_exception();
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    // What comes after training is done once here, so that its time is known too.
    plan_ = reproduce::make_plan(options_.settings, size, calibration, spent());
    const double begin = now();
    const fs::path run = options_.folder / "calibration" / "standard";
    evaluate(run, run / "scores.evaluation.h5", false);
    const double evaluation = now() - begin, drawing = now();
    draw_cost();
    calibration.end = 10 + kFigures * (now() - drawing) / static_cast<double>(options_.settings.workers);
    std::error_code ignored;
    fs::remove_all(options_.folder / "calibration", ignored);
    // Half of the runs are hybrids, which are evaluated twice; some are analysed.
    calibration.run_overhead += 1.6 * evaluation + 1;
    plan_ = reproduce::make_plan(options_.settings, size, calibration, spent());
    write_file(options_.folder / "plan.json", reproduce::to_json(plan_));
    keep_time();
}

void Reproduction::write_text() {
    const fs::path path = options_.folder / "text.txt";
    if (fs::exists(path)) return;
    const auto files = plan_.data.empty() ? data::corpus_files("kjv") : data::find_sources(plan_.data, {}, "--data");
    LastText last;
    for (const auto& file : files)
        data::read_parts(InputFile(file.path, "text"), file.kind, last, [](std::uint64_t) {});
    write_file(path, last.passage());
}

bool Reproduction::is_done(const Trial& trial) const {
    const fs::path run = run_folder(trial);
    return fs::exists(run / "scores.evaluation.h5") &&
           (trial.configuration() != "hybrid" || fs::exists(run / "skip.evaluation.h5")) &&
           (!analysed(trial) || fs::exists(analysis_file(trial)));
}

Reproduction::Outcome Reproduction::do_trial(const Trial& trial) {
    try {
        const fs::path run = run_folder(trial);
        train(trial);
        if (!fs::exists(run / "scores.evaluation.h5")) evaluate(run, run / "scores.evaluation.h5", false);
        if (trial.configuration() == "hybrid" && !fs::exists(run / "skip.evaluation.h5"))
            evaluate(run, run / "skip.evaluation.h5", true);
        if (analysed(trial) && !fs::exists(analysis_file(trial))) analyse(trial);
        return {true, ""};
    } catch (const Error& error) {
        return {false, error.what()};
    }
}

void Reproduction::train(const Trial& trial) {
    const fs::path run = run_folder(trial), job = options_.folder / "jobs" / (trial.name + ".toml");
    const bool begun = fs::exists(run / "job.toml");
    if (!begun) {
        write_file(job, training::job_text(reproduce::job_of(plan_, trial)));
        own({"train", job.string(), "-o", run.string()}, options_.launch);
        return;
    }
    for (const auto& event : training::read_journal(run / training::kJournalName)) {
        const auto* changed = std::get_if<training::StateChanged>(&event.what);
        if (changed != nullptr && changed->state == training::RunState::finished) return;
    }
    own({"train", "-o", run.string(), "--resume"}, options_.launch);
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
    own({"analyze", link.string(), "--file", (options_.folder / "text.txt").string(), "--length",
         std::to_string(plan_.sequence_length), "--threads", std::to_string(plan_.threads), "-o",
         analysis_file(trial).string()});
}

void Reproduction::gather() {
    tell("gathering");
    evaluation_ = {};
    for (const Trial& trial : plan_.trials) {
        for (const char* name : {"scores.evaluation.h5", "skip.evaluation.h5"}) {
            const fs::path file = run_folder(trial) / name;
            if (!fs::exists(file)) continue;
            const store::Evaluation one = store::read_evaluation(file);
            const auto shift = static_cast<std::int64_t>(evaluation_.models.size());
            for (auto model : one.models) {
                model.name = reproduce::label_of(trial.mixer) +
                             (trial.mixer == "standard" ? "" : " " + trial.configuration()) +
                             (model.skipped.empty() ? "" : " skip");
                evaluation_.models.push_back(std::move(model));
            }
            for (auto result : one.results) {
                result.model += shift;
                evaluation_.results.push_back(std::move(result));
            }
        }
    }
    if (evaluation_.models.empty())
        throw Error(ErrorCode::usage, "reproduce", "expected time for at least one model",
                    "found none trained" + (missing_.empty() ? "" : ": " + missing_.front()));
    evaluation_.settings_json = nlohmann::json{{"reproduction", "deconattn"}}.dump();
    store::write_evaluation(options_.folder / "evaluation.evaluation.h5", evaluation_);
    write_file(options_.folder / "evaluation.csv", store::evaluation_csv(evaluation_));
    // For the figure of layouts: what was trained, without hybrids that lack blocks.
    store::Evaluation trained = evaluation_;
    trained.results.clear();
    for (const auto& result : evaluation_.results)
        if (evaluation_.models[static_cast<std::size_t>(result.model)].skipped.empty())
            trained.results.push_back(result);
    store::write_evaluation(options_.folder / "layouts.evaluation.h5", trained);
}

void Reproduction::figure(const std::string& name, const std::string& caption,
                          const std::vector<std::string>& arguments) {
    const fs::path base = options_.folder / "figures" / name;
    try {
        for (const char* ending : {".pdf", ".png", ".csv"}) {
            std::vector<std::string> words{"export"};
            words.insert(words.end(), arguments.begin(), arguments.end());
            words.insert(words.end(), {"-o", base.string() + ending});
            own(words);
        }
    } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        missing_.push_back("Figure " + name + " could not be drawn: " + error.what() + ".");
        return;
    }
    const std::lock_guard lock(mutex_);
    drawn_.push_back({name, caption});
}

void Reproduction::draw_cost() {
    figure("cost", "The paper's cost formulas at its 500M size (Tables 5 to 8)",
           {"deconattn-500m", "--figure", "cost"});
}

/// The paper's costs beside what runs here, at the width of the plan.
void Reproduction::measure_cost() {
    const fs::path table = options_.folder / "cost.csv";
    if (fs::exists(table)) return;
    try {
        own({"cost", (run_folder(plan_.trials.front()) / "snapshots" / "last").string(), "--measure", "--lengths",
             "64,256,1024", "--threads", std::to_string(plan_.threads), "-o", table.string()});
    } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        missing_.push_back(std::string("Costs could not be measured: ") + error.what() + ".");
    }
}

void Reproduction::draw() {
    std::vector<std::string> uniform_runs, hybrid_runs, uniform_radar, hybrid_radar;
    std::vector<std::string> logits_random, logits_running;
    for (const Trial& trial : plan_.trials) {
        if (trial.seed != 1 || trial.ablation || !is_done(trial)) continue;
        const std::string run = run_folder(trial).string(), analysis = analysis_file(trial).string();
        const std::string configuration = trial.configuration();
        if (configuration != "hybrid") uniform_runs.push_back(run);
        if (configuration != "uniform") hybrid_runs.push_back(run);
        if (trial.mixer != "mlp" && configuration != "hybrid") uniform_radar.push_back(analysis);
        if (trial.mixer != "mlp" && configuration != "uniform") hybrid_radar.push_back(analysis);
        if (trial.mixer == "rnd_emb_qk") logits_random.push_back(analysis);
        if (trial.mixer == "non_approximate") logits_running.push_back(analysis);
    }
    const std::string scores = (options_.folder / "evaluation.evaluation.h5").string(),
                      layouts = (options_.folder / "layouts.evaluation.h5").string();
    std::vector<std::function<void()>> work{[this] { measure_cost(); }};
    const auto add = [&](const char* name, const char* caption, std::vector<std::string> files, const char* recipe) {
        files.insert(files.end(), {"--figure", recipe});
        work.push_back([this, name, caption, files] { figure(name, caption, files); });
    };
    if (!uniform_runs.empty())
        add("loss-uniform", "Loss of Standard and the uniform variants, seed 1 (Fig. 5)", uniform_runs, "loss");
    if (hybrid_runs.size() > 1)
        add("loss-hybrid", "Loss of Standard and the hybrids, seed 1 (Fig. 5)", hybrid_runs, "loss");
    add("context-perplexity", "Perplexity and accuracy by context length (Table 4)", {scores}, "context-perplexity");
    add("ablation", "Perplexity and accuracy by layout (Fig. 3)", {layouts}, "ablation");
    if (uniform_radar.size() > 1)
        add("radar-uniform", "Indicators of each layer, Standard beside the uniform variants (Fig. 1 and 7)",
            uniform_radar, "radar");
    if (hybrid_radar.size() > 1)
        add("radar-hybrid", "Indicators of each layer, Standard beside the hybrids (Fig. 1 and 8)", hybrid_radar,
            "radar");
    if (logits_random.size() > 1)
        add("logits-rnd-emb-qk", "Scores before softmax, RndEmbQK uniform beside hybrid (Fig. 2 and 6)", logits_random,
            "logits");
    if (logits_running.size() > 1)
        add("logits-non-approximate", "Scores before softmax, Non-approximate uniform beside hybrid (Fig. 2 and 6)",
            logits_running, "logits");
    if (!fs::exists(options_.folder / "figures" / "cost.csv"))
        work.push_back([this] { draw_cost(); });
    else if (drawn_.empty())
        drawn_.push_back({"cost", "The paper's cost formulas at its 500M size (Tables 5 to 8)"});
    tell("drawing");
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < plan_.workers; ++i) {
        threads.emplace_back([&] {
            try {
                for (std::size_t one = next++; one < work.size(); one = next++) work[one]();
            } catch (...) {
                const std::lock_guard lock(mutex_);
                if (!failure_) failure_ = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    std::sort(drawn_.begin(), drawn_.end(), [](const Drawn& a, const Drawn& b) { return a.name < b.name; });
}

fs::path Reproduction::write_report() {
    tell("writing the report");
    const reproduce::Scores scores(evaluation_);
    reproduce::ReportInput input;
    input.plan = plan_;
    input.scores = &scores;
    for (const Trial& trial : plan_.trials) {
        if (!analysed(trial) || !fs::exists(analysis_file(trial))) continue;
        input.analyses.push_back(
            reproduce::read_indicators(analysis_file(trial), {trial.mixer, trial.configuration()}, trial.seed));
    }
    for (const Drawn& one : drawn_) input.figures.push_back({one.name, one.caption});
    input.missing = missing_;
    if (fs::exists(options_.folder / "cost.csv"))
        input.cost_csv = read_small_file(options_.folder / "cost.csv", kLargestPlan, "table");
    input.program_version = std::string("headscope ") + kVersion;
    input.machine = machine();
    input.seconds = spent();
    input.data =
        plan_.data.empty() ? "the King James Bible, its last 2 % held out" : "the given files, their last 2 % held out";
    const std::vector<double> seconds = step_seconds(run_folder(plan_.trials.front()));
    if (!seconds.empty())
        input.tokens_per_second =
            static_cast<double>(plan_.batch * plan_.sequence_length) / seconds[seconds.size() / 2];
    input.commands = {"headscope train jobs/standard-seed1.toml -o again",
                      "headscope evaluate again --task perplexity --length 16,256",
                      "headscope analyze again/snapshots/last --file text.txt -o again.headscope.h5",
                      "headscope export again.headscope.h5 --figure radar -o radar.pdf"};
    const fs::path report = options_.folder / "report.md";
    write_file(report, reproduce::report_markdown(input));
    return report;
}

}  // namespace headscope::app

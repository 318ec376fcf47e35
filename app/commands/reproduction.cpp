// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/reproduction.h"

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "app/commands/reproduction_parts.h"
#include "app/own_program.h"
#include "core/base/error.h"
#include "core/base/in_threads.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/machine/memory_room.h"
#include "core/base/os_error.h"
#include "core/data/text_data.h"
#include "core/data/text_parts.h"
#include "core/figures/options/figure_arguments.h"
#include "core/reproduce/paper.h"
#include "core/reproduce/report.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"

namespace headscope::app {

namespace fs = std::filesystem;
using reproduce::Plan;
using reproduce::Trial;

namespace {

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

void Reproduction::note(const std::string& line) const {
    std::ofstream(options_.folder / "log.txt", std::ios::app) << "\n" + line + "\n";
}

std::int64_t Reproduction::workers_now(std::int64_t wanted) const {
    return reproduce::side_by_side(wanted, std::max(largest_, plan_.run_bytes), memory_room());
}

void Reproduction::own(const std::vector<std::string>& arguments, const std::vector<std::string>& before) {
    std::vector<std::string> words = before;
    words.emplace_back("headscope");
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::string program = words.front();
    words.erase(words.begin());
    const fs::path log = options_.folder / "log.txt";
    note("$ " + figures::shell_command(words, program));
    const OwnRun run = run_own_program(arguments, log, cancellation_, before);
    {
        const std::lock_guard lock(mutex_);
        largest_ = std::max(largest_, run.peak_bytes);
    }
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
    const std::int64_t workers = workers_now(plan_.workers);
    if (workers < plan_.workers) {
        const std::string text = std::to_string(workers) + " of the planned " + std::to_string(plan_.workers) +
                                 " runs went side by side, for want of free memory.";
        note(text);
        missing_.push_back(text);
    }
    in_threads(workers, [this](const std::atomic<bool>& failed) { work(failed); });
    plan_.planned_seconds = std::min(plan_.planned_seconds, spent() + plan_.end_seconds);
    if (left_out_.empty() && others_left_out_ == 0) return;
    std::string names;
    for (const std::string& name : left_out_) names += (names.empty() ? "" : ", ") + name;
    if (others_left_out_ > 0)
        names += (names.empty() ? "" : ", and ") + std::to_string(others_left_out_) + " runs of other layouts";
    missing_.push_back("Left out, for the minutes were over: " + names + ".");
}

/// Seconds of one more trial: the longest of the last ones, a machine that was busy at the beginning may not be now.
double Reproduction::next_takes() const {
    const auto count = std::min(trial_seconds_.size(), static_cast<std::size_t>(plan_.workers));
    double longest = 0;
    for (std::size_t i = trial_seconds_.size() - count; i < trial_seconds_.size(); ++i)
        longest = std::max(longest, trial_seconds_[i]);
    return longest;
}

/// One of the workers: takes trials until there is none, or no time for one.
void Reproduction::work(const std::atomic<bool>& failed) {
    for (;;) {
        const Trial* trial = nullptr;
        {
            const std::lock_guard lock(mutex_);
            while (next_ < plan_.trials.size() && is_done(plan_.trials[next_])) ++next_;
            if (next_ >= plan_.trials.size() || failed) return;
            trial = &plan_.trials[next_++];
            // Layouts that nothing was planned for must not cost the end its time, on a machine that slows down either.
            const double margin = trial->ablation && !plan_.with_ablation ? 1.3 : 1;
            late_ = late_ || 60 * plan_.minutes - margin * plan_.end_seconds - spent() < 1.1 * margin * next_takes();
            if (late_) {
                if (trial->ablation)
                    ++others_left_out_;
                else
                    left_out_.push_back(trial->name);
                continue;
            }
            tell("training " + trial->name + " (" + std::to_string(next_) + " of " +
                 std::to_string(plan_.trials.size()) + ")");
        }
        const double begin = spent();
        const Outcome outcome = do_trial(*trial);
        const std::lock_guard lock(mutex_);
        trial_seconds_.push_back(spent() - begin);
        if (!outcome.done) missing_.push_back("Failed: " + trial->name + ": " + outcome.problem + ".");
        keep_time();
    }
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
            const store::Evaluation one = store::read_evaluation(file);
            const auto shift = static_cast<std::int64_t>(evaluation_.models.size());
            for (auto model : one.models) {
                Trial any = trial;
                any.seed = 1;  // seeds are told beside it
                model.name = any.label() + (model.skipped.empty() ? "" : " skip");
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

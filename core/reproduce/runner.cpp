// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/runner.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/machine/memory_room.h"
#include "core/base/process/in_threads.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/reproduce/files.h"
#include "core/reproduce/outlook.h"
#include "core/run/run_history.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::reproduce {

namespace fs = std::filesystem;

namespace {

bool finished(const fs::path& run) {
    return training::is_run_folder(run) && training::read_run(run, false).state == "finished";
}

}  // namespace

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Runner::Runner(const Paper& paper, ReplayOptions options, Host host, Progress& progress)
    : paper_(paper), options_(std::move(options)), host_(std::move(host)), progress_(progress), start_(now()) {}

fs::path Runner::run() {
    if (enter_folder()) {
        plan_ = plan_from_json(paper_, read_small_file(plan_file(), kLargestPlan, "plan"), plan_file().string());
        if (options_.settings.minutes > plan_.minutes) plan_rest();
    } else {
        make_plan();
    }
    do_trials();
    time_models();
    do_endings();
    gather();
    draw();
    do_data_sets();
    const fs::path report = write_report();
    keep_time();
    return report;
}

double Runner::spent() const {
    return before_ + now() - start_;
}

void Runner::keep_time() const {
    write_whole_file(time_file(), json_text({{"seconds", spent()}, {"pace", pace_}, {"left_out", left_out_}}));
}

void Runner::read_time() {
    const nlohmann::json document = read_json_file(time_file(), kLargestPlan, "time");
    const JsonView view(document, "time.json");
    before_ = view.at("seconds").number(0);
    if (view.has("pace")) pace_ = view.at("pace").numbers();
    left_out_ = view.strings_or_none("left_out");
    // Earlier versions did not list them: a replay with a report was carried out.
    late_ = !view.has("left_out") && fs::exists(report_file());
}

/// Plans for more minutes: trials that were left out, and those that the longer time adds.
void Runner::plan_rest() {
    left_out_.clear();
    late_ = false;
    plan_ = longer_plan(plan_, options_.settings.minutes, spent(), [this](const Trial& one) { return is_done(one); });
    note("plans the rest for " + printf_text("%.4g", plan_.minutes) + " minutes");
    if (const std::string few = outlook(plan_).text(); !few.empty())
        warn(few + " in a new folder: a plan that goes on keeps its steps");
    const bool complete =
        std::all_of(plan_.trials.begin(), plan_.trials.end(), [this](const Trial& one) { return is_done(one); });
    // Comparisons of all models lack those that are trained now.
    for (const JsonView& ending : paper_.rows("ending"))
        if (!complete && ending.has("links")) fs::remove(options_.folder / ending.at("output").string());
    write_whole_file(plan_file(), to_json(plan_));
    keep_time();
}

void Runner::report_progress(const std::string& what) {
    const double planned = plan_.planned_seconds > 0 ? plan_.planned_seconds : 60 * options_.settings.minutes;
    progress_.advance(spent(), std::max(planned, spent() + 1), what);
}

void Runner::note(const std::string& line) const {
    std::ofstream(options_.folder / "log.txt", std::ios::app) << "\n" + line + "\n";
}

void Runner::warn(const std::string& text) const {
    note("warning: " + text);
    host_.warn(text);
}

void Runner::own(Strings arguments, const Strings& before) {
    const Host::Ran ran = host_.run(arguments, before, options_.folder / "log.txt");
    {
        const std::lock_guard lock(mutex_);
        largest_ = std::max(largest_, ran.peak_bytes);
    }
    if (ran.status != 0)
        throw Error(ErrorCode::internal, "headscope " + arguments.front(), "expected it to succeed",
                    "found exit status " + std::to_string(ran.status) + ": " + ran.last_line);
}

bool Runner::attempt(const std::string& failed, const std::function<void()>& work) {
    try {
        work();
        return true;
    } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        missing_.push_back(failed + ": " + error.what() + ".");
        return false;
    }
}

bool Runner::enter_folder() {
    fs::create_directories(options_.folder);
    const bool planned = fs::exists(plan_file());
    if (planned && !options_.resume)
        throw Error(ErrorCode::usage, shown(options_.folder), "expected a new folder, or --resume",
                    "found a plan in it");
    if (!planned && !options_.resume && !fs::is_empty(options_.folder))
        throw Error(ErrorCode::usage, shown(options_.folder), "expected a new or empty folder", "found files in it");
    for (const char* name : {"jobs", "runs", "models", "analyses", "figures", "passages", "data-sets"})
        fs::create_directories(options_.folder / name);
    if (options_.resume && fs::exists(time_file())) read_time();
    return planned;
}

std::int64_t Runner::workers_now(std::int64_t wanted) const {
    return reproduce::side_by_side(wanted, std::max(largest_, plan_.run_bytes), memory_room());
}

void Runner::do_trials() {
    const std::int64_t workers = workers_now(plan_.workers);
    if (workers < plan_.workers) {
        missing_.push_back(std::to_string(workers) + " of the planned " + std::to_string(plan_.workers) +
                           " runs went side by side, for want of free memory.");
        note(missing_.back());
    }
    in_threads(workers, [&](const std::atomic<bool>& failed) { work(failed); });
    plan_.planned_seconds = std::min(plan_.planned_seconds, spent() + plan_.end_seconds);
    Strings planned;
    int others = 0;
    for (std::size_t i = 0; i < plan_.trials.size(); ++i) {
        const Trial& trial = plan_.trials[i];
        if (!contains(left_out_, trial.name) || is_done(trial)) continue;
        if (static_cast<std::int64_t>(i) < plan_.planned)
            planned.push_back(trial.name);
        else
            ++others;
    }
    if (planned.empty() && others == 0) return;
    std::string names = joined_text(planned, ", ");
    if (others > 0) names += (names.empty() ? "" : ", and ") + std::to_string(others) + " of " + paper_.extras;
    missing_.push_back("Left out, for the minutes were over: " + names + ".");
}

/// One of the workers: takes trials until there is none, or no time for one.
void Runner::work(const std::atomic<bool>& failed) {
    for (;;) {
        std::size_t index = 0;
        {
            const std::lock_guard lock(mutex_);
            while (next_ < plan_.trials.size() && is_done(plan_.trials[next_])) ++next_;
            if (next_ >= plan_.trials.size() || failed) return;
            index = next_++;
            // As slow as the slowest of the last ones: a machine may have become busy.
            const auto last = std::min(std::ssize(pace_), plan_.workers);
            const double slowest = last > 0 ? *std::max_element(pace_.end() - last, pace_.end()) : 0;
            // Trials that nothing was planned for must leave the end its time, even on a machine that slows down.
            const bool extra = static_cast<std::int64_t>(index) >= plan_.planned;
            const double margin = extra ? 1.3 : 1;
            // A trial that an earlier session left out stays out: unused seconds are no time for a run.
            const bool before = contains(left_out_, plan_.trials[index].name);
            late_ = late_ || before ||
                    60 * plan_.minutes - margin * plan_.end_seconds - spent() <
                        1.1 * margin * slowest * plan_.trial_seconds[index];
            if (late_) {
                if (!before) left_out_.push_back(plan_.trials[index].name);
                continue;
            }
            report_progress("training " + plan_.trials[index].name + " (" + std::to_string(next_) + " of " +
                            std::to_string(plan_.trials.size()) + ")");
        }
        const double begin = spent();
        attempt("Failed: " + plan_.trials[index].name, [&] { do_trial(plan_.trials[index]); });
        const std::lock_guard lock(mutex_);
        pace_.push_back((spent() - begin) / plan_.trial_seconds[index]);
        keep_time();
    }
}

bool Runner::selected(const Trial& trial, const JsonView& view) const {
    const auto among = [&](const char* key, const std::string& name) {
        return !view.has(key) || contains(paper_.names(view, key), name);
    };
    return among("models", trial.model->name) && among("stacks", trial.stack->name) &&
           (trial.seed == 1 || view.boolean_or("seeds", false)) && (!trial.extra || view.boolean_or("extras", false));
}

std::vector<const Trial*> Runner::done_trials(const JsonView& view) const {
    std::vector<const Trial*> list;
    for (const Trial& trial : plan_.trials)
        if (selected(trial, view) && is_done(trial)) list.push_back(&trial);
    return list;
}

std::vector<JsonView> Runner::analyses_of(const Trial& trial) const {
    std::vector<JsonView> list = paper_.rows("analysis");
    std::erase_if(list, [&](const JsonView& one) { return !selected(trial, one); });
    return list;
}

fs::path Runner::analysis_file(const Trial& trial, const JsonView& analysis) const {
    const std::string text = analysis.string_or("text", "");
    return options_.folder / "analyses" / (trial.label() + (text.empty() ? "" : ", " + text) + ".headscope.h5");
}

void Runner::compute(Strings arguments, const Strings& words, const Trial& trial, const Path& output) {
    const Strings filled = filled_words(words, &trial);
    arguments.insert(arguments.end(), filled.begin(), filled.end());
    arguments.insert(arguments.end(), {"--threads", std::to_string(plan_.threads), "-o", output.string()});
    own(arguments);
}

void Runner::remove_calibration() const {
    std::error_code ignored;
    fs::remove_all(options_.folder / "calibration", ignored);
}

Runner::Strings Runner::filled_words(Strings list, const Trial* trial) const {
    for (std::string& one : list)
        one = filled(one, [&](const std::string& word) -> std::optional<std::string> {
            if (word == "folder") return options_.folder.string();
            if (word == "texts") return host_.texts.string();
            if (word == "first")
                return plan_.run_name(plan_.trials.front(), *plan_.stages_of(plan_.trials.front()).front());
            if (trial != nullptr)
                if (auto own = trial->word(word)) return own;
            return plan_.word(word);
        });
    return list;
}

bool Runner::is_done(const Trial& trial) const {
    for (const Stage* stage : plan_.stages_of(trial))
        if (!fs::exists(scores_file(trial, *stage)) ||
            (!trial.stack->skip.empty() && !fs::exists(scores_file(trial, *stage, true))))
            return false;
    const auto analyses = analyses_of(trial);
    return std::all_of(analyses.begin(), analyses.end(),
                       [&](const JsonView& one) { return fs::exists(analysis_file(trial, one)); });
}

void Runner::do_trial(const Trial& trial) {
    for (const Stage* stage : plan_.stages_of(trial)) {
        const fs::path run = run_folder(trial, *stage);
        train(job_of(plan_, trial, *stage), run.filename().string(), run);
        for (const bool skip : {false, true}) {
            const fs::path output = scores_file(trial, *stage, skip);
            if ((!skip || !trial.stack->skip.empty()) && !fs::exists(output))
                evaluate(trial, *stage, run, output, skip);
        }
    }
    const auto analyses = analyses_of(trial);
    const auto endings = paper_.rows("ending");
    const bool timed = std::any_of(endings.begin(), endings.end(), [&](const JsonView& one) {
        return one.has("links") && selected(trial, one.at("links"));
    });
    // Its name is what files and figures show.
    if (const fs::path link = model_link(trial); (timed || !analyses.empty()) && !fs::is_symlink(link))
        fs::create_directory_symlink(fs::path("..") / "runs" /
                                         run_folder(trial, *plan_.stages_of(trial).front()).filename() / "snapshots" /
                                         "last",
                                     link);
    for (const JsonView& one : analyses)
        if (!fs::exists(analysis_file(trial, one))) analyse(trial, one, model_link(trial), analysis_file(trial, one));
}

/// Trains, or resumes a run that was begun; nothing if it has finished.
void Runner::train(const training::JobFile& job, const std::string& name, const fs::path& run) {
    if (!fs::exists(run / "job.toml")) {
        const fs::path file = options_.folder / "jobs" / (name + ".toml");
        write_whole_file(file, training::job_text(job));
        own({"train", file.string(), "-o", run.string()}, options_.launch);
    } else if (!finished(run)) {
        own({"train", "-o", run.string(), "--resume"}, options_.launch);
    }
}

void Runner::evaluate(const Trial& trial, const Stage& stage, const fs::path& run, const fs::path& output, bool skip) {
    Strings words = stage.evaluate;
    if (skip) words.insert(words.end(), trial.stack->skip.begin(), trial.stack->skip.end());
    compute({"evaluate", last_snapshot(run).string()}, words, trial, output);
}

void Runner::analyse(const Trial& trial, const JsonView& analysis, const fs::path& checkpoint, const fs::path& output) {
    if (trial.model->mask >= 0) write_masked_text(trial, checkpoint);
    compute({"analyze", checkpoint.string()}, analysis.at("words").strings(), trial, output);
}

/// The same windows of the text as the other models read, each with the fixed token at its place.
void Runner::write_masked_text(const Trial& trial, const fs::path& checkpoint) const {
    const std::string text = read_small_file(options_.folder / "text.txt", kLargestPlan, "text");
    const auto ids = tokenizer::Tokenizer::from_folder(checkpoint)->encode(text, false).ids;
    const auto length = paper_.sequence_length;
    nlohmann::json windows = nlohmann::json::array();
    for (std::int64_t begin = 0; begin < std::ssize(ids); begin += length) {
        std::vector<std::int64_t> window(ids.begin() + begin, ids.begin() + std::min(std::ssize(ids), begin + length));
        if (std::ssize(window) <= trial.model->mask) break;
        window[static_cast<std::size_t>(trial.model->mask)] = plan_.mask_id;
        windows.push_back(std::move(window));
    }
    write_whole_file(options_.folder / (trial.model->name + ".json"), json_text(windows));
}

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/replay.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/replay_pace.h"
#include "app/commands/reproduction_parts.h"
#include "app/own_program.h"
#include "app/version.h"
#include "core/base/error.h"
#include "core/base/in_threads.h"
#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/base/machine/memory_room.h"
#include "core/base/machine/processors.h"
#include "core/base/os_error.h"
#include "core/base/text.h"
#include "core/figures/options/figure_arguments.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"

namespace headscope::app {

namespace fs = std::filesystem;

Replay::Replay(ReproduceOptions options, Progress& progress, const Cancellation& cancellation)
    : options_(std::move(options)), progress_(progress), cancellation_(cancellation), start_(now()) {}

double Replay::spent() const {
    return before_ + now() - start_;
}

void Replay::keep_time() const {
    write_file(options_.folder / "time.json", json_text({{"seconds", spent()}}));
}

void Replay::tell(const std::string& what) {
    const double total =
        std::max(budget_.planned_seconds > 0 ? budget_.planned_seconds : 60 * options_.settings.minutes, spent() + 1);
    progress_.advance(spent(), total, what);
}

void Replay::note(const std::string& line) const {
    std::ofstream(options_.folder / "log.txt", std::ios::app) << "\n" + line + "\n";
}

void Replay::announce(const std::string& paper, reproduce::Pace pace) {
    pace.threads = options_.settings.threads;
    pace.workers = options_.settings.workers;
    keep_replay_pace(paper, pace);
    const std::string warning = reproduce::outlook(paper, options_.settings, pace).text();
    if (warning.empty()) return;
    note("warning: " + warning);
    finish_progress_line();
    std::fprintf(stderr, "headscope: warning: %s\n", warning.c_str());
}

std::int64_t Replay::workers_now(std::int64_t wanted) const {
    return reproduce::side_by_side(wanted, std::max(largest_, budget_.run_bytes), memory_room());
}

void Replay::own(const std::vector<std::string>& arguments, const std::vector<std::string>& before) {
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

bool Replay::enter_folder(const std::vector<std::string>& folders) {
    fs::create_directories(options_.folder);
    const bool planned = fs::exists(plan_file());
    if (planned && !options_.resume)
        throw Error(ErrorCode::usage, shown(options_.folder), "expected a new folder, or --resume",
                    "found a plan in it");
    if (!planned && !options_.resume && !fs::is_empty(options_.folder))
        throw Error(ErrorCode::usage, shown(options_.folder), "expected a new or empty folder", "found files in it");
    for (const std::string& name : folders) fs::create_directories(options_.folder / name);
    if (options_.resume && fs::exists(options_.folder / "time.json"))
        before_ = JsonView(read_json_file(options_.folder / "time.json", kLargestPlan, "time"), "time.json")
                      .at("seconds")
                      .number(0);
    return planned;
}

void Replay::do_trials(std::vector<Trial> trials) {
    const std::int64_t workers = workers_now(budget_.workers);
    if (workers < budget_.workers) {
        const std::string text = std::to_string(workers) + " of the planned " + std::to_string(budget_.workers) +
                                 " runs went side by side, for want of free memory.";
        note(text);
        missing_.push_back(text);
    }
    next_ = 0;
    in_threads(workers, [&](const std::atomic<bool>& failed) { work(trials, failed); });
    budget_.planned_seconds = std::min(budget_.planned_seconds, spent() + budget_.end_seconds);
    if (left_out_.empty() && others_left_out_ == 0) return;
    std::string names;
    for (const std::string& name : left_out_) names += (names.empty() ? "" : ", ") + name;
    if (others_left_out_ > 0)
        names += (names.empty() ? "" : ", and ") + std::to_string(others_left_out_) + " of " + budget_.extras;
    missing_.push_back("Left out, for the minutes were over: " + names + ".");
}

/// Seconds that a trial will take: as the slowest of the last ones, a machine that was busy at the beginning may not be
/// now.
double Replay::takes(const Trial& trial) const {
    const auto count = std::min(pace_.size(), static_cast<std::size_t>(budget_.workers));
    double slowest = 0;
    for (std::size_t i = pace_.size() - count; i < pace_.size(); ++i) slowest = std::max(slowest, pace_[i]);
    return trial.seconds > 0 ? slowest * trial.seconds : slowest;
}

/// One of the workers: takes trials until there is none, or no time for one.
void Replay::work(const std::vector<Trial>& trials, const std::atomic<bool>& failed) {
    for (;;) {
        const Trial* trial = nullptr;
        {
            const std::lock_guard lock(mutex_);
            while (next_ < trials.size() && trials[next_].done()) ++next_;
            if (next_ >= trials.size() || failed) return;
            trial = &trials[next_++];
            // Trials that nothing was planned for must not cost the end its time, on a machine that slows down either.
            const double margin = trial->extra && !budget_.extras_planned ? 1.3 : 1;
            late_ =
                late_ || 60 * budget_.minutes - margin * budget_.end_seconds - spent() < 1.1 * margin * takes(*trial);
            if (late_) {
                if (trial->extra)
                    ++others_left_out_;
                else
                    left_out_.push_back(trial->name);
                continue;
            }
            tell("training " + trial->name + " (" + std::to_string(next_) + " of " + std::to_string(trials.size()) +
                 ")");
        }
        const double begin = spent();
        std::string problem;
        try {
            trial->work();
        } catch (const Error& error) {
            problem = error.what();
        }
        const std::lock_guard lock(mutex_);
        pace_.push_back((spent() - begin) / (trial->seconds > 0 ? trial->seconds : 1));
        if (!problem.empty()) missing_.push_back("Failed: " + trial->name + ": " + problem + ".");
        keep_time();
    }
}

bool Replay::finished(const fs::path& run) {
    if (!fs::exists(run / training::kJournalName)) return false;
    for (const auto& event : training::read_journal(run / training::kJournalName)) {
        const auto* changed = std::get_if<training::StateChanged>(&event.what);
        if (changed != nullptr && changed->state == training::RunState::finished) return true;
    }
    return false;
}

void Replay::train(const training::JobFile& job, const fs::path& job_file, const fs::path& run) {
    if (!fs::exists(run / "job.toml")) {
        write_file(job_file, training::job_text(job));
        own({"train", job_file.string(), "-o", run.string()}, options_.launch);
    } else if (!finished(run)) {
        own({"train", "-o", run.string(), "--resume"}, options_.launch);
    }
}

Replay::Speed Replay::time_training(const training::JobFile& job, const std::string& name) {
    const fs::path file = options_.folder / "jobs" / ("calibration-" + name + ".toml"),
                   run = options_.folder / "calibration" / name;
    fs::create_directories(run.parent_path());
    std::error_code ignored;
    fs::remove_all(run, ignored);
    const double begin = now();
    train(job, file, run);
    const double took = now() - begin;
    const std::vector<double> seconds = step_seconds(run);
    if (seconds.empty()) throw Error(ErrorCode::internal, "calibration", "expected steps in the journal", "found none");
    const double median = seconds[seconds.size() / 2];
    return {median, std::max(0.3, took - median * static_cast<double>(job.training.steps.value_or(0)))};
}

void Replay::figure(const std::string& name, const std::string& caption, const std::vector<std::string>& arguments) {
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

void Replay::side_by_side(const std::vector<std::function<void()>>& work, std::int64_t workers) {
    std::atomic<std::size_t> next{0};
    in_threads(workers_now(workers), [&](const std::atomic<bool>& failed) {
        for (std::size_t one = next++; one < work.size() && !failed; one = next++) work[one]();
    });
}

void Replay::draw_figures(const std::vector<WantedFigure>& figures, std::int64_t workers) {
    std::vector<std::function<void()>> work;
    for (const WantedFigure& one : figures) {
        if (one.files.empty() || !fs::exists(one.files.front())) continue;
        work.emplace_back([this, &one] {
            std::vector<std::string> words = one.files;
            words.emplace_back("--figure");
            words.insert(words.end(), one.recipe.begin(), one.recipe.end());
            figure(one.name, one.caption, words);
        });
    }
    side_by_side(work, workers);
    const auto place = [&](const Drawn& drawn) {
        return std::find_if(figures.begin(), figures.end(), [&](const auto& one) { return one.name == drawn.name; });
    };
    std::sort(drawn_.begin(), drawn_.end(), [&](const Drawn& a, const Drawn& b) { return place(a) < place(b); });
}

void Replay::append(store::Evaluation& all, store::Evaluation one) {
    const auto shift = static_cast<std::int64_t>(all.models.size());
    std::move(one.models.begin(), one.models.end(), std::back_inserter(all.models));
    for (auto& result : one.results) {
        result.model += shift;
        all.results.push_back(std::move(result));
    }
}

std::string Replay::machine() {
    const std::string name = processor_name();
    return std::to_string(usable_processors()) + " cores of " + (name.empty() ? "an unnamed processor" : escaped(name));
}

reproduce::ReportFrame Replay::report_frame(const std::vector<std::string>& data) const {
    reproduce::ReportFrame frame;
    for (const Drawn& one : drawn_) frame.figures.push_back({one.name, one.caption});
    frame.missing = missing_;
    frame.data =
        data.empty() ? "the King James Bible, its last 4 % held out" : "the given files, their last 4 % held out";
    frame.machine = machine();
    frame.program_version = std::string("headscope ") + kVersion;
    frame.seconds = spent();
    return frame;
}

std::string Replay::joined(const std::vector<std::int64_t>& lengths) {
    std::string text;
    for (const std::int64_t length : lengths) text += (text.empty() ? "" : ",") + std::to_string(length);
    return text;
}

}  // namespace headscope::app

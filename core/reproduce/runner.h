// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Replays a paper in a folder: calibrates, plans, trains and measures as many models side by side as minutes and memory
// allow, draws and reports. Every step is a run of this program, written to log.txt. Folder: plan.json, text.txt,
// passages/, jobs/, runs/, models/, analyses/, figures/, data-sets/, *.evaluation.h5, log.txt, time.json, report.md. On
// resume, steps whose files exist are done, and trials that were left out stay out unless the minutes are more: so a
// finished replay renders its report. Throws Error, Stopped.

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/reproduce/report.h"
#include "core/store/evaluation/evaluation_file.h"

namespace headscope::reproduce {

struct ReplayOptions {
    std::filesystem::path folder;
    Settings settings;
    std::vector<std::string> launch;  ///< words before the program for training: mpirun -n 2
    std::filesystem::path data_sets;  ///< folder of other people's data sets; empty: none, or that of before
    bool resume = false;
};

/// The program around a replay.
struct Host {
    struct Ran {
        int status = 0;
        double peak_bytes = 0;
        std::string last_line;
    };
    /// Runs the program with `arguments`, after the words of `before`; its output is appended to `log`.
    std::function<Ran(const std::vector<std::string>& arguments, const std::vector<std::string>& before,
                      const std::filesystem::path& log)>
        run;
    std::function<void(const std::string& text)> warn;
    std::string version;
    std::filesystem::path texts;  ///< folder of prose.txt, verse.txt, code.txt
};

inline constexpr std::uint64_t kLargestPlan = 1 << 20;  ///< bytes of plan.json, and of the table of costs

class Runner {
public:
    Runner(const Paper& paper, ReplayOptions options, Host host, Progress& progress);
    /// Returns the report's path.
    std::filesystem::path run();

private:
    using Path = std::filesystem::path;
    using Strings = std::vector<std::string>;
    struct Speed {
        double step = 0, overhead = 0;  ///< seconds: the median of the later steps, and of the run besides its steps
    };

    // runner.cpp
    bool enter_folder();  ///< whether it has a plan
    double spent() const;
    void keep_time() const;
    void read_time();
    void plan_rest();
    void report_progress(const std::string& what);
    void note(const std::string& line) const;
    void warn(const std::string& text) const;
    void own(Strings arguments, const Strings& before = {});
    /// Runs a command with more words of the paper, on the plan's threads.
    void compute(Strings arguments, const Strings& words, const Trial& trial, const Path& output);
    void remove_calibration() const;
    /// False after an Error, which the report names behind `failed`.
    bool attempt(const std::string& failed, const std::function<void()>& work);
    std::int64_t workers_now(std::int64_t wanted) const;
    void do_trials();
    void work(const std::atomic<bool>& failed);
    bool is_done(const Trial& trial) const;
    void do_trial(const Trial& trial);
    void train(const training::JobFile& job, const std::string& name, const Path& run);
    void evaluate(const Trial& trial, const Stage& stage, const Path& run, const Path& output, bool skip);
    void analyse(const Trial& trial, const JsonView& analysis, const Path& checkpoint, const Path& output);
    void write_masked_text(const Trial& trial, const Path& checkpoint) const;

    // calibrate.cpp
    void make_plan();
    void write_texts() const;
    Speed time_training(const training::JobFile& job, const std::string& name);
    Speed calibrate(const Trial& trial, const Stage& stage);
    void measure(const Trial& trial, const Stage& stage, Pace& calibration);

    // data_sets.cpp
    Path data_sets_folder() const;
    void do_data_sets();
    void tune(const Trial& trial, const JsonView& view, const std::string& task, const Path& folder,
              const Path& output);

    // finish.cpp
    void time_models();
    void do_endings();
    void gather();
    void gather_trial(const Trial& trial);
    void gather_ending(const JsonView& ending);
    void merge(const JsonView& view) const;
    void draw();
    void draw_figure(const std::string& name, const std::string& caption, Strings arguments);
    Path write_report();

    /// True if a row of the paper's file selects the trial by models, stacks, seeds and extras.
    bool selected(const Trial& trial, const JsonView& view) const;
    std::vector<const Trial*> done_trials(const JsonView& view) const;  ///< those of them whose files exist
    std::vector<JsonView> analyses_of(const Trial& trial) const;
    Strings filled_words(Strings list, const Trial* trial = nullptr) const;
    Path run_folder(const Trial& trial, const Stage& stage) const {
        return options_.folder / "runs" / plan_.run_name(trial, stage);
    }
    Path scores_file(const Trial& trial, const Stage& stage, bool skip = false) const {
        return run_folder(trial, stage) / (skip ? "skip.evaluation.h5" : "scores.evaluation.h5");
    }
    static Path last_snapshot(const Path& run) { return run / "snapshots" / "last"; }
    Path last_model(const Trial& trial) const {
        return last_snapshot(run_folder(trial, *plan_.stages_of(trial).back()));
    }
    Path plan_file() const { return options_.folder / "plan.json"; }
    Path time_file() const { return options_.folder / "time.json"; }
    Path report_file() const { return options_.folder / "report.md"; }
    Path model_link(const Trial& trial) const { return options_.folder / "models" / trial.label(); }
    Path speed_file(const Trial& trial) const {
        return run_folder(trial, *plan_.stages_of(trial).back()) / "speed.evaluation.h5";
    }
    Path analysis_file(const Trial& trial, const JsonView& analysis) const;

    const Paper& paper_;
    ReplayOptions options_;
    Host host_;
    Progress& progress_;
    Plan plan_;
    Measured measured_;
    std::mutex mutex_;  ///< of what follows while runs go side by side
    Strings missing_;
    std::vector<ReportFigure> drawn_;
    std::vector<ReportTable> tables_;
    double largest_ = 0;  ///< bytes that one of the processes held at its peak
    double before_ = 0, start_ = 0;
    std::size_t next_ = 0;
    std::vector<double> pace_;  ///< of the trials that ended, in that order: seconds over the planned ones
    Strings left_out_;          ///< trials that there was no time for, earlier sessions included
    bool late_ = false;
};

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What the replay of every paper shares: steps that are runs of this program, done side by side as far as minutes and
// memory allow, found done on resume, told in a log that can be followed by hand, and figures.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/reproduce/outlook.h"
#include "core/reproduce/replay_plan.h"
#include "core/store/evaluation_file.h"
#include "core/training/job/job.h"

namespace headscope::app {

struct ReproduceOptions {
    std::filesystem::path folder;
    reproduce::Settings settings;
    std::vector<std::string> launch;  ///< words before the program for training: mpirun -n 2
    bool resume = false;
};

class Replay {
public:
    Replay(ReproduceOptions options, Progress& progress, const Cancellation& cancellation);
    virtual ~Replay() = default;
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;
    /// Returns the report's path.
    virtual std::filesystem::path run() = 0;

protected:
    /// What one worker does at a time: trains a model and measures it.
    struct Trial {
        std::string name;
        bool extra = false;  ///< of those that come with what is left of the time
        std::function<bool()> done;
        std::function<void()> work;
        double seconds = 0;  ///< that it takes by the plan; 0: as long as others
    };
    /// Of the plan: what the trials may take.
    struct Budget {
        double minutes = 0, planned_seconds = 0, end_seconds = 0;
        std::int64_t workers = 1;
        double run_bytes = 0;  ///< that one of the processes held at its peak
        bool extras_planned = false;
        std::string extras = "the ablation's runs";  ///< what extra trials are called together
    };
    struct Speed {
        double step = 0, overhead = 0;  ///< seconds: the median of the later steps, and of the run beside its steps
    };
    struct Drawn {
        std::string name, caption;
    };
    struct WantedFigure {
        std::string name, caption;
        std::vector<std::string> files, recipe;  ///< recipe: its name and options, as for export --figure
    };

    /// Makes the folder and what is in it, or refuses: a new one, or with --resume one that has a plan. Returns whether
    /// there is a plan.
    bool enter_folder(const std::vector<std::string>& folders);
    double spent() const;
    void keep_time() const;
    void tell(const std::string& what);
    void note(const std::string& line) const;
    /// Keeps the pace of the calibration that the plan was made of, and warns where the minutes decide no claims.
    void announce(const std::string& paper, reproduce::Pace pace);
    /// Runs this program; throws with its last line where it fails.
    void own(const std::vector<std::string>& arguments, const std::vector<std::string>& before = {});
    /// How many runs go side by side in the memory that is free now.
    std::int64_t workers_now(std::int64_t wanted) const;
    void do_trials(std::vector<Trial> trials);
    /// Trains, or goes on with a run that was begun; nothing where it has finished.
    void train(const training::JobFile& job, const std::filesystem::path& job_file, const std::filesystem::path& run);
    /// How long it takes to train the job in the folder calibration/NAME, which it makes fresh.
    Speed time_training(const training::JobFile& job, const std::string& name);
    static bool finished(const std::filesystem::path& run);
    /// As PDF, PNG and CSV; one that cannot be drawn is missing in the report, which says why.
    void figure(const std::string& name, const std::string& caption, const std::vector<std::string>& arguments);
    /// Draws those whose first file exists, side by side; `drawn_` is in their order.
    void draw_figures(const std::vector<WantedFigure>& figures, std::int64_t workers);
    /// Adds models and results of `one`.
    static void append(store::Evaluation& all, store::Evaluation one);
    /// Does all of `work`, side by side; none is begun after one has thrown.
    void side_by_side(const std::vector<std::function<void()>>& work, std::int64_t workers);
    std::filesystem::path plan_file() const { return options_.folder / "plan.json"; }
    static std::string machine();
    /// What a report says beside its numbers; `data`: the plan's.
    reproduce::ReportFrame report_frame(const std::vector<std::string>& data) const;
    /// "64,128", as --length reads it.
    static std::string joined(const std::vector<std::int64_t>& lengths);

    ReproduceOptions options_;
    Progress& progress_;
    const Cancellation& cancellation_;
    Budget budget_;
    std::vector<std::string> missing_;
    std::vector<Drawn> drawn_;
    std::mutex mutex_;    ///< of what follows, and of missing_, drawn_ and progress_ while runs go side by side
    double largest_ = 0;  ///< bytes that one of the processes held at its peak

private:
    double takes(const Trial& trial) const;
    void work(const std::vector<Trial>& trials, const std::atomic<bool>& failed);

    double before_ = 0;  ///< seconds of earlier sessions
    double start_ = 0;
    std::size_t next_ = 0;
    std::vector<double> pace_;           ///< of the trials that ended, in that order: seconds, over the planned ones
    std::vector<std::string> left_out_;  ///< trials that there was no time for
    int others_left_out_ = 0;            ///< likewise, of the extra ones
    bool late_ = false;
};

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/reproduce/measured.h"
#include "core/reproduce/plan.h"

namespace headscope::app {

struct ReproduceOptions {
    std::filesystem::path folder;
    reproduce::Settings settings;
    std::vector<std::string> launch;  ///< words before the program for training: mpirun -n 2
    bool resume = false;
};

/// Trains, evaluates, analyses, draws and reports: `headscope reproduce deconattn`. Every step is a run of this
/// program, so that each can be done again by hand; what is done is found done on resume. Folder: plan.json, text.txt,
/// jobs/, runs/, analyses/, figures/, evaluation.evaluation.h5 and .csv, log.txt, report.md.
class Reproduction {
public:
    Reproduction(ReproduceOptions options, Progress& progress, const Cancellation& cancellation);
    /// Returns the report's path.
    std::filesystem::path run();

private:
    struct Outcome {
        bool done = false;
        std::string problem;
    };
    double spent() const;
    void keep_time() const;
    void tell(const std::string& what);
    void do_trials();
    /// How many runs go side by side in the memory that is free now.
    std::int64_t workers_now(std::int64_t wanted) const;
    void note(const std::string& line) const;
    double next_takes() const;
    void work(const std::atomic<bool>& failed);
    void make_plan();
    struct Speed {
        double step = 0, overhead = 0;  ///< seconds
    };
    Speed calibrate(const reproduce::Size& size, const std::string& mixer);
    void write_text();
    Outcome do_trial(const reproduce::Trial& trial);
    void train(const reproduce::Trial& trial);
    void evaluate(const std::filesystem::path& run, const std::filesystem::path& output, bool skip);
    void analyse(const reproduce::Trial& trial);
    void analyse(const std::filesystem::path& model, const std::filesystem::path& output);
    bool is_done(const reproduce::Trial& trial) const;
    void gather();
    void draw();
    void draw_cost();
    void figure(const std::string& name, const std::string& caption, const std::vector<std::string>& arguments);
    void measure_cost();
    std::filesystem::path write_report();
    void own(const std::vector<std::string>& arguments, const std::vector<std::string>& before = {});

    std::filesystem::path run_folder(const reproduce::Trial& trial) const;
    std::filesystem::path model_link(const reproduce::Trial& trial) const;
    std::filesystem::path analysis_file(const reproduce::Trial& trial) const;
    bool analysed(const reproduce::Trial& trial) const;

    ReproduceOptions options_;
    Progress& progress_;
    const Cancellation& cancellation_;
    reproduce::Plan plan_;
    double before_ = 0;  ///< seconds of earlier sessions
    double start_ = 0;
    std::vector<std::string> missing_;
    struct Drawn {
        std::string name, caption;
    };
    std::vector<Drawn> drawn_;
    store::Evaluation evaluation_;
    std::mutex mutex_;  ///< of what follows, and of missing_ and progress_ while runs go side by side
    std::size_t next_ = 0;
    std::vector<double> trial_seconds_;  ///< of the trials that ended, in that order
    std::vector<std::string> left_out_;  ///< trials that there was no time for
    int others_left_out_ = 0;            ///< likewise, of the layouts beside uniform and even
    double largest_ = 0;                 ///< bytes that one of the processes held at its peak
    bool late_ = false;
};

}  // namespace headscope::app

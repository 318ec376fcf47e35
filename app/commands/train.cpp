// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/child.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/device.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "app/version.h"
#include "core/base/error.h"
#include "core/base/machine/process.h"
#include "core/base/machine/processors.h"
#include "core/base/process/threads.h"
#include "core/figures/options/figure_arguments.h"
#include "core/run/run_folder.h"
#include "core/training/job/job.h"
#include "core/training/trainer/coordinator.h"
#include "core/training/trainer/trainer.h"

namespace headscope::app {
namespace train_command {
namespace {

namespace fs = std::filesystem;
using training::JobFile;
using training::TrainRequest;

struct TrainOptions {
    std::string job, output, from, device;
    std::vector<std::string> set;
    bool resume = false, fresh_optimizer = false, json = false;
    int nice = 0;
};

std::string number(double value, const char* format = "%.4g") {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// Prints a run's events on standard error: a bar on a terminal, otherwise a line for each event that is worth one.
class Reporter {
public:
    /// `fork`: the run begins at a snapshot's step, from which its share is counted.
    Reporter(ConsoleProgress& progress, bool fork)
        : progress_(progress), terminal_(isatty(STDERR_FILENO) == 1), fork_(fork) {}

    void report(const training::Event& event) {
        std::visit([&](const auto& what) { report(what); }, event.what);
    }

private:
    /// As ConsoleProgress writes where there is no terminal.
    void line(const std::string& text) const {
        finish_progress_line();
        const double share =
            steps_ > begin_ ? static_cast<double>(last_.step - begin_) / static_cast<double>(steps_ - begin_) : 0;
        std::fprintf(stderr, "headscope: %3.0f %%  %s\n", 100 * share, text.c_str());
    }
    std::string place(std::int64_t step) const {
        return "step " + std::to_string(step) + (steps_ > 0 ? " of " + std::to_string(steps_) : "");
    }

    /// Empty for objectives without an accuracy.
    static std::string right(double accuracy) {
        return std::isnan(accuracy) ? std::string() : ", " + number(100 * accuracy, "%.1f") + " % right";
    }

    void report(const training::Started& started) {
        steps_ = started.steps;
        last_.step = started.step;
        if (fork_) begin_ = started.step;
        loss_ = training::loss_words(training::read_job(started.job, "job").data.objective).name;
        std::string mixers;
        for (const auto& mixer : started.mixers)
            if (mixers.find(mixer) == std::string::npos) mixers += (mixers.empty() ? "" : ", ") + mixer;
        line(std::to_string(started.parameters) + " parameters, " + std::to_string(started.mixers.size()) +
             " layers (" + mixers + "), " + std::to_string(started.threads) + " threads" +
             (started.step > 0 ? ", from step " + std::to_string(started.step) : ""));
    }
    void report(const training::Step& step) {
        last_ = step;
        if (!terminal_) return;
        progress_.advance(static_cast<double>(step.step - begin_), static_cast<double>(steps_ - begin_),
                          place(step.step) + ", " + loss_ + " " + number(step.loss) + right(step.accuracy) + ", " +
                              number(step.tokens_per_second, "%.0f") + " tokens/s");
    }
    void report(const training::Validation& validation) {
        line(place(validation.step) + "  validation " + number(validation.loss, "%.5f") + right(validation.accuracy) +
             (last_.loss > 0
                  ? "  " + loss_ + " " + number(last_.loss, "%.5f") + "  rate " + number(last_.learning_rate) + "  " +
                        number(last_.tokens_per_second, "%.0f") + " tokens/s"
                  : ""));
    }
    void report(const training::ProbeResult&) {}
    void report(const training::Snapshot& snapshot) {
        line(place(snapshot.step) + "  " + snapshot.name + (snapshot.best ? ", the best so far" : ""));
    }
    void report(const training::Control& control) {
        if (control.action == "plan") steps_ = std::atoll(control.value.c_str());
        line(place(control.step) + "  " + control.action + (control.value.empty() ? "" : " " + control.value) + ": " +
             escaped(control.outcome));
    }
    void report(const training::SampleText& sample) {
        line(place(sample.step) + "  " + escaped(sample.prompt) + " | " + escaped(sample.text, 400));
    }
    void report(const training::Log& log) { line(place(log.step) + "  " + escaped(log.text, 2000)); }
    void report(const training::StateChanged& changed) {
        if (changed.state == training::RunState::paused) line(place(changed.step) + "  paused");
    }
    void report(const training::Rewound& rewound) { line(escaped(rewound.reason)); }

    ConsoleProgress& progress_;
    bool terminal_;
    bool fork_;
    std::int64_t steps_ = 0, begin_ = 0;
    std::string loss_ = "loss";
    training::Step last_;
};

TrainRequest make_request(const TrainOptions& options) {
    TrainRequest request;
    request.run = options.output;
    request.from = options.from;
    request.keep_optimizer = !options.fresh_optimizer;
    request.program_version = kVersion;
    if (options.resume) {
        request.start = TrainRequest::Start::resume;
        request.job = options.job.empty() ? training::stored_job(options.output) : training::read_job_file(options.job);
    } else if (!options.from.empty()) {
        request.start = TrainRequest::Start::fork;
        request.job = options.job.empty() ? training::stored_job(options.from) : training::read_job_file(options.job);
    } else {
        request.job = training::read_job_file(options.job);
    }
    request.job = training::with_absolute_paths(request.job);
    for (const std::string& assignment : options.set) training::set_key(request.job, assignment);
    if (!options.device.empty()) request.job.training.device = options.device;
    return request;
}

void report(const TrainOptions& options, const training::TrainOutcome& outcome) {
    const std::string snapshot = outcome.step > 0 ? training::snapshot_name(outcome.step) : "";
    if (options.json) {
        const auto value = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); };
        print_json({{"run", options.output},
                    {"state", training::state_name(outcome.state)},
                    {"step", outcome.step},
                    {"loss", value(outcome.loss)},
                    {"validation", value(outcome.validation)},
                    {"snapshot", snapshot.empty() ? nlohmann::json() : nlohmann::json("snapshots/" + snapshot)}});
        return;
    }
    std::string text = escaped(options.output, 4096) + ": " + training::state_name(outcome.state) + " at step " +
                       std::to_string(outcome.step);
    if (std::isfinite(outcome.loss)) text += ", loss " + number(outcome.loss, "%.5f");
    if (std::isfinite(outcome.validation)) text += ", validation " + number(outcome.validation, "%.5f");
    print(text + "\n");
    if (outcome.state == training::RunState::stopped)
        print(escaped(figures::shell_command({"train", "-o", options.output, "--resume"}), 4096) + " goes on\n");
}

/// Processes of one machine share its processors.
int threads_for(const JobFile& job, const training::Processes* processes) {
    if (job.training.threads > 0 || processes == nullptr) return static_cast<int>(job.training.threads);
    return std::max(1, usable_processors() / processes->on_this_machine());
}

/// Runs `work` in each process. If it fails in some, all end, and the first of these reports its error.
void in_each(training::Processes* processes, const std::function<void()>& work) {
    if (processes == nullptr) return work();
    std::exception_ptr failure;
    try {
        work();
    } catch (...) {
        failure = std::current_exception();
    }
    const std::vector<double> failed = training::of_all(*processes, failure ? 1 : 0);
    const auto first = std::find(failed.begin(), failed.end(), 1.0);
    if (first == failed.end()) return;
    if (first - failed.begin() == processes->rank()) std::rethrow_exception(failure);
    throw ChildDone{1};
}

/// Runs a process that is not the first of several: it computes, and the first one reports.
void run_worker_process(training::Processes& processes, Progress& progress) {
    try {
        training::run_worker(processes, progress);
    } catch (const Stopped&) {
        throw ChildDone{1};
    } catch (...) {
        const Error error = current_error("process " + std::to_string(processes.rank()));
        std::fprintf(stderr, "headscope: %s\n", error.what());
        processes.abort();
    }
}

void run(const TrainOptions& options, Context& context) {
    const TrainRequest plain = make_request(options);
    if (options.nice > 0) make_nice(0, options.nice);  // before the first thread, which inherit it
    const auto processes = training::connect_processes();
    keep_freed_memory();  // before the first tensor
    MachineShare share;
    if (processes) share = {processes->rank_on_this_machine(), processes->on_this_machine()};
    in_each(processes.get(), [&] {
        configure_compute(threads_for(plain.job, processes.get()), "auto", plain.job.training.device,
                          options.device.empty() ? "training.device" : "--device", share);
    });
    ConsoleProgress progress;
    if (processes && processes->rank() > 0) return run_worker_process(*processes, progress);
    Reporter reporter(progress, plain.start == TrainRequest::Start::fork);
    TrainRequest request = plain;
    request.processes = processes.get();
    request.on_event = [&](const training::Event& event) { reporter.report(event); };
    const training::TrainOutcome outcome = training::train(request, progress, context.cancellation);
    finish_progress_line();
    report(options, outcome);
    if (outcome.cancelled) context.stopped_in_order = true;
}

}  // namespace
}  // namespace train_command

void add_train(CLI::App& app, Context& context) {
    using namespace train_command;
    auto* command = app.add_subcommand("train", "Run a training job, or continue one");
    auto options = std::make_shared<TrainOptions>();
    add_option(*command, "job", options->job, "JOB.toml; not needed with --resume and --from");
    add_option(*command, "-o,--output", options->output, "The run's folder: a new one, or with --resume its own")
        ->required();
    auto* resume = add_flag(*command, "--resume", options->resume, "Go on from the run's last whole snapshot");
    auto* from =
        add_option(*command, "--from", options->from, "Fork: begin from this snapshot's folder")->excludes(resume);
    add_flag(*command, "--fresh-optimizer", options->fresh_optimizer,
             "Of a fork: take the weights alone, and begin again at step 0")
        ->needs(from);
    add_option(*command, "--set", options->set, "Change a key of the job: training.steps=500; may repeat")
        ->expected(1)
        ->take_all();
    add_device_option(*command, options->device);
    add_option(*command, "--nice", options->nice, "A lower priority: 0 to 19")->check(in_range(0, 19));
    add_flag(*command, "--json", options->json, "One JSON document at the end");
    command->callback([&context, options, command] {
        check_options("train", given_options(*command),
                      {options->resume         ? "--resume"
                       : options->from.empty() ? "a new run"
                                               : "--from"});
        if (options->job.empty() && !options->resume && options->from.empty())
            throw CLI::ValidationError("train", "a JOB.toml, --resume or --from is expected");
        context.command = [&context, options] { run(*options, context); };
    });
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
// What fits into the minutes: how fast each mixer learns here, and the plan that follows.

#include <atomic>

#include "app/commands/reproduction.h"
#include "app/commands/reproduction_parts.h"
#include "core/base/error.h"
#include "core/base/in_threads.h"
#include "core/base/machine/memory_room.h"
#include "core/base/text.h"
#include "core/reproduce/paper.h"

namespace headscope::app {

namespace fs = std::filesystem;
using reproduce::Plan;
using reproduce::Trial;

namespace {

constexpr std::int64_t kCalibrationSteps = 20;
/// Figures of a whole report; one is drawn while calibrating.
constexpr double kFigures = 9;

}  // namespace

Reproduction::Speed Reproduction::calibrate(const reproduce::Size& size, const std::string& mixer) {
    Plan plan;
    plan.size = size;
    plan.data = options_.settings.data;
    plan.threads = options_.settings.threads;
    plan.steps = kCalibrationSteps;
    const Trial trial{"calibration-" + mixer, mixer, "uniform", 1, false};
    training::JobFile job = reproduce::job_of(plan, trial);
    job.evaluation.every = 0;
    return time_training(job, mixer);
}

void Reproduction::make_plan() {
    tell("calibrating");
    const auto& smallest = reproduce::sizes().front();
    calibrate(smallest, "standard");  // makes the token file
    const Plan usual;
    const double tokens = static_cast<double>(usual.batch * usual.sequence_length);
    const double a_step = calibrate(smallest, "standard").step;
    const std::int64_t wanted = options_.settings.workers;
    options_.settings.workers = workers_now(wanted);
    const reproduce::Size size = reproduce::choose_size(options_.settings, a_step / tokens);
    if (size.name != smallest.name) {  // alone first: it holds more
        calibrate(size, "standard");
        options_.settings.workers = workers_now(wanted);
    }
    // Side by side, as the runs will be: they share memory and caches.
    reproduce::Calibration calibration;
    calibration.run_overhead = 0;
    calibration.size = size.name;
    std::vector<std::string> mixers;
    for (const auto& mixer : reproduce::paper_mixers()) mixers.emplace_back(mixer.name);
    std::size_t next = 0;
    in_threads(options_.settings.workers, [&](const std::atomic<bool>& failed) {
        for (;;) {
            std::string mixer;
            {
                const std::lock_guard lock(mutex_);
                if (next == mixers.size() || failed) return;
                mixer = mixers[next++];
                tell("calibrating " + mixer);
            }
            const Speed speed = calibrate(size, mixer);
            const std::lock_guard lock(mutex_);
            calibration.step_seconds[mixer] = speed.step;
            calibration.run_overhead = std::max(calibration.run_overhead, speed.overhead);
        }
    });
    // What comes after training is done once here, so that its time is known too.
    plan_ = reproduce::make_plan(options_.settings, size, calibration, spent());
    const double begin = now();
    const fs::path run = options_.folder / "calibration" / "standard";
    evaluate(run, run / "scores.evaluation.h5", false);
    const double evaluation = now() - begin, analysing = now();
    write_text();
    analyse(run / "snapshots" / "last", run / "calibration.headscope.h5");
    const double analysis = now() - analysing, drawing = now();
    draw_cost();
    calibration.end = 10 + kFigures * (now() - drawing) / static_cast<double>(options_.settings.workers);
    std::error_code ignored;
    fs::remove_all(options_.folder / "calibration", ignored);
    // Half of the runs are hybrids, which are evaluated twice.
    calibration.run_overhead += 1.6 * evaluation + 1.1 * analysis;
    const double room = memory_room();
    options_.settings.workers = reproduce::side_by_side(options_.settings.workers, largest_, room);
    const double took = spent();
    plan_ = reproduce::make_plan(options_.settings, size, calibration, took);
    announce("deconattn",
             {size.name, 1, 1, took, calibration.end, calibration.step_seconds, {{"run", calibration.run_overhead}}});
    plan_.workers_wanted = wanted;
    plan_.run_bytes = largest_;
    plan_.room_bytes = room;
    if (plan_.workers < wanted)
        note(std::to_string(plan_.workers) + " of " + std::to_string(wanted) +
             " runs side by side: a process holds up to " + size_text(static_cast<std::uint64_t>(largest_)) + ", " +
             size_text(static_cast<std::uint64_t>(room)) + " are free");
    write_file(options_.folder / "plan.json", reproduce::to_json(plan_));
    keep_time();
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
// How fast each model learns on this machine, and the plan that follows.

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/machine/memory_room.h"
#include "core/base/process/in_threads.h"
#include "core/base/text/text.h"
#include "core/reproduce/files.h"
#include "core/reproduce/language.h"
#include "core/reproduce/outlook.h"
#include "core/reproduce/runner.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::reproduce {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMostPassages = 24'000;
constexpr std::size_t kMostText = std::size_t{32} << 20U;
constexpr double kSpeedSeconds = 4;  ///< of evaluate --task speed, of a small model

/// A token that texts do not have and every tokenizer trained here has: the byte 0.
std::int64_t mask_token(const fs::path& checkpoint) {
    const auto id = tokenizer::Tokenizer::from_folder(checkpoint)->id_of(tokenizer::byte_spelling(0));
    if (!id)
        throw Error(ErrorCode::internal, "calibration", "expected a token for every byte", "found none for the byte 0");
    return *id;
}

}  // namespace

void Runner::write_texts() const {
    Strings data = options_.settings.data;
    if (data.empty() && paper_.view().has("language")) {
        data = {(options_.folder / kLanguageFile).string()};
        write_whole_file(data.front(), language_text(paper_.view().at("language")));
    }
    if (contains(paper_.texts, "text")) write_whole_file(options_.folder / "text.txt", held_out_passage(data));
    if (!contains(paper_.texts, "passages")) return;
    const std::string text = whole_text(data, kMostText);
    const Passages passages = passages_of(text, 4, kMostPassages);
    write_whole_file(options_.folder / "passages" / "train.jsonl", passages.train);
    write_whole_file(options_.folder / "passages" / "test.jsonl", passages.test);
    // Lies in the last 4 % of the tokens, which no run trains on.
    write_whole_file(options_.folder / "held-out.txt",
                     last_words(text, static_cast<std::size_t>(0.03 * static_cast<double>(text.size()))));
}

/// Trains in calibration/NAME, which it makes fresh.
Runner::Speed Runner::time_training(const training::JobFile& job, const std::string& name) {
    const fs::path run = options_.folder / "calibration" / name;
    fs::create_directories(run.parent_path());
    std::error_code ignored;
    fs::remove_all(run, ignored);
    const double begin = now();
    train(job, "calibration-" + name, run);
    const double took = now() - begin;
    const std::vector<double> seconds = step_seconds(run);
    if (seconds.empty()) throw Error(ErrorCode::internal, "calibration", "expected steps in the journal", "found none");
    const double median = seconds[seconds.size() / 2];
    return {median, std::max(0.3, took - median * static_cast<double>(job.training.steps.value_or(0)))};
}

Runner::Speed Runner::calibrate(const Trial& trial, const Stage& stage) {
    return time_training(to_time(job_of(plan_, trial, stage, "calibration")), plan_.run_name(trial, stage));
}

/// Times a stage of a model, and what is measured of it, so that its time is known too.
void Runner::measure(const Trial& trial, const Stage& stage, Pace& calibration) {
    const JsonView how = paper_.view().at("calibration");
    const bool first = trial.model->name == how.at("model").string();
    if (stage.warm && !(first && &stage == &paper_.stages.front())) calibrate(trial, stage);
    const Speed speed = calibrate(trial, stage);
    const fs::path run = options_.folder / "calibration" / plan_.run_name(trial, stage);
    double measuring = 0;
    if (first || how.boolean_or("evaluate_each", false)) {
        const double begin = now();
        evaluate(trial, stage, run, run / "scores.evaluation.h5", false);
        const auto analyses = analyses_of(trial);
        if (first && how.boolean_or("analyse", true) && !analyses.empty())
            analyse(trial, analyses.front(), last_snapshot(run), run / "calibration.headscope.h5");
        measuring = how.number_or("evaluations", 1.3) * (now() - begin) + how.number_or("more", 0);
    }
    const std::lock_guard lock(mutex_);
    report_progress("calibrated " + plan_.run_name(trial, stage));
    calibration.step_seconds[paper_.timed_key(trial.model->name, stage)] = speed.step;
    double& overhead = calibration.overhead[paper_.overhead_key(stage)];
    overhead = std::max(overhead, speed.overhead + measuring);
}

void Runner::make_plan() {
    report_progress("calibrating");
    write_texts();
    const JsonView how = paper_.view().at("calibration");
    plan_ = unplanned(paper_, options_.settings);
    // A trial of each model in each stack whose stages are not timed in another one.
    std::vector<std::pair<Trial, std::vector<const Stage*>>> timed;
    std::set<std::string> known;
    for (const Trial& trial : trials_of(paper_, 1, options_.settings.minutes)) {
        std::vector<const Stage*> own;
        for (const Stage* stage : plan_.stages_of(trial))
            if (trial.model->as.empty() && stage->timed == stage->name &&
                known.insert(paper_.timed_key(trial.model->name, *stage)).second)
                own.push_back(stage);
        if (!own.empty()) timed.emplace_back(trial, std::move(own));
    }
    const auto trial_with = [&](const char* key) -> const Trial& {
        const std::string name = how.at(key).string();
        for (const auto& [trial, own] : timed)
            if (trial.model->name == name) return trial;
        how.at(key).refuse(ErrorCode::format, "expected a model that is timed");
    };
    const Stage& stage = paper_.stages.front();
    calibrate(trial_with("first"), stage);  // makes the token file
    const Trial& model = trial_with("model");
    const double a_step = calibrate(model, stage).step;
    const std::int64_t wanted = options_.settings.workers;
    options_.settings.workers = workers_now(wanted);
    Pace calibration;
    calibration.size =
        choose_size(paper_, options_.settings, a_step / static_cast<double>(paper_.batch * paper_.sequence_length));
    if (calibration.size != plan_.size) {  // alone first: it holds more
        plan_.size = calibration.size;
        calibrate(model, stage);
        options_.settings.workers = workers_now(wanted);
    }
    // Side by side, as the runs will be: they share memory and caches.
    std::vector<std::function<void()>> work;
    for (const auto& one : timed)
        work.emplace_back([&] {
            for (const Stage* each : one.second) measure(one.first, *each, calibration);
        });
    in_threads(workers_now(options_.settings.workers), work);
    const fs::path run = options_.folder / "calibration" / plan_.run_name(model, stage);
    const auto workers = static_cast<double>(options_.settings.workers);
    double end = how.at("end").number(0);
    if (how.has("figure")) {
        const double drawing = now();
        if (!fs::exists(run / "calibration.headscope.h5"))
            analyse(model, analyses_of(model).front(), last_snapshot(run), run / "calibration.headscope.h5");
        own({"export", (run / "calibration.headscope.h5").string(), "--figure", how.at("figure").string(), "-o",
             (run / "figure.pdf").string()});
        end += 1.3 * 3 * how.at("figures").number(0) * (now() - drawing) / workers;
    }
    if (how.has("per_length")) {
        const std::string lengths = *plan_.word("latency_lengths");
        end += how.at("per_length").number() * static_cast<double>(1 + std::count(lengths.begin(), lengths.end(), ','));
    }
    if (paper_.view().has("timing")) {
        const double timing = now();
        time_training(timing_job(plan_, *model.model), "timing");
        end += 1.3 * static_cast<double>(paper_.view().at("timing").at("models").size()) * (now() - timing) +
               kSpeedSeconds * static_cast<double>(paper_.models.size());
    }
    calibration.end = std::min(how.at("share").number() * 60 * options_.settings.minutes, end);
    const bool masked =
        std::any_of(paper_.models.begin(), paper_.models.end(), [](const Model& one) { return one.mask >= 0; });
    const std::int64_t mask = masked ? mask_token(last_snapshot(run)) : 0;
    remove_calibration();
    const double room = memory_room();
    options_.settings.workers = reproduce::side_by_side(options_.settings.workers, largest_, room);
    calibration.spent = spent();
    calibration.threads = options_.settings.threads;
    calibration.workers = options_.settings.workers;
    plan_ = reproduce::make_plan(paper_, options_.settings, calibration);
    keep_replay_pace(paper_.name, calibration);
    if (const std::string few = outlook(paper_, options_.settings, calibration).text(); !few.empty()) warn(few);
    plan_.mask_id = mask;
    plan_.workers_wanted = wanted;
    plan_.run_bytes = largest_;
    plan_.room_bytes = room;
    if (plan_.workers < wanted)
        note(std::to_string(plan_.workers) + " of " + std::to_string(wanted) +
             " runs side by side: a process holds up to " + size_text(static_cast<std::uint64_t>(largest_)) + ", " +
             size_text(static_cast<std::uint64_t>(room)) + " are free");
    write_whole_file(plan_file(), to_json(plan_));
    keep_time();
}

}  // namespace headscope::reproduce

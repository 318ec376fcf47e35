// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/lazy_replay.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "app/commands/loading.h"
#include "app/commands/replayed_text.h"
#include "app/commands/reproduction_parts.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/machine/memory_room.h"
#include "core/store/evaluation_file.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {

namespace fs = std::filesystem;
namespace lazy = reproduce::lazy;

namespace {

constexpr std::int64_t kTimedSteps = 12;
constexpr double kLazyFigures = 7;

/// A token that texts do not have, and every tokenizer that is trained here has: the byte 0.
std::int64_t mask_token(const fs::path& checkpoint) {
    const auto id = load_tokenizer(checkpoint)->id_of(tokenizer::byte_spelling(0));
    if (!id)
        throw Error(ErrorCode::internal, "calibration", "expected a token for every byte", "found none for the byte 0");
    return *id;
}

}  // namespace

fs::path LazyReplay::run_folder(const Model& model) const {
    return options_.folder / "runs" / model.name;
}

fs::path LazyReplay::analysis_file(const Model& model) const {
    return options_.folder / "analyses" / (std::string(model.label) + ".headscope.h5");
}

/// Leads to the last snapshot; its name is what files and figures show.
fs::path LazyReplay::model_link(const Model& model) const {
    return options_.folder / "models" / model.label;
}

fs::path LazyReplay::masked_text(const Model& model) const {
    return options_.folder / (std::string(model.name) + ".json");
}

fs::path LazyReplay::run() {
    if (enter_folder({"jobs", "runs", "models", "analyses", "figures"}))
        plan_ = lazy::plan_from_json(read_small_file(plan_file(), kLargestPlan, "plan"), plan_file().string());
    else
        make_plan();
    budget_ = {plan_.minutes, plan_.planned_seconds, plan_.end_seconds, plan_.workers, plan_.run_bytes, false, ""};
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < plan_.trials.size(); ++i) {
        const Model& model = lazy::model(plan_.trials[i]);
        const bool extra = static_cast<std::int64_t>(i) >= plan_.planned;
        if (extra) budget_.extras += (budget_.extras.empty() ? "" : ", ") + plan_.trials[i];
        trials.push_back({plan_.trials[i], extra, [this, &model] { return is_done(model); },
                          [this, &model] { do_trial(model); }, plan_.trial_seconds[i]});
    }
    do_trials(std::move(trials));
    draw();
    const fs::path report = write_report();
    keep_time();
    return report;
}

Replay::Speed LazyReplay::calibrate(const std::string& size, const Model& model) {
    Plan plan;
    plan.size = size;
    plan.data = options_.settings.data;
    plan.threads = options_.settings.threads;
    plan.steps = kTimedSteps;
    training::JobFile job = lazy::job_of(plan, model);
    job.evaluation.every = 0;
    job.probe.every = 0;
    return time_training(job, std::string(model.name));
}

void LazyReplay::make_plan() {
    tell("calibrating");
    calibrate("nano", lazy::model("transformer"));  // makes the token file
    const Plan usual;
    const double a_step = calibrate("nano", lazy::model("lazy")).step;
    const std::int64_t wanted = options_.settings.workers;
    options_.settings.workers = workers_now(wanted);
    const std::string size =
        lazy::choose_size(options_.settings, a_step / static_cast<double>(usual.batch * usual.sequence_length));
    lazy::Calibration calibration;
    // Side by side, as the runs will be: they share memory and caches.
    std::vector<std::function<void()>> work;
    for (const std::string& name : lazy::trials(options_.settings.minutes)) {
        const Model& model = lazy::model(name);
        if (!model.as.empty()) continue;
        work.emplace_back([this, &calibration, &model, &size] {
            const Speed speed = calibrate(size, model);
            const std::lock_guard lock(mutex_);
            tell("calibrated " + std::string(model.label));
            calibration.step_seconds[std::string(model.name)] = speed.step;
            calibration.run_overhead = std::max(calibration.run_overhead, speed.overhead);
        });
    }
    side_by_side(work, options_.settings.workers);
    // What comes after training is done once here, so that its time is known too.
    plan_ = lazy::make_plan(options_.settings, size, calibration, spent());
    const Model& model = lazy::model("lazy");
    const fs::path run = options_.folder / "calibration" / model.name, last = run / "snapshots" / "last",
                   analysis = run / "calibration.headscope.h5";
    write_file(options_.folder / "text.txt", held_out_passage(plan_.data));
    const double begin = now();
    evaluate(run, run / "scores.evaluation.h5");
    analyse(last, model, analysis);
    calibration.run_overhead += 1.3 * (now() - begin) + 3;
    const double drawing = now();
    own({"export", analysis.string(), "--figure", "bias", "-o", (run / "bias.pdf").string()});
    const double figures = 1.3 * 3 * kLazyFigures * (now() - drawing);
    calibration.end =
        std::min(0.3 * 60 * options_.settings.minutes, 15 + figures / static_cast<double>(options_.settings.workers));
    const std::int64_t mask = mask_token(last);
    std::error_code ignored;
    fs::remove_all(options_.folder / "calibration", ignored);
    options_.settings.workers = reproduce::side_by_side(options_.settings.workers, largest_, memory_room());
    const double took = spent();
    plan_ = lazy::make_plan(options_.settings, size, calibration, took);
    announce("lazy",
             {size, 1, 1, took, calibration.end, calibration.step_seconds, {{"run", calibration.run_overhead}}});
    plan_.mask_id = mask;
    plan_.run_bytes = largest_;
    write_file(plan_file(), lazy::to_json(plan_));
    keep_time();
}

bool LazyReplay::is_done(const Model& model) const {
    return fs::exists(scores_file(model)) && (model.baseline || fs::exists(analysis_file(model)));
}

void LazyReplay::do_trial(const Model& model) {
    train(lazy::job_of(plan_, model), options_.folder / "jobs" / (std::string(model.name) + ".toml"),
          run_folder(model));
    const fs::path link = model_link(model);
    if (!fs::is_symlink(link))
        fs::create_directory_symlink(fs::path("..") / "runs" / model.name / "snapshots" / "last", link);
    if (!fs::exists(scores_file(model))) evaluate(run_folder(model), scores_file(model));
    if (!model.baseline && !fs::exists(analysis_file(model))) analyse(link, model, analysis_file(model));
}

void LazyReplay::evaluate(const fs::path& run, const fs::path& output) {
    own({"evaluate", (run / "snapshots" / "last").string(), "--task", "perplexity", "--length", joined(plan_.lengths()),
         "--tokens", std::to_string(plan_.evaluation_tokens), "--beyond-positions", "--threads",
         std::to_string(plan_.threads), "-o", output.string()});
}

void LazyReplay::analyse(const fs::path& checkpoint, const Model& model, const fs::path& output) {
    std::vector<std::string> words{"analyze", checkpoint.string()};
    if (model.mask >= 0) {
        write_masked_text(model, checkpoint);
        words.insert(words.end(), {"--tokens", masked_text(model).string()});
    } else {
        words.insert(words.end(), {"--file", (options_.folder / "text.txt").string(), "--length",
                                   std::to_string(plan_.sequence_length), "--windows"});
    }
    words.insert(words.end(), {"--threads", std::to_string(plan_.threads), "-o", output.string()});
    own(words);
}

/// The same windows of the text as the other models read, each with the fixed token at its place.
void LazyReplay::write_masked_text(const Model& model, const fs::path& checkpoint) const {
    const std::string text = read_small_file(options_.folder / "text.txt", kLargestPlan, "text");
    const std::vector<std::int32_t> ids = load_tokenizer(checkpoint)->encode(text, false).ids;
    const auto length = static_cast<std::size_t>(plan_.sequence_length), mask = static_cast<std::size_t>(model.mask);
    nlohmann::json windows = nlohmann::json::array();
    for (std::size_t begin = 0; begin < ids.size(); begin += length) {
        const std::size_t end = std::min(ids.size(), begin + length);
        std::vector<std::int64_t> window(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                         ids.begin() + static_cast<std::ptrdiff_t>(end));
        if (window.size() <= mask) break;
        window[mask] = plan_.mask_id;
        windows.push_back(std::move(window));
    }
    write_file(masked_text(model), json_text(windows));
}

lazy::Measured LazyReplay::gather() const {
    lazy::Measured measured;
    for (const std::string& name : plan_.trials) {
        const Model& model = lazy::model(name);
        if (!is_done(model)) continue;
        const store::Evaluation scores = store::read_evaluation(scores_file(model));
        if (scores.models.empty()) continue;
        measured.parameters[name] = scores.models.front().parameters;
        for (const auto& result : scores.results) {
            if (result.metric == "token_perplexity") measured.perplexity[name][result.length] = result.value;
            if (result.metric == "loss" && result.length == plan_.sequence_length) measured.loss[name] = result.value;
        }
        if (!model.baseline) measured.attended[name] = lazy::read_attended(analysis_file(model));
    }
    return measured;
}

void LazyReplay::draw() {
    tell("drawing");
    store::Evaluation lengths;
    std::vector<std::string> runs, masses;
    for (const std::string& name : plan_.trials) {
        const Model& model = lazy::model(name);
        if (!is_done(model)) continue;
        if (!model.formula.empty() || name == "transformer") masses.push_back(analysis_file(model).string());
        // Of Table 2 and Mask@k the report's tables tell more than a dozen lines in one panel.
        if (model.paper.wikitext_340m > 0 || model.paper.wikitext_760m > 0) {
            runs.push_back(run_folder(model).string());
            store::Evaluation one = store::read_evaluation(scores_file(model));
            // Figures tell models apart by mixer, and several of these have the same.
            for (auto& evaluated : one.models) evaluated.name = evaluated.mixer = model.label;
            append(lengths, std::move(one));
        }
    }
    const fs::path lengths_file = options_.folder / "lengths.evaluation.h5";
    if (!lengths.models.empty()) store::write_evaluation(lengths_file, lengths);
    const Model& model = lazy::model("lazy");
    const std::string own = analysis_file(model).string();
    std::vector<WantedFigure> figures{
        {"context-perplexity",
         "Perplexity at 1, 2 and 4 times the training length (Fig. 6)",
         {lengths_file.string()},
         {"context-perplexity", "--metric", "token_perplexity"}},
        {"mass",
         "Where the weight of a row goes with Transformer++ and the formulations of Table 2, and the share of weights "
         "that are exactly 0",
         masses,
         {"mass", "--sequence", "all"}},
        {"bias", "Lazy Attention's learned biases by distance (Fig. 4, 8)", {own}, {"bias"}},
        {"offsets", "Lazy Attention's learned offsets by layer and head (Fig. 5, 10)", {own}, {"offsets"}},
        {"thumbnails", "Lazy Attention's weights: every head of every layer (Fig. 7)", {own}, {"thumbnails"}}};
    if (is_done(model))
        figures.push_back({"released",
                           "What Lazy Attention releases while it learns, by layer",
                           {run_folder(model).string()},
                           {"timeline", "--indicator", "sparsity"}});
    figures.push_back({"loss", "Loss of the models of Table 1", runs, {"loss"}});
    draw_figures(figures, plan_.workers);
}

fs::path LazyReplay::write_report() {
    tell("writing the report");
    lazy::ReportInput input;
    input.plan = plan_;
    input.measured = gather();
    if (input.measured.perplexity.empty())
        throw Error(ErrorCode::usage, "reproduce", "expected time for at least one model",
                    "found none trained" + (missing_.empty() ? "" : ": " + missing_.front()));
    static_cast<reproduce::ReportFrame&>(input) = report_frame(plan_.data);
    input.commands = {
        "headscope train jobs/lazy.toml -o again",
        "headscope evaluate again --task perplexity --length " + joined(plan_.lengths()) + " --beyond-positions",
        "headscope analyze again/snapshots/last --file text.txt --length " + std::to_string(plan_.sequence_length) +
            " --windows -o again.headscope.h5",
        "headscope export again.headscope.h5 --figure bias -o bias.pdf"};
    const fs::path report = options_.folder / "report.md";
    write_file(report, lazy::report_markdown(input));
    return report;
}

}  // namespace headscope::app

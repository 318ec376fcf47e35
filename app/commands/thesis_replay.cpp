// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/thesis_replay.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "app/commands/loading.h"
#include "app/commands/replayed_text.h"
#include "app/commands/reproduction_parts.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/machine/memory_room.h"
#include "core/reproduce/thesis/passages.h"
#include "core/store/evaluation_file.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {

namespace fs = std::filesystem;
namespace thesis = reproduce::thesis;

namespace {

constexpr std::int64_t kMostPassages = 6000;
constexpr std::size_t kMostText = std::size_t{32} << 20U;
constexpr double kThesisFigures = 9;
constexpr double kSpeedSeconds = 4;  ///< of evaluate --task speed, of a small model
constexpr std::int64_t kTranslated = 200;
/// Tokens of the text that is analysed: maps that a page has room for.
constexpr std::int64_t kAnalysedTokens = 40;

/// What a stage's scores file is asked for, and what that is in the report.
struct Asked {
    const char* task;
    const char* metric;
    thesis::Score score;
};
Asked asked_of(const thesis::Model& model, thesis::Stage stage) {
    switch (stage) {
        case thesis::Stage::pretrain:
            return {model.objective == "masked" ? "masked" : "shuffle_random", "accuracy", thesis::Score::spoilt};
        case thesis::Stage::classify:
            return {"classify", "accuracy", thesis::Score::passages};
        case thesis::Stage::decoder:
            return {"perplexity", "token_perplexity", thesis::Score::perplexity};
        default:
            return {"translation", "bleu", thesis::Score::bleu};
    }
}

}  // namespace

std::vector<thesis::Stage> ThesisReplay::stages(const Planned& trial) const {
    if (model_of(trial).objective.empty()) return {Stage::classify};
    return thesis::stages_of(trial.stack);
}

fs::path ThesisReplay::run_folder(const Planned& trial, Stage stage) const {
    return options_.folder / "runs" / thesis::run_name(trial, stage);
}

fs::path ThesisReplay::scores_file(const Planned& trial, Stage stage) const {
    return run_folder(trial, stage) / "scores.evaluation.h5";
}

fs::path ThesisReplay::analysis_file(const Planned& trial) const {
    return options_.folder / "analyses" / (std::string(model_of(trial).label) + ".headscope.h5");
}

/// Leads to the pre-trained snapshot; its name is what files and figures show.
fs::path ThesisReplay::model_link(const Planned& trial) const {
    return options_.folder / "models" / std::string(model_of(trial).label);
}

fs::path ThesisReplay::all_scores(Stack stack) const {
    return options_.folder / (thesis::stack_name(stack) + ".evaluation.h5");
}

/// Encoders that figures show.
bool ThesisReplay::analysed(const Planned& trial) const {
    static const std::set<std::string> shown{"standard", "mhe_mul", "mhe_add", "md5-add", "lsh-add"};
    return trial.stack == Stack::encoder && trial.seed == 1 && shown.contains(trial.model);
}

fs::path ThesisReplay::run() {
    if (enter_folder({"passages", "jobs", "runs", "models", "analyses", "figures"}))
        plan_ =
            thesis::plan_from_json(chapter_, read_small_file(plan_file(), kLargestPlan, "plan"), plan_file().string());
    else
        make_plan();
    budget_ = {plan_.minutes,   plan_.planned_seconds, plan_.end_seconds,        plan_.workers,
               plan_.run_bytes, plan_.extras_planned,  "the models with 1K rows"};
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < plan_.trials.size(); ++i) {
        const Planned& trial = plan_.trials[i];
        trials.push_back({trial.name, trial.extra, [this, &trial] { return is_done(trial); },
                          [this, &trial] { do_trial(trial); }, plan_.trial_seconds[i]});
    }
    do_trials(std::move(trials));
    time_models();
    gather();
    draw();
    const fs::path report = write_report();
    keep_time();
    return report;
}

ThesisReplay::Planned ThesisReplay::calibrated(const Model& model, Stage stage) {
    const Stack stack = stage == Stage::decoder       ? Stack::decoder
                        : stage == Stage::translation ? Stack::translation
                                                      : Stack::encoder;
    return {thesis::stack_name(stack) + "-" + std::string(model.name), std::string(model.name), stack};
}

Replay::Speed ThesisReplay::calibrate(const Plan& plan, const Model& model, Stage stage) {
    const Planned trial = calibrated(model, stage);
    return time_training(thesis::to_time(thesis::job_of(plan, trial, stage, "calibration")),
                         thesis::run_name(trial, stage));
}

void ThesisReplay::write_texts() const {
    const std::vector<std::string>& data = options_.settings.data;
    const std::string text = whole_text(data, kMostText);
    const thesis::Passages passages = thesis::passages_of(text, thesis::kClasses, kMostPassages);
    write_file(options_.folder / "passages" / "train.jsonl", passages.train);
    write_file(options_.folder / "passages" / "test.jsonl", passages.test);
    // Of the last 4 % of the tokens, which no run trains on.
    write_file(options_.folder / "held-out.txt",
               last_words(text, static_cast<std::size_t>(0.03 * static_cast<double>(text.size()))));
    write_file(options_.folder / "text.txt", held_out_passage(data));
}

void ThesisReplay::make_plan() {
    tell("calibrating");
    write_texts();
    thesis::Calibration calibration;
    plan_ = thesis::unplanned(chapter_, options_.settings);
    const Model& baseline = thesis::model(chapter_, thesis::kBaseline[static_cast<std::size_t>(chapter_)]);
    calibrate(plan_, baseline, Stage::pretrain);  // makes the token file
    const double a_step = calibrate(plan_, baseline, Stage::pretrain).step;
    const std::int64_t wanted = options_.settings.workers;
    options_.settings.workers = workers_now(wanted);
    const std::string size = thesis::choose_size(chapter_, options_.settings,
                                                 a_step / static_cast<double>(plan_.batch * plan_.sequence_length));
    plan_.size = size;
    // Side by side, as the runs will be: they share memory and caches. What is measured of a run is measured once here,
    // so that its time is known too.
    std::vector<std::function<void()>> work;
    const auto measure = [this, &calibration](const Model& model, Stage stage) {
        const bool known = chapter_ == thesis::Chapter::heads ? stage != Stage::decoder : stage != Stage::pretrain;
        if (!known) calibrate(plan_, model, stage);  // makes the token file
        const Speed speed = calibrate(plan_, model, stage);
        const fs::path run = options_.folder / "calibration" / thesis::run_name(calibrated(model, stage), stage);
        const double begin = now();
        evaluate(run, model, stage, run / "scores.evaluation.h5");
        const double evaluation = now() - begin;
        const std::lock_guard lock(mutex_);
        tell("calibrated " + run.filename().string());
        calibration.step_seconds[{std::string(model.name), stage}] = speed.step;
        double& overhead = calibration.overhead[stage];
        overhead = std::max(overhead, speed.overhead + 1.3 * evaluation);
    };
    for (const Model& model : thesis::models(chapter_)) {
        if (!model.as.empty()) continue;
        work.emplace_back([&measure, &model] {
            for (const Stage stage : thesis::stages_of(Stack::encoder)) measure(model, stage);
        });
        if (model.encoder_only) continue;
        for (const Stage stage : {Stage::decoder, Stage::translation})
            work.emplace_back([&measure, &model, stage] { measure(model, stage); });
    }
    side_by_side(work, options_.settings.workers);
    const double ending = now();
    const fs::path run = options_.folder / "calibration" /
                         thesis::run_name(calibrated(baseline, Stage::pretrain), Stage::pretrain),
                   analysis = run / "calibration.headscope.h5";
    analyse(run / "snapshots" / "last", analysis);
    own({"export", analysis.string(), "--figure", "thumbnails", "-o", (run / "thumbnails.pdf").string()});
    double end = 1.3 * 3 * kThesisFigures * (now() - ending) / static_cast<double>(options_.settings.workers);
    if (chapter_ == thesis::Chapter::hashes) {
        const double timing = now();
        time_training(thesis::timing_job(plan_, baseline), "timing");
        end += 1.3 * static_cast<double>(thesis::timed_models().size()) * (now() - timing);
        end += kSpeedSeconds * static_cast<double>(thesis::models(chapter_).size());
    }
    calibration.end = std::min(0.45 * 60 * options_.settings.minutes, 15 + end);
    std::error_code ignored;
    fs::remove_all(options_.folder / "calibration", ignored);
    options_.settings.workers = reproduce::side_by_side(options_.settings.workers, largest_, memory_room());
    const double took = spent();
    plan_ = thesis::make_plan(chapter_, options_.settings, size, calibration, took);
    reproduce::Pace pace{size, 1, 1, took, calibration.end, {}, {}};
    for (const auto& [key, seconds] : calibration.step_seconds)
        pace.step_seconds[key.first + "/" + thesis::stage_name(key.second)] = seconds;
    for (const auto& [stage, seconds] : calibration.overhead) pace.overhead[thesis::stage_name(stage)] = seconds;
    announce(thesis::chapter_name(chapter_), std::move(pace));
    plan_.run_bytes = largest_;
    write_file(plan_file(), thesis::to_json(plan_));
    keep_time();
}

bool ThesisReplay::is_done(const Planned& trial) const {
    const auto list = stages(trial);
    return std::all_of(list.begin(), list.end(), [&](Stage stage) { return fs::exists(scores_file(trial, stage)); }) &&
           (!analysed(trial) || fs::exists(analysis_file(trial)));
}

void ThesisReplay::do_trial(const Planned& trial) {
    for (const Stage stage : stages(trial)) {
        const fs::path run = run_folder(trial, stage);
        train(thesis::job_of(plan_, trial, stage), options_.folder / "jobs" / (run.filename().string() + ".toml"), run);
        if (!fs::exists(scores_file(trial, stage))) evaluate(run, model_of(trial), stage, scores_file(trial, stage));
    }
    if (!analysed(trial) || fs::exists(analysis_file(trial))) return;
    const fs::path link = model_link(trial);
    if (!fs::is_symlink(link))
        fs::create_directory_symlink(
            fs::path("..") / "runs" / run_folder(trial, Stage::pretrain).filename() / "snapshots" / "last", link);
    analyse(link, analysis_file(trial));
}

void ThesisReplay::evaluate(const fs::path& run, const Model& model, Stage stage, const fs::path& output) {
    std::vector<std::string> words{"evaluate", (run / "snapshots" / "last").string(), "--task",
                                   asked_of(model, stage).task};
    if (stage == Stage::classify)
        words.insert(words.end(), {"--data", "passages=" + (options_.folder / "passages" / "test.jsonl").string()});
    else if (stage == Stage::translation)
        words.insert(words.end(), {"--sequences", std::to_string(kTranslated)});
    else
        words.insert(words.end(), {"--data", (options_.folder / "held-out.txt").string(), "--tokens",
                                   std::to_string(plan_.evaluation_tokens)});
    words.insert(words.end(), {"--threads", std::to_string(plan_.threads), "-o", output.string()});
    own(words);
}

/// Tokens that a passage is for a model, as Table 2.3 has it: words are fewer than pieces, characters more.
std::int64_t ThesisReplay::passage_tokens(const fs::path& checkpoint) const {
    const auto tokenizer = load_tokenizer(checkpoint);
    std::istringstream lines(read_small_file(options_.folder / "passages" / "test.jsonl", kMostText, "passages"));
    std::int64_t tokens = 0, count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        const auto document = parse_json(line, "passages");
        tokens += std::ssize(tokenizer->encode(JsonView(document, "passages").at("text").string(), true).ids);
    }
    return count == 0 ? plan_.sequence_length : (tokens + count / 2) / count;
}

void ThesisReplay::analyse(const fs::path& checkpoint, const fs::path& output) {
    own({"analyze", checkpoint.string(), "--file", (options_.folder / "text.txt").string(), "--length",
         std::to_string(kAnalysedTokens), "--threads", std::to_string(plan_.threads), "-o", output.string()});
}

void ThesisReplay::time_models() {
    if (chapter_ != thesis::Chapter::hashes) return;
    tell("timing");
    const auto attempt = [this](const std::string& what, const std::function<void()>& work) {
        try {
            work();
        } catch (const Error& error) {
            missing_.push_back(what + " could not be timed: " + error.what() + ".");
        }
    };
    const fs::path file = options_.folder / "timing.json";
    if (fs::exists(file)) {
        const auto document = read_json_file(file, kLargestPlan, "times");
        const JsonView times(document, file.string());
        for (const std::string& name : thesis::timed_models())
            if (times.has(name)) measured_.training_ms[name] = times.at(name).number(0);
    } else {
        for (const std::string& name : thesis::timed_models())
            attempt(name, [&] {
                const training::JobFile job = thesis::timing_job(plan_, thesis::model(chapter_, name));
                const double step = time_training(job, "timing-" + name).step;
                measured_.training_ms[name] = 1000 * step / static_cast<double>(job.training.batch);
            });
        std::error_code ignored;
        fs::remove_all(options_.folder / "calibration", ignored);
        write_file(file, json_text(measured_.training_ms));
    }
    for (const Planned& trial : plan_.trials) {
        if (trial.seed != 1 || !is_done(trial) || fs::exists(speed_file(trial))) continue;
        attempt(trial.name, [&] {
            const fs::path model = run_folder(trial, Stage::classify) / "snapshots" / "last";
            own({"evaluate", model.string(), "--task", "speed", "--length",
                 std::to_string(std::min(passage_tokens(model), plan_.length(model_of(trial), Stage::classify))),
                 "--threads", std::to_string(plan_.threads), "-o", speed_file(trial).string()});
        });
    }
}

void ThesisReplay::gather() {
    for (const Planned& trial : plan_.trials) {
        if (!is_done(trial)) continue;
        // One model to what is drawn: before it was tuned it had another head.
        const std::string label(model_of(trial).label);
        store::Evaluation all;
        for (const Stage stage : stages(trial)) take_scores(trial, stage, all);
        if (all.models.empty()) continue;
        store::EvaluatedModel& model = all.models.front();
        model.name = model.job = label;
        model.training_length = plan_.sequence_length;
        measured_.attention[{trial.model, trial.stack}] = model.attention_parameters;
        if (trial.stack == Stack::encoder) {
            measured_.parameters[trial.model] = model.parameters;
            measured_.embedding[trial.model] = model.embedding_parameters;
        }
        if (fs::exists(speed_file(trial))) {
            store::Evaluation timed = store::read_evaluation(speed_file(trial));
            for (store::EvaluationResult& one : timed.results) {
                one.model = 0;
                one.length = plan_.sequence_length;
                if (one.metric == "forward_ms") measured_.forward_ms[trial.model] = one.value;
                all.results.push_back(one);
            }
        }
        append(evaluations_[trial.stack], std::move(all));
    }
    for (const auto& [stack, evaluation] : evaluations_) store::write_evaluation(all_scores(stack), evaluation);
}

/// Adds a stage's results to those of the trial's model, which is the last stage's.
void ThesisReplay::take_scores(const Planned& trial, Stage stage, store::Evaluation& all) {
    const store::Evaluation own = store::read_evaluation(scores_file(trial, stage));
    if (own.models.empty()) return;
    all.models = {own.models.front()};
    const Asked asked = asked_of(model_of(trial), stage);
    for (const store::EvaluationResult& one : own.results) {
        if (one.metric != asked.metric) continue;
        // Whoever reads characters has as much text in longer sequences.
        all.results.push_back(one);
        all.results.back().model = 0;
        all.results.back().length = plan_.sequence_length;
        thesis::SeedScores& scores = measured_.scores[{trial.model, asked.score}];
        scores.values.push_back(one.value);
        scores.error = std::fmax(scores.error, one.error);
    }
}

void ThesisReplay::draw() {
    tell("drawing");
    std::map<Stack, std::vector<std::string>> runs;
    for (const Planned& trial : plan_.trials)
        if (trial.seed == 1 && is_done(trial))
            runs[trial.stack].push_back(run_folder(trial, stages(trial).front()).string());
    const auto analysis = [this](const char* model) {
        for (const Planned& trial : plan_.trials)
            if (trial.model == model && analysed(trial)) return analysis_file(trial).string();
        return std::string();
    };
    std::vector<WantedFigure> figures;
    const bool heads = chapter_ == thesis::Chapter::heads;
    for (const auto& [stack, files] : runs) {
        const std::string name = thesis::stack_name(stack);
        const Model& baseline = thesis::model(chapter_, thesis::kBaseline[static_cast<std::size_t>(chapter_)]);
        std::vector<std::string> recipe{"retention", "--baseline", std::string(baseline.label)};
        if (heads)
            recipe.insert(recipe.end(), {"--smallest", std::string(thesis::model(chapter_, thesis::kSmallest).label)});
        figures.push_back({"retention-" + name,
                           "What each " + name + " keeps of " + std::string(baseline.label) +
                               "'s performance, by its parameters (" +
                               (!heads                    ? "Tables 2.2 and 2.3"
                                : stack == Stack::encoder ? "Table 3.1"
                                : stack == Stack::decoder ? "Table 3.2"
                                                          : "Table 3.3") +
                               ")",
                           {all_scores(stack).string()},
                           recipe});
        figures.push_back({"loss-" + name, "Loss while learning, seed 1: " + name, files, {"loss"}});
    }
    if (heads) {
        const std::vector<std::string> sizes{analysis("mhe_mul")};
        figures.insert(
            figures.end(),
            {{"cost-sublayer",
              "Parameters of one attention sublayer by heads of 64, without the output projection (Fig. 3.1, 3.3)",
              sizes,
              {"cost", "--of", "sublayer"}},
             {"cost-stacks",
              "Parameters of attention in stacks of layers (Fig. 3.4)",
              sizes,
              {"cost", "--of", "stacks"}},
             {"head-embeddings-mul", "MHE-MUL's head embeddings: norms and cosines", sizes, {"head-embeddings"}},
             {"head-embeddings-add",
              "MHE-ADD's head embeddings: norms and cosines",
              {analysis("mhe_add")},
              {"head-embeddings"}},
             {"attention-mul", "What the heads of the MHE-MUL encoder attend to", sizes, {"thumbnails"}},
             {"attention-mha",
              "The same of MHA, whose heads have maps of their own",
              {analysis("standard")},
              {"thumbnails"}}});
    } else {
        figures.push_back({"hash",
                           "How words of the text are hashed, and how alike their bits are, with MD5 and LSH (the "
                           "picture behind Fig. 2.1 to 2.5)",
                           {analysis("md5-add"), analysis("lsh-add")},
                           {"hash"}});
    }
    draw_figures(figures, plan_.workers);
}

fs::path ThesisReplay::write_report() {
    tell("writing the report");
    thesis::ReportInput input;
    static_cast<reproduce::ReportFrame&>(input) = report_frame(plan_.data);
    input.plan = plan_;
    input.measured = measured_;
    if (measured_.scores.empty())
        throw Error(ErrorCode::usage, "reproduce", "expected time for at least one model",
                    "found none trained" + (missing_.empty() ? "" : ": " + missing_.front()));
    const std::string some = chapter_ == thesis::Chapter::heads ? "encoder-mhe_mul" : "encoder-lsh-add";
    const std::string objective = chapter_ == thesis::Chapter::heads ? "masked" : "shuffle_random";
    input.commands = {
        "headscope train jobs/" + some + "-pretrain.toml -o again",
        "headscope evaluate again --task " + objective + " --data held-out.txt",
        "headscope evaluate runs/" + some + "-classify --task classify --data passages=passages/test.jsonl",
        "headscope export encoder.evaluation.h5 --figure retention --baseline " +
            std::string(chapter_ == thesis::Chapter::heads ? "MHA --smallest SHA" : "BERT-MLM") + " -o retention.csv"};
    const fs::path report = options_.folder / "report.md";
    write_file(report, thesis::report_markdown(input));
    return report;
}

}  // namespace headscope::app

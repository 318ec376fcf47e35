// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/thesis/plan.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace headscope::reproduce::thesis {
namespace {

constexpr std::int64_t kMostSteps = 1 << 24;
constexpr std::int64_t kSeeds = 3;
/// Twenty epochs of passages, as many as the thesis's of its tasks.
constexpr std::int64_t kMostTuned = 3000;

/// Of the steps of pre-training.
double share_of(Stage stage) {
    switch (stage) {
        case Stage::pretrain:
            return 1;
        case Stage::classify:
            return 0.4;
        default:
            return 0.7;
    }
}

double seconds_of(const Plan& plan, const Trial& trial, const Calibration& calibration) {
    const Model& one = model(plan.chapter, trial.model);
    double seconds = 0;
    for (const Stage stage : stages_of(trial.stack)) {
        if (stage == Stage::pretrain && one.objective.empty()) continue;
        seconds +=
            calibration.overhead.at(stage) +
            static_cast<double>(plan.steps(stage)) * calibration.step_seconds.at({std::string(one.timed_as()), stage});
    }
    return seconds;
}

/// Seconds until all that time is planned for are done.
double seconds_of_all(const Plan& plan, const Calibration& calibration) {
    std::vector<double> seconds;
    for (const Trial& trial : plan.trials)
        if (!trial.extra || plan.extras_planned) seconds.push_back(seconds_of(plan, trial, calibration));
    return until_done(seconds, plan.workers);
}

/// The most steps with which they are done in `seconds`.
void choose_steps(Plan& plan, const Calibration& calibration, double seconds) {
    std::int64_t fits = kFewestUpdates, beyond = kMostSteps;
    while (beyond - fits > 1) {
        plan.pretrain_steps = (fits + beyond) / 2;
        (seconds_of_all(plan, calibration) <= seconds ? fits : beyond) = plan.pretrain_steps;
    }
    plan.pretrain_steps = fits;
}

/// About as many rows as the presets of hashed tables have: the thesis has 50 000 of both.
std::string word_pieces(const Plan& plan) {
    return plan.size == "nano" ? "train:4096" : "train:8192";
}

void read_words(training::JobFile& job, const Plan& plan, const Model& model) {
    train_on_text(job, plan);
    if (plan.chapter == Chapter::heads) return;
    if (model.preset == "hashformer-bert") {
        job.data.tokenizer = word_pieces(plan);
    } else {  // words of the text, without a vocabulary
        job.data.tokenizer = data::DataSettings().tokenizer;
        job.tokenizer_given = false;
    }
}

}  // namespace

std::string chapter_name(Chapter chapter) {
    return chapter == Chapter::heads ? "thesis-mhe" : "thesis-hash";
}

std::string stack_name(Stack stack) {
    return stack == Stack::encoder ? "encoder" : stack == Stack::decoder ? "decoder" : "translation";
}

std::string stage_name(Stage stage) {
    return stage == Stage::pretrain   ? "pretrain"
           : stage == Stage::classify ? "classify"
           : stage == Stage::decoder  ? "decoder"
                                      : "translation";
}

std::vector<Stage> stages_of(Stack stack) {
    if (stack == Stack::encoder) return {Stage::pretrain, Stage::classify};
    return {stack == Stack::decoder ? Stage::decoder : Stage::translation};
}

const std::vector<Model>& models(Chapter chapter) {
    static const std::vector<Model> heads{
        {"standard", "MHA", "", "masked", "mhe_mul", false},  {"sha", "SHA", "", "masked", "mhe_mul", false},
        {"mhe_mul", "MHE-MUL", "", "masked", "", false},      {"mhe_add", "MHE-ADD", "", "masked", "mhe_mul", false},
        {"mqa", "MQA", "", "masked", "mhe_mul", false},       {"skv", "SKV", "", "masked", "mhe_mul", false},
        {"el_att", "EL-ATT", "", "masked", "mhe_mul", false}, {"fnet", "FNet", "", "masked", "mhe_mul"},
        {"linear", "Linear", "", "masked", "mhe_mul"}};
    constexpr const char* spoilt = "shuffle_random";
    static const std::vector<Model> hashes{
        {"bert-mlm", "BERT-MLM", "hashformer-bert", "masked"},
        {"bert-sr", "BERT-S+R", "hashformer-bert", spoilt},
        {"md5-pool", "HashFormer-MD-Pool", "hashformer-md5-pool", spoilt, "lsh-pool"},
        {"lsh-pool", "HashFormer-LSH-Pool", "hashformer-lsh-pool", spoilt},
        {"md5-add", "HashFormer-MD-Add", "hashformer-md5-add", spoilt, "lsh-pool"},
        {"lsh-add", "HashFormer-LSH-Add", "hashformer-lsh-add", spoilt, "lsh-pool"},
        {"md5-proj", "HashFormer-MD-Proj", "hashformer-md5-proj", spoilt, "lsh-pool"},
        {"lsh-proj", "HashFormer-LSH-Proj", "hashformer-lsh-proj", spoilt, "lsh-pool"},
        {"md5-emb", "HashFormer-MD-Emb", "hashformer-md5-emb", spoilt, "bert-sr"},
        {"lsh-emb", "HashFormer-LSH-Emb", "hashformer-lsh-emb", spoilt, "bert-sr"},
        {"canine", "CANINE-like", "canine-like", spoilt, "", true, false, 4},
        {"proformer", "ProFormer", "proformer", "", "lsh-pool"},
        {"md5-emb-1k", "HashFormer-MD-Emb (1K)", "hashformer-md5-emb-1k", spoilt, "bert-sr", true, true},
        {"lsh-emb-1k", "HashFormer-LSH-Emb (1K)", "hashformer-lsh-emb-1k", spoilt, "bert-sr", true, true}};
    return chapter == Chapter::heads ? heads : hashes;
}

const Model& model(Chapter chapter, std::string_view name) {
    for (const Model& one : models(chapter))
        if (one.name == name) return one;
    throw Error(ErrorCode::format, "plan.json: model", "expected one of the chapter's", "found " + std::string(name));
}

std::vector<Trial> trials_of(Chapter chapter, std::int64_t seeds) {
    std::vector<Trial> list;
    for (const bool extra : {false, true})
        for (std::int64_t seed = 1; seed <= seeds; ++seed)
            for (const Model& one : models(chapter))  // what falls off the end are models, not stacks
                for (const Stack stack : {Stack::encoder, Stack::decoder, Stack::translation}) {
                    if (one.extra != extra || (one.encoder_only && stack != Stack::encoder)) continue;
                    const std::string name(one.name);
                    list.push_back({stack_name(stack) + "-" + name + (seed > 1 ? "-seed" + std::to_string(seed) : ""),
                                    name, stack, seed, extra});
                }
    return list;
}

std::int64_t Plan::steps(Stage stage) const {
    const auto steps = static_cast<std::int64_t>(share_of(stage) * static_cast<double>(pretrain_steps));
    return std::max(kFewestUpdates, stage == Stage::classify ? std::min(steps, kMostTuned) : steps);
}

std::int64_t Plan::length(const Model& model, Stage stage) const {
    return (stage == Stage::decoder ? 2 : 1) * sequence_length * model.tokens_a_word;
}

std::int64_t Plan::sequences(const Model& model, Stage stage) const {
    // Who reads text in longer sequences reads fewer of them; passages are as many for all.
    if (stage == Stage::decoder) return batch / 2;
    return stage == Stage::pretrain ? std::max<std::int64_t>(1, batch / model.tokens_a_word) : batch;
}

std::int64_t Plan::tokens(Stage stage) const {
    return steps(stage) * batch * sequence_length;
}

Plan unplanned(Chapter chapter, const Settings& settings) {
    Plan plan;
    plan.chapter = chapter;
    begin_plan(plan, settings, "nano", 0);
    plan.evaluation_tokens = settings.minutes >= 10 ? 65536 : 16384;
    return plan;
}

Plan make_plan(Chapter chapter, const Settings& settings, const std::string& size, const Calibration& calibration,
               double spent) {
    Plan plan = unplanned(chapter, settings);
    plan.size = size;
    plan.end_seconds = calibration.end;
    const double left = std::max(1.0, kUsedTime * (60 * settings.minutes - spent) - calibration.end);
    std::vector<std::int64_t> counts{kSeeds, 1};
    if (settings.seeds > 0) counts = {settings.seeds};
    for (const std::int64_t seeds : counts) {
        plan.seeds = seeds;
        plan.trials = trials_of(chapter, seeds);
        for (const bool extras : {true, false}) {
            plan.extras_planned = extras;
            choose_steps(plan, calibration, left);
            if (static_cast<double>(plan.tokens(Stage::pretrain)) >= kTokensToLearn) break;
        }
        if (static_cast<double>(plan.tokens(Stage::pretrain)) >= kTokensToLearn) break;
    }
    for (const Trial& trial : plan.trials) plan.trial_seconds.push_back(seconds_of(plan, trial, calibration));
    plan.planned_seconds = spent + calibration.end + seconds_of_all(plan, calibration);
    return plan;
}

std::string choose_size(Chapter chapter, const Settings& settings, double nano_seconds_of_token) {
    double runs = 0;  // as long as a whole pre-training
    for (const Trial& trial : trials_of(chapter, 1))
        for (const Stage stage : stages_of(trial.stack)) runs += trial.extra ? 0 : share_of(stage);
    return size_for(settings, runs, nano_seconds_of_token);
}

std::string run_name(const Trial& trial, Stage stage) {
    return trial.name + (trial.stack == Stack::encoder ? "-" + stage_name(stage) : "");
}

training::JobFile job_of(const Plan& plan, const Trial& trial, Stage stage, const std::string& runs) {
    const Model& model = thesis::model(plan.chapter, trial.model);
    training::JobFile job = plan_job(plan, plan.steps(stage));
    job.name = std::string(model.label) + (trial.seed > 1 ? " seed " + std::to_string(trial.seed) : "");
    job.seed = trial.seed;
    job.data.sequence_length = job.probe.length = plan.length(model, stage);
    job.training.batch = plan.sequences(model, stage);
    const bool tuned = stage == Stage::classify && !model.objective.empty();
    if (tuned) {
        job.model.preset.clear();
        job.model.from = "../" + runs + "/" + run_name(trial, Stage::pretrain) + "/snapshots/last";
    } else {
        job.model.preset =
            plan.size + "-" + (model.preset.empty() ? "mhe-" + stack_name(trial.stack) : std::string(model.preset));
        if (plan.chapter == Chapter::heads) job.model.mixer = model.name;
        job.model.config = {{"max_position_embeddings", job.data.sequence_length}};
    }
    // Norms behind each part want smaller steps than norms before them.
    job.optimizer.learning_rate = stage == Stage::decoder ? 3e-3 : stage == Stage::classify ? 5e-4 : 1e-3;
    job.schedule.minimum_rate = job.optimizer.learning_rate / 10;
    switch (stage) {
        case Stage::pretrain:
            read_words(job, plan, model);
            job.data.objective.kind = model.objective;
            break;
        case Stage::classify:
            job.data.text = {"../passages/train.jsonl"};
            job.data.validation_files = {"../passages/test.jsonl"};
            job.data.objective.kind = "classify";
            job.data.objective.classes = kClasses;
            job.data.tokenizer = training::standard_tokenizer(job);  // what the encoder was trained with
            break;
        case Stage::decoder:
            read_words(job, plan, model);
            break;
        case Stage::translation:
            job.data.generator = data::GeneratorSettings{"translation", {}};
            job.data.objective.kind = "translation";
            break;
    }
    return job;
}

std::vector<std::string> timed_models() {
    return {"bert-mlm", "bert-sr", "md5-emb", "md5-pool", "md5-add", "md5-proj"};
}

training::JobFile to_time(training::JobFile job) {
    job.training.steps = 12;
    job.schedule.warmup_steps = 1;
    job.evaluation.every = 0;
    return job;
}

training::JobFile timing_job(const Plan& plan, const Model& model) {
    constexpr std::int64_t length = 512, sequences = 4;  // the thesis's length
    training::JobFile job = to_time(job_of(plan, {std::string(model.name), std::string(model.name)}, Stage::pretrain));
    job.data.sequence_length = job.probe.length = length;
    job.training.batch = sequences;
    job.model.config["max_position_embeddings"] = length;
    if (model.preset == "hashformer-bert") job.model.config["vocab_size"] = kLargeVocabulary;
    if (model.name == "md5-emb")
        job.model.config["embedding"] = {{"kind", "emb"}, {"hash", "md5"}, {"rows", kLargeVocabulary - 5}};
    return job;
}

std::string to_json(const Plan& plan) {
    nlohmann::json trials = nlohmann::json::array();
    for (const Trial& trial : plan.trials) trials.push_back(trial.name);
    nlohmann::json json = plan_json(plan, chapter_name(plan.chapter));
    json.update({{"seeds", plan.seeds},
                 {"pretrain_steps", plan.pretrain_steps},
                 {"evaluation_tokens", plan.evaluation_tokens},
                 {"trials", trials},
                 {"trial_seconds", plan.trial_seconds},
                 {"extras_planned", plan.extras_planned}});
    return json_text(json);
}

Plan plan_from_json(Chapter chapter, const std::string& text, const std::string& where) {
    const nlohmann::json document = parse_json(text, where);
    const JsonView view(document, where);
    Plan plan;
    plan.chapter = chapter;
    read_plan(plan, view, chapter_name(chapter), 16);
    plan.seeds = view.at("seeds").integer({1, 1000});
    plan.pretrain_steps = view.at("pretrain_steps").integer({1, 1 << 30});
    plan.evaluation_tokens = view.at("evaluation_tokens").integer({1, 1 << 30});
    plan.trials = trials_of(chapter, plan.seeds);
    const std::vector<std::string> names = view.at("trials").strings();
    if (!std::equal(names.begin(), names.end(), plan.trials.begin(), plan.trials.end(),
                    [](const std::string& name, const Trial& trial) { return name == trial.name; }))
        view.at("trials").refuse(ErrorCode::format, "expected the chapter's models with so many seeds");
    plan.trial_seconds = view.at("trial_seconds").numbers();
    if (plan.trial_seconds.size() != plan.trials.size())
        view.at("trial_seconds").refuse(ErrorCode::format, "expected as many numbers as trials");
    plan.extras_planned = view.at("extras_planned").boolean();
    return plan;
}

}  // namespace headscope::reproduce::thesis

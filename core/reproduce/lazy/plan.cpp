// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/lazy/plan.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"

namespace headscope::reproduce::lazy {
namespace {

constexpr std::int64_t kMostSteps = 1 << 24;
constexpr std::int64_t kAlways = 10;  ///< the trials before Mask@k: both sides of nearly every claim
constexpr double kBaselineMinutes = 15;

double seconds_of(const Model& model, const Calibration& calibration, std::int64_t steps) {
    return calibration.run_overhead +
           static_cast<double>(steps) * calibration.step_seconds.at(std::string(model.timed_as()));
}

/// Seconds until all of the first `count` trials are done.
double seconds_of_first(const Plan& plan, const Calibration& calibration, std::int64_t count, std::int64_t steps) {
    std::vector<double> seconds;
    for (std::int64_t i = 0; i < count; ++i)
        seconds.push_back(seconds_of(model(plan.trials[static_cast<std::size_t>(i)]), calibration, steps));
    return until_done(seconds, plan.workers);
}

/// The most steps with which they are done in `seconds`.
std::int64_t most_steps(const Plan& plan, const Calibration& calibration, std::int64_t count, double seconds) {
    std::int64_t fits = kFewestUpdates, beyond = kMostSteps;
    while (beyond - fits > 1) {
        const std::int64_t middle = (fits + beyond) / 2;
        (seconds_of_first(plan, calibration, count, middle) <= seconds ? fits : beyond) = middle;
    }
    return fits;
}

}  // namespace

const std::vector<Model>& models() {
    constexpr double kNone = kNotPrinted;
    static const std::vector<Model> all{
        {"lazy", "Lazy", "relu(softmax + tau / i), tau from -1", "lazy", "", "", "", {25.32, 24.08, 2.64, 40.24, 0.18}},
        {"transformer", "Transformer++", "", "transformer", "", "", "", {25.76, 25.21, kNone, kNone, kNone}},
        {"no-bias",
         "Lazy, no bias",
         "",
         "lazy",
         "",
         R"({"lazy": {"distance_bias": false}})",
         "lazy",
         {25.58, kNone, kNone, kNone, kNone}},
        {"softmax",
         "Lazy, no elastic",
         "softmax",
         "lazy",
         "",
         R"({"lazy": {"normaliser": "softmax"}})",
         "lazy",
         {24.59, kNone, 2.62, 94.53, 5.46}},
        {"constant",
         "Lazy, constant offset",
         "relu(softmax + tau), tau from 0",
         "lazy",
         "",
         R"({"lazy": {"offset": "constant", "offset_init": 0.0}})",
         "lazy",
         {kNone, kNone, 2.75, 15.13, 1.66}},
        {"from-zero",
         "Lazy, offset from 0",
         "relu(softmax + tau / i), tau from 0",
         "lazy",
         "",
         R"({"lazy": {"offset_init": 0.0}})",
         "lazy",
         {kNone, kNone, 2.65, 37.30, 4.15}},
        {"fixed",
         "Lazy, fixed offset",
         "relu(softmax - 1 / i)",
         "lazy",
         "",
         R"({"lazy": {"offset": "fixed"}})",
         "lazy",
         {kNone, kNone, 2.67, 43.16, 0.54}},
        {"sparsemax",
         "Lazy, sparsemax",
         "sparsemax",
         "lazy",
         "",
         R"({"lazy": {"normaliser": "sparsemax"}})",
         "",
         {kNone, kNone, 2.65, 96.87, 3.03}},
        {"entmax", "Lazy, entmax", "entmax", "lazy", "", R"({"lazy": {"normaliser": "entmax"}})", "", {}},
        {"sigmoid", "Sigmoid attention", "", "transformer", "sigmoid", "", "", {26.65, kNone, kNone, kNone, kNone}},
        {"mask-2", "Transformer++, Mask@2", "", "transformer", "", "", "transformer", {}, 2},
        {"mask-16", "Transformer++, Mask@16", "", "transformer", "", "", "transformer", {}, 16},
        {"retnet",
         "RetNet",
         "",
         "transformer",
         "retnet",
         R"({"retnet": {"expand_v": 1.0}})",
         "",
         {kNone, 26.08, kNone, kNone, kNone},
         -1,
         true},
        {"gdn", "Gated DeltaNet", "", "gdn", "", "", "", {24.90, 21.18, kNone, kNone, kNone}, -1, true},
        {"ttt", "TTT", "", "transformer", "ttt_linear", "", "", {kNone, 24.17, kNone, kNone, kNone}, -1, true},
        {"titans", "Titans", "", "transformer", "titans", "", "", {25.07, 20.04, kNone, kNone, kNone}, -1, true},
    };
    return all;
}

const Model& model(std::string_view name) {
    for (const Model& one : models())
        if (one.name == name) return one;
    throw Error(ErrorCode::format, "plan.json: model", "expected one of the paper's", "found " + std::string(name));
}

std::vector<std::string> table_two() {
    return {"softmax", "sparsemax", "entmax", "constant", "from-zero", "lazy", "fixed"};
}

std::vector<std::int64_t> Plan::lengths() const {
    return {sequence_length, 2 * sequence_length, 4 * sequence_length};
}

std::vector<std::string> trials(double minutes) {
    std::vector<std::string> names;
    for (const Model& one : models())
        if (!one.baseline || minutes >= kBaselineMinutes) names.emplace_back(one.name);
    return names;
}

Plan make_plan(const Settings& settings, const std::string& size, const Calibration& calibration, double spent) {
    Plan plan;
    begin_plan(plan, settings, size, calibration.end);
    plan.trials = trials(settings.minutes);
    const double left = std::max(1.0, kUsedTime * (60 * settings.minutes - spent) - calibration.end);
    for (plan.planned = std::ssize(plan.trials);; --plan.planned) {
        plan.steps = most_steps(plan, calibration, plan.planned, left);
        if (plan.planned == kAlways || static_cast<double>(plan.tokens()) >= kTokensToLearn) break;
    }
    for (const std::string& name : plan.trials)
        plan.trial_seconds.push_back(seconds_of(model(name), calibration, plan.steps));
    plan.planned_seconds = spent + calibration.end + seconds_of_first(plan, calibration, plan.planned, plan.steps);
    return plan;
}

std::string choose_size(const Settings& settings, double nano_seconds_of_token) {
    return size_for(settings, 12, nano_seconds_of_token);  // the ten runs and Mask@k
}

training::JobFile job_of(const Plan& plan, const Model& model) {
    training::JobFile job = plan_job(plan, plan.steps);
    job.name = model.label;
    job.model.preset = plan.size + "-" + std::string(model.preset);
    job.model.mixer = model.mixer;
    if (!model.options.empty()) job.model.mixers = nlohmann::json::parse(model.options);
    job.model.config = {
        {"max_position_embeddings", plan.sequence_length}, {"initializer_range", 0.05}, {"tie_word_embeddings", true}};
    train_on_text(job, plan);
    if (model.mask >= 0) job.data.fixed_token = data::FixedToken{model.mask, plan.mask_id};
    job.optimizer.weight_decay = 0.01;  // as the paper's
    // What is released while it is learned.
    if (model.name == "lazy") job.probe.every = std::max<std::int64_t>(1, plan.steps / 10);
    return job;
}

std::string to_json(const Plan& plan) {
    nlohmann::json json = plan_json(plan, "lazy");
    json.update({{"steps", plan.steps},
                 {"evaluation_tokens", plan.evaluation_tokens},
                 {"mask_id", plan.mask_id},
                 {"trials", plan.trials},
                 {"trial_seconds", plan.trial_seconds},
                 {"planned", plan.planned}});
    return json_text(json);
}

Plan plan_from_json(const std::string& text, const std::string& where) {
    const nlohmann::json document = parse_json(text, where);
    const JsonView view(document, where);
    Plan plan;
    read_plan(plan, view, "lazy", 32);
    plan.steps = view.at("steps").integer({1, 1 << 30});
    plan.evaluation_tokens = view.at("evaluation_tokens").integer({1, 1 << 30});
    plan.mask_id = view.at("mask_id").integer({0, 1 << 30});
    plan.trials = view.at("trials").strings();
    for (const std::string& name : plan.trials) model(name);  // refuses others
    for (std::size_t i = 0; i < plan.trials.size(); ++i)
        if (std::find(plan.trials.begin(), plan.trials.begin() + static_cast<std::ptrdiff_t>(i), plan.trials[i]) !=
            plan.trials.begin() + static_cast<std::ptrdiff_t>(i))
            view.at("trials").at(i).refuse(ErrorCode::format, "expected each model once");
    plan.trial_seconds = view.at("trial_seconds").numbers();
    if (plan.trial_seconds.size() != plan.trials.size())
        view.at("trial_seconds").refuse(ErrorCode::format, "expected as many numbers as trials");
    plan.planned = view.at("planned").integer({0, std::ssize(plan.trials)});
    return plan;
}

}  // namespace headscope::reproduce::lazy

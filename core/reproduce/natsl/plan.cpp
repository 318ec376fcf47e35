// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/natsl/plan.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"

namespace headscope::reproduce::natsl {
namespace {

constexpr double kTextShare = 0.55;  ///< of the training

const char* task_name(Task task) {
    return task == Task::text ? "text" : "recall";
}

}  // namespace

const std::vector<Model>& models() {
    static const std::vector<Model> all{
        {"natsl-hybrid", "NAtS-L Hybrid", 793, 18.52, 45.07, {0.49, 0.32, 0.21}},
        {"natsl", "NAtS-L", 794, 19.17, 39.75, {0.39, 0.13, 0.05}},
        {"gdn", "GDN", 793, 19.54, 31.22, {0.25, 0.14, 0.04}},
        {"gdn-hybrid", "GDN Hybrid", 802, 18.83, 37.30, {0.47, 0.02, 0.00}},
        {"mamba2", "Mamba2", 801, 19.28, 29.94, {0.18, 0.09, 0.04}},
        {"transformer", "Transformer", 778, 19.27, 33.66, {0.45, 0.00, 0.00}},
    };
    return all;
}

const Model& model(std::string_view name) {
    for (const Model& one : models())
        if (one.name == name) return one;
    throw Error(ErrorCode::format, "plan.json: model", "expected one of the paper's six", "found " + std::string(name));
}

const std::vector<Ablation>& ablations() {
    static const std::vector<Ablation> all{
        {"softmax-inside", "Attn Out", "inside_chunk", "\"softmax\"", 30.87},
        {"linear-inside", "GDN Out", "inside_chunk", "\"linear\"", 26.98},
        {"no-decay", "w/o LAttn Decay", "decay_in_softmax_chunks", "false", 32.24},
        {"one-norm", "w/o Attn Norm", "norm", "\"sum\"", 29.59},
        {"no-weights", "w/o Attn Weights", "weights", "\"none\"", 32.34},
        {"weights-of-input", "Weights From X", "weights", "\"input\"", 27.64},
    };
    return all;
}

std::string Trial::label() const {
    std::string label(natsl::model(model).label);
    for (const Ablation& one : ablations())
        if (one.name == ablation) label += ", " + std::string(one.label);
    return label;
}

std::vector<std::int64_t> Plan::recall_lengths() const {
    return {sequence_length, 2 * sequence_length, 4 * sequence_length};
}

std::vector<std::int64_t> Plan::latency_lengths() const {
    // A length takes its 20 seconds on a busy machine.
    const std::int64_t last = minutes >= 20 ? 64 : 16, factor = minutes >= 10 ? 2 : 4;
    std::vector<std::int64_t> lengths;
    for (std::int64_t times = 1; times <= last; times *= factor) lengths.push_back(times * sequence_length);
    return lengths;
}

std::vector<Trial> trials() {
    std::vector<Trial> list;
    for (const Task task : {Task::text, Task::recall}) {
        for (const Model& one : models()) {
            const std::string name(one.name);
            list.push_back({name + "-" + task_name(task), name, "", task});
        }
    }
    for (const Ablation& one : ablations()) {
        const std::string ablation(one.name);
        list.push_back({"natsl-hybrid-" + ablation + "-recall", "natsl-hybrid", ablation, Task::recall});
    }
    return list;
}

Plan make_plan(const Settings& settings, const std::string& size, const Calibration& calibration, double spent) {
    Plan plan;
    begin_plan(plan, settings, size, calibration.end);
    plan.trials = trials();
    const auto workers = static_cast<double>(settings.workers);
    const double left = std::max(1.0, kUsedTime * (60 * settings.minutes - spent) - calibration.end);
    for (const bool with_ablations : {true, false}) {
        plan.ablations_planned = with_ablations;
        double text = 0, recall = 0;  // seconds of a step of all runs
        std::int64_t runs = 0;
        for (const Trial& trial : plan.trials) {
            if (!trial.ablation.empty() && !with_ablations) continue;
            (trial.task == Task::text ? text : recall) += calibration.step_seconds.at(trial.model);
            ++runs;
        }
        // In the last round some workers have nothing to do.
        const double rounds = std::ceil(static_cast<double>(runs) / workers);
        const double idle = rounds * workers / static_cast<double>(runs);
        const double training = std::max(1.0, left - calibration.run_overhead * rounds) * workers / idle;
        const auto steps = [&](double share, double seconds) {
            return std::max(kFewestUpdates, static_cast<std::int64_t>(share * training / seconds));
        };
        plan.text_steps = steps(kTextShare, text);
        plan.recall_steps = steps(1 - kTextShare, recall);
        plan.planned_seconds =
            spent + calibration.end + calibration.run_overhead * rounds +
            (static_cast<double>(plan.text_steps) * text + static_cast<double>(plan.recall_steps) * recall) * idle /
                workers;
        if (static_cast<double>(plan.tokens(Task::recall)) >= kTokensToLearn) break;
    }
    return plan;
}

std::string choose_size(const Settings& settings, double nano_seconds_of_token) {
    return size_for(settings, 12, nano_seconds_of_token);
}

training::JobFile job_of(const Plan& plan, const Trial& trial) {
    training::JobFile job = plan_job(plan, plan.steps(trial.task));
    job.name = trial.label();
    job.model.preset = plan.size + "-" + trial.model;
    job.model.config = {{"max_position_embeddings", plan.sequence_length}, {"initializer_range", 0.05}};
    for (const Ablation& one : ablations())
        if (one.name == trial.ablation)
            job.model.mixers["natsl"][std::string(one.key)] = nlohmann::json::parse(one.value);
    if (trial.task == Task::recall) {
        job.data.generator = data::GeneratorSettings{"needle", {{"needles", 4}}};
        job.data.validation = 0;
    } else {
        train_on_text(job, plan);
    }
    // Types of tokens while they are learned.
    if (trial.model.starts_with("natsl") && trial.task == Task::text)
        job.probe.every = std::max<std::int64_t>(1, plan.text_steps / 10);
    return job;
}

std::string to_json(const Plan& plan) {
    nlohmann::json list = nlohmann::json::array();
    for (const Trial& trial : plan.trials)
        list.push_back({{"name", trial.name},
                        {"model", trial.model},
                        {"ablation", trial.ablation},
                        {"task", task_name(trial.task)}});
    nlohmann::json json = plan_json(plan, "natsl");
    json.update({{"text_steps", plan.text_steps},
                 {"recall_steps", plan.recall_steps},
                 {"ablations_planned", plan.ablations_planned},
                 {"trials", list}});
    return json_text(json);
}

Plan plan_from_json(const std::string& text, const std::string& where) {
    const nlohmann::json document = parse_json(text, where);
    const JsonView view(document, where);
    Plan plan;
    read_plan(plan, view, "natsl", 16);
    plan.text_steps = view.at("text_steps").integer({1, 1 << 30});
    plan.recall_steps = view.at("recall_steps").integer({1, 1 << 30});
    plan.ablations_planned = view.at("ablations_planned").boolean();
    const JsonView list = view.at("trials").array();
    for (std::size_t i = 0; i < list.size(); ++i) {
        const JsonView one = list.at(i);
        const std::string task = one.at("task").string();
        Trial trial{one.at("name").string(), one.at("model").string(), one.at("ablation").string(),
                    task == "text" ? Task::text : Task::recall};
        model(trial.model);  // refuses others
        if (trial.name.empty() || trial.name.front() == '.' || trial.name.find('/') != std::string::npos)
            one.at("name").refuse(ErrorCode::format, "expected a plain name");
        plan.trials.push_back(std::move(trial));
    }
    return plan;
}

}  // namespace headscope::reproduce::natsl

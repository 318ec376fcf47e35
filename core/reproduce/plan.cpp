// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/plan.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/json/json_members.h"
#include "core/base/text/text.h"
#include "core/reproduce/claim.h"
#include "core/reproduce/language.h"

namespace headscope::reproduce {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostSteps = 1 << 24;

double seconds_at(const std::map<std::string, double>& seconds, const std::string& key, const std::string& other) {
    auto found = seconds.find(key);
    if (found == seconds.end()) found = seconds.find(other);
    if (found == seconds.end())
        throw Error(ErrorCode::format, "pace of a replay", "expected the time of " + key, "found none");
    return found->second;
}

double seconds_of(const Plan& plan, const Trial& trial, const Pace& calibration) {
    const Paper& paper = *plan.paper;
    double seconds = 0;
    for (const Stage* stage : plan.stages_of(trial)) {
        const auto step = [&](const std::string& model) {
            return seconds_at(calibration.step_seconds, paper.timed_key(model, *stage),
                              paper.timed_key(paper.like, *stage));
        };
        const double share = trial.stack->standard, own = share < 1 ? step(trial.model->timed_as()) : 0;
        const double a_step = (1 - share) * own + (share > 0 ? share * step(paper.baseline) : 0);
        seconds += seconds_at(calibration.overhead, paper.overhead_key(*stage), "") +
                   static_cast<double>(plan.steps_of(*stage)) * a_step;
    }
    return seconds;
}

std::vector<double> seconds_of_trials(const Plan& plan, const Pace& calibration) {
    std::vector<double> seconds;
    for (const Trial& trial : plan.trials) seconds.push_back(seconds_of(plan, trial, calibration));
    return seconds;
}

/// Seconds of the plan's trial of the same model and stack; of the slowest for models that its minutes left out.
double seconds_by_plan(const Plan& plan, const Trial& trial) {
    for (std::size_t i = 0; i < plan.trials.size(); ++i)
        if (plan.trials[i].model == trial.model && plan.trials[i].stack == trial.stack) return plan.trial_seconds[i];
    return *std::max_element(plan.trial_seconds.begin(), plan.trial_seconds.end());
}

/// Seconds until the first `count` runs are done, each begun in order by the worker that is free first.
double seconds_of_first(const std::vector<double>& seconds, std::int64_t count, std::int64_t workers) {
    std::vector<double> free(static_cast<std::size_t>(workers), 0.0);
    for (std::int64_t i = 0; i < count; ++i)
        *std::min_element(free.begin(), free.end()) += seconds[static_cast<std::size_t>(i)];
    return *std::max_element(free.begin(), free.end());
}

std::int64_t fewest_trials(const Plan& plan) {
    return std::count_if(plan.trials.begin(), plan.trials.end(), [](const Trial& one) { return !one.extra; });
}

/// The most steps with which the planned trials are done in `seconds`.
void choose_steps(Plan& plan, const Pace& calibration, double seconds) {
    std::int64_t fits = kFewestUpdates, beyond = kMostSteps;
    while (beyond - fits > 1) {
        plan.steps = (fits + beyond) / 2;
        const double needed = seconds_of_first(seconds_of_trials(plan, calibration), plan.planned, plan.workers);
        (needed <= seconds ? fits : beyond) = plan.steps;
    }
    plan.steps = fits;
}

/// Trials take `seconds`, behind those that are spent. Time is often left: it is for the trials that are not planned.
void plan_time(Plan& plan, double spent, const std::vector<double>& seconds) {
    plan.planned_seconds = spent + plan.end_seconds + seconds_of_first(seconds, plan.planned, plan.workers);
    double others = 0;
    for (std::size_t i = static_cast<std::size_t>(plan.planned); i < seconds.size(); ++i)
        others += seconds[i] / static_cast<double>(plan.workers);
    plan.planned_seconds += std::min(others, kUsedTime * std::max(0.0, 60 * plan.minutes - plan.planned_seconds));
}

double seconds_left(double minutes, double spent, double end) {
    return std::max(1.0, kUsedTime * (60 * minutes - spent) - end);
}

/// Growing lengths: a length takes its 20 seconds on a busy machine.
std::string latency_lengths(const Plan& plan) {
    const std::int64_t last = plan.minutes >= 20 ? 64 : 16, factor = plan.minutes >= 10 ? 2 : 4;
    std::vector<std::string> lengths;
    for (std::int64_t times = 1; times <= last; times *= factor)
        lengths.push_back(std::to_string(times * plan.paper->sequence_length));
    return joined_text(lengths, ",");
}

/// Keys of plan.json besides the paper and the names of trials.
JsonMembers members_of(Plan& plan) {
    constexpr IntegerRange any_number{0}, processors{1, 4096}, tokens{0, 1 << 30};
    return {{"minutes", &plan.minutes, any_number},
            {"size", &plan.size},
            {"steps", &plan.steps, {1, 1 << 30}},
            {"seeds", &plan.seeds, {1, 1000}},
            {"threads", &plan.threads, processors},
            {"workers", &plan.workers, processors},
            {"workers_wanted", &plan.workers_wanted, processors},
            {"evaluation_tokens", &plan.evaluation_tokens, {1, 1 << 30}},
            {"mask_id", &plan.mask_id, tokens},
            {"planned", &plan.planned},
            {"data", &plan.data},
            {"trial_seconds", &plan.trial_seconds},
            {"planned_seconds", &plan.planned_seconds, any_number},
            {"end_seconds", &plan.end_seconds, any_number},
            {"run_bytes", &plan.run_bytes, any_number},
            {"room_bytes", &plan.room_bytes, any_number}};
}

}  // namespace

std::int64_t side_by_side(std::int64_t wanted, double run, double room) {
    constexpr double usable = 0.9;
    if (!(run > 0) || !(room > 0) || usable * room >= run * static_cast<double>(wanted)) return wanted;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(usable * room / run));
}

std::optional<std::string> Trial::word(const std::string& word) const {
    if (word == "model") return model->name;
    if (word == "label") return model->label;
    if (word == "preset") return model->preset;
    if (word == "objective") return model->objective;
    if (word == "stack") return stack->name;
    if (word == "seed") return std::to_string(seed);
    if (word == "-seed") return seed > 1 ? "-seed" + std::to_string(seed) : "";
    return std::nullopt;
}

std::string Trial::label() const {
    return filled(stack->label, [this](const auto& one) { return word(one); }) +
           (seed > 1 ? " seed " + std::to_string(seed) : "");
}

std::string Trial::subject() const {
    return filled(stack->subject, [this](const auto& one) { return word(one); });
}

std::int64_t Plan::steps_of(const Stage& stage) const {
    const auto own = static_cast<std::int64_t>(stage.share * static_cast<double>(steps));
    return std::max(kFewestUpdates, std::min(own, stage.most_steps));
}

std::int64_t Plan::tokens(const Stage& stage) const {
    return steps_of(stage) * paper->batch * paper->sequence_length;
}

std::optional<std::string> Plan::word(const std::string& word) const {
    if (word == "size") return size;
    if (word == "length") return std::to_string(paper->sequence_length);
    if (word == "latency_lengths") return latency_lengths(*this);
    if (word == "threads") return std::to_string(threads);
    if (word == "batch") return std::to_string(paper->batch);
    if (word == "seeds") return std::to_string(seeds);
    if (word == "evaluation_tokens") return std::to_string(evaluation_tokens);
    if (word.starts_with("length@")) {
        std::vector<std::string> list = separated_parts(word.substr(7), ',');
        for (std::string& one : list)
            one = std::to_string(std::llround(static_cast<double>(paper->sequence_length) * std::stod(one)));
        return joined_text(list, ",");
    }
    if (word.starts_with("steps.")) return std::to_string(steps_of(paper->stage(word.substr(6))));
    if (word.starts_with("tokens.")) return millions_text(static_cast<double>(tokens(paper->stage(word.substr(7)))));
    const json& own = paper->size(size);
    if (own.contains("words") && own.at("words").contains(word)) return own.at("words").at(word).get<std::string>();
    return std::nullopt;
}

std::vector<const Stage*> Plan::stages_of(const Trial& trial) const {
    std::vector<const Stage*> list;
    for (const std::string& name : trial.stack->stages) {
        const bool later =
            std::any_of(paper->stages.begin(), paper->stages.end(), [&](const Stage& one) { return one.from == name; });
        if (!trial.model->scratch || !later) list.push_back(&paper->stage(name));
    }
    return list;
}

std::string Plan::run_name(const Trial& trial, const Stage& stage) const {
    return trial.name + (trial.stack->stages.size() > 1 ? "-" + stage.name : "");
}

Trial trial_of(const Model& model, const Stack& stack, std::int64_t seed) {
    Trial trial{"", &model, &stack, seed, model.extra || stack.extra};
    trial.name = filled(stack.trial, [&](const auto& one) { return trial.word(one); });
    return trial;
}

std::vector<Trial> trials_of(const Paper& paper, std::int64_t seeds, double minutes) {
    std::vector<Trial> list;
    const auto add = [&](const Model& model, const Stack& stack, std::int64_t seed, bool extra) {
        const bool listed = model.stacks.empty() ? stack.models.empty() || contains(stack.models, model.name)
                                                 : contains(model.stacks, stack.name);
        if (!listed || extra != (model.extra || stack.extra) || minutes < model.from_minutes) return;
        if (model.most_seeds > 0 && seed > model.most_seeds) return;
        if (!stack.extra || seed == 1) list.push_back(trial_of(model, stack, seed));
    };
    for (const bool extra : {false, true})
        for (std::int64_t seed = 1; seed <= seeds; ++seed) {
            if (paper.stack_first || extra) {
                for (const Stack& stack : paper.stacks)
                    for (const Model& model : paper.models) add(model, stack, seed, extra);
            } else {
                for (const Model& model : paper.models)
                    for (const Stack& stack : paper.stacks) add(model, stack, seed, extra);
            }
        }
    return list;
}

Plan unplanned(const Paper& paper, const Settings& settings) {
    Plan plan;
    plan.paper = &paper;
    plan.minutes = plan.steps_minutes = settings.minutes;
    plan.size = paper.smallest();
    plan.data = settings.data;
    plan.threads = settings.threads;
    plan.workers = plan.workers_wanted = settings.workers;
    plan.evaluation_tokens = paper.evaluation_tokens.at(settings.minutes >= 10 ? 0 : 1);
    return plan;
}

Plan make_plan(const Paper& paper, const Settings& settings, const Pace& calibration) {
    Plan plan = unplanned(paper, settings);
    plan.size = calibration.size;
    plan.end_seconds = calibration.end;
    paper.size(plan.size);
    const double left = seconds_left(settings.minutes, calibration.spent, calibration.end);
    std::vector<Choice> choices = paper.choices;
    if (settings.seeds > 0) choices = {{settings.seeds, true}, {settings.seeds, false}};
    const auto learns = [&] { return static_cast<double>(plan.tokens()) >= paper.learn_tokens; };
    for (const Choice& choice : choices) {
        plan.seeds = choice.seeds;
        plan.trials = trials_of(paper, choice.seeds, settings.minutes);
        const std::int64_t fewest = fewest_trials(plan);
        plan.planned = choice.extras ? std::ssize(plan.trials) : fewest;
        choose_steps(plan, calibration, left);
        while (paper.one_by_one && plan.planned > fewest && !learns()) {
            --plan.planned;
            choose_steps(plan, calibration, left);
        }
        if (learns()) break;
    }
    plan.trial_seconds = seconds_of_trials(plan, calibration);
    plan_time(plan, calibration.spent, plan.trial_seconds);
    return plan;
}

Plan longer_plan(const Plan& plan, double minutes, double spent, const std::function<bool(const Trial&)>& done) {
    Plan longer = plan;
    longer.minutes = minutes;
    longer.trials = trials_of(*plan.paper, plan.seeds, minutes);
    longer.trial_seconds.clear();
    std::vector<double> ahead;
    for (const Trial& trial : longer.trials) {
        longer.trial_seconds.push_back(seconds_by_plan(plan, trial));
        ahead.push_back(done(trial) ? 0 : longer.trial_seconds.back());
    }
    const std::int64_t fewest = fewest_trials(longer);
    const double left = seconds_left(minutes, spent, plan.end_seconds);
    longer.planned = std::ssize(longer.trials);
    while (longer.planned > fewest && seconds_of_first(ahead, longer.planned, longer.workers) > left) --longer.planned;
    plan_time(longer, spent, ahead);
    return longer;
}

std::string choose_size(const Paper& paper, const Settings& settings, double seconds_of_token) {
    const double tokens = 60 * settings.minutes * kUsedTime *
                          std::min(static_cast<double>(settings.workers), paper.runs) / (paper.runs * seconds_of_token);
    std::string chosen;
    for (const json& size : paper.document.at("size"))
        if (chosen.empty() || tokens / size.at("slower").get<double>() >= size.at("tokens").get<double>())
            chosen = size.at("name").get<std::string>();
    return chosen;
}

training::JobFile job_of(const Plan& plan, const Trial& trial, const Stage& stage, const std::string& runs) {
    const Paper& paper = *plan.paper;
    const Model& model = *trial.model;
    const json& size = paper.size(plan.size);
    const bool tuned = !stage.from.empty() && !model.scratch;
    const std::int64_t steps = plan.steps_of(stage),
                       length = std::llround(stage.length * static_cast<double>(paper.sequence_length)) *
                                model.tokens_a_word;
    const auto sequences = static_cast<std::int64_t>(stage.batch * static_cast<double>(paper.batch));
    json job = {{"model", {{"max_position_embeddings", length}}}};
    if (size.contains("job")) job.merge_patch(size.at("job"));
    job.merge_patch(paper.document.at("job"));
    job.merge_patch(model.job);
    job.merge_patch(trial.stack->job);
    if (tuned)
        job["model"] = {
            {"from", "../" + runs + "/" + plan.run_name(trial, paper.stage(stage.from)) + "/snapshots/last"}};
    json& data = job["data"];
    if (data.is_null()) data = json::object();
    if (stage.text) {
        json text = paper.document.at("text");
        text.merge_patch(data);
        data = std::move(text);
        if (!plan.data.empty())
            data["text"] = plan.data;
        else if (paper.document.contains("language"))
            data["text"] = json::array({std::string("../") + kLanguageFile});
        else
            data["corpus"] = "kjv";
    } else {
        data.erase("tokenizer");
    }
    if (model.mask >= 0) data["fixed_token"] = {{"position", model.mask}, {"id", plan.mask_id}};
    data["sequence_length"] = length;
    job.merge_patch(stage.job);
    job["name"] = trial.label();
    job["seed"] = trial.seed;
    job["training"].update(
        {{"steps", steps},
         {"batch", stage.whole_batch ? sequences : std::max<std::int64_t>(1, sequences / model.tokens_a_word)},
         {"threads", plan.threads}});
    const double rate = job.at("optimizer").at("learning_rate").get<double>();
    job["schedule"] = {
        {"kind", "cosine"}, {"warmup_steps", std::max<std::int64_t>(1, steps / 20)}, {"minimum_rate", rate / 10}};
    job["evaluation"] = {{"every", std::max<std::int64_t>(1, steps / 5)}, {"batches", 4}};
    job["snapshots"] = {{"every", 0}, {"keep", 2}};
    const bool probed = contains(stage.probed, model.name);
    job["probe"] = {
        {"every", probed ? std::max<std::int64_t>(1, steps / 10) : 0}, {"sequences", 2}, {"length", length}};
    job["sample"] = {{"every", 0}};
    job = filled(std::move(job), [&](const std::string& word) {
        const auto own = trial.word(word);
        return own ? own : plan.word(word);
    });
    std::string text;
    // Whole tables stand behind the job's name and seed.
    for (const auto& [key, value] : job.items())
        text += training::toml_key(key) + " = " + training::toml_value(value) + "\n";
    return training::read_job(text, trial.name);
}

training::JobFile to_time(training::JobFile job) {
    job.training.steps = 12;
    job.schedule.warmup_steps = 1;
    job.evaluation.every = 0;
    job.probe.every = 0;
    return job;
}

training::JobFile timing_job(const Plan& plan, const Model& model) {
    const Paper& paper = *plan.paper;
    const JsonView how = paper.view().at("timing");
    training::JobFile job = to_time(job_of(plan, trial_of(model, paper.stacks.front()), paper.stages.front()));
    job.data.sequence_length = job.probe.length = how.at("length").integer();
    job.training.batch = how.at("sequences").integer();
    job.model.config["max_position_embeddings"] = job.data.sequence_length;
    if (how.at("config").has(model.name)) job.model.config.merge_patch(how.at("config").at(model.name).value());
    return job;
}

std::string to_json(const Plan& plan) {
    Plan own = plan;
    json document{{"paper", plan.paper->name}, {"trials", json::array()}};
    for (const Trial& trial : plan.trials) document["trials"].push_back(trial.name);
    write_members(document, members_of(own));
    document["steps_minutes"] = plan.steps_minutes;
    return json_text(document);
}

Plan plan_from_json(const Paper& paper, const std::string& text, const std::string& where) {
    const json document = parse_json(text, where);
    const JsonView view(document, where);
    if (!view.has("paper") || view.at("paper").string() != paper.name)
        view.refuse(ErrorCode::format, "expected a plan of this paper");
    Plan plan;
    plan.paper = &paper;
    read_members(view, members_of(plan));
    plan.steps_minutes = view.number_or("steps_minutes", plan.minutes, 0);  // earlier plans: the same
    paper.size(plan.size);
    plan.trials = trials_of(paper, plan.seeds, plan.minutes);
    const std::vector<std::string> names = view.at("trials").strings();
    if (!std::equal(names.begin(), names.end(), plan.trials.begin(), plan.trials.end(),
                    [](const std::string& name, const Trial& trial) { return name == trial.name; }))
        view.at("trials").refuse(ErrorCode::format, "expected the paper's trials for these minutes and seeds");
    plan.planned = view.at("planned").integer({0, std::ssize(plan.trials)});
    if (plan.trial_seconds.size() != plan.trials.size())
        view.at("trial_seconds").refuse(ErrorCode::format, "expected as many numbers as trials");
    return plan;
}

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/reproduce/paper.h"

namespace headscope::reproduce {
namespace {

/// Fewer updates teach none of these models more than the frequencies of tokens.
constexpr std::int64_t kFewestSteps = 40;
/// Measured with the smallest size: after half a million tokens (500 steps) Standard's perplexity is 5 % below MLP's,
/// after 2.5 million half of it. More seeds or layouts than that leaves room for tell nothing.
constexpr std::int64_t kSensibleSteps = 1500;
/// Of the time that is left for training and evaluation, what is planned with: machines slow down.
constexpr double kUsed = 0.86;
/// Which layers are standard; equal stacks of different layouts are one.
std::string stack_of(const std::string& layout, std::int64_t layers) {
    std::string stack;
    for (std::int64_t i = 1; i <= layers; ++i) {
        const bool standard = layout == "even"        ? i % 2 == 0
                              : layout == "odd"       ? i % 2 == 1
                              : layout == "top"       ? i <= layers / 2
                              : layout == "middle"    ? i <= layers / 4 || i > 3 * layers / 4
                              : layout == "bottom"    ? i > layers / 2
                              : layout == "quarter"   ? i % 4 == 0
                              : layout == "first"     ? i == 1
                              : layout == "last"      ? i == layers
                              : layout == "bilateral" ? i == 1 || i == layers
                                                      : false;
        stack += standard ? 's' : '-';
    }
    return stack;
}

double step_seconds(const Calibration& calibration, const Trial& trial, std::int64_t layers) {
    const double standard = calibration.step_seconds.at("standard"), own = calibration.step_seconds.at(trial.mixer);
    const std::string stack = stack_of(trial.layout, layers);
    const double share = static_cast<double>(std::count(stack.begin(), stack.end(), 's')) /
                         static_cast<double>(std::max<std::int64_t>(1, layers));
    return share * standard + (1 - share) * own;
}

}  // namespace

const std::vector<Size>& sizes() {
    static const std::vector<Size> all{{"64 wide", 64, 192, 6, 4},
                                       {"96 wide", 96, 256, 6, 4},
                                       {"128 wide", 128, 384, 6, 4},
                                       {"192 wide", 192, 512, 6, 6}};
    return all;
}

std::string Trial::configuration() const {
    if (mixer == "standard") return "standard";
    return layout == "even" ? "hybrid" : layout;
}

std::string Trial::label() const {
    return label_of(mixer) + (mixer == "standard" ? "" : " " + configuration()) +
           (seed == 1 ? "" : " seed " + std::to_string(seed));
}

std::int64_t side_by_side(std::int64_t wanted, double run, double room) {
    constexpr double usable = 0.9;
    if (!(run > 0) || !(room > 0) || usable * room >= run * static_cast<double>(wanted)) return wanted;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(usable * room / run));
}

std::vector<std::int64_t> Plan::lengths() const {
    std::vector<std::int64_t> list;
    for (std::int64_t part = 16; part >= 1; part /= 2) list.push_back(sequence_length / part);
    return list;
}

std::vector<Trial> trials_of(std::int64_t seeds, std::int64_t layers, bool ablation) {
    std::vector<Trial> trials;
    const auto add = [&](const std::string& mixer, const std::string& layout, std::int64_t seed, bool extra) {
        Trial trial{"", mixer, layout, seed, extra};
        trial.name = mixer + (mixer == "standard" ? "" : "-" + trial.configuration()) + "-seed" + std::to_string(seed);
        trials.push_back(trial);
    };
    for (std::int64_t seed = 1; seed <= seeds; ++seed) {
        for (const PaperMixer& mixer : paper_mixers()) {
            const std::string name(mixer.name);
            add(name, "uniform", seed, false);
            if (name != "standard") add(name, "even", seed, false);
        }
    }
    if (!ablation) return trials;
    std::set<std::string> known{stack_of("even", layers), stack_of("uniform", layers)};
    for (const char* layout : {"odd", "top", "middle", "bottom", "quarter", "first", "last", "bilateral"})
        if (known.insert(stack_of(layout, layers)).second)
            for (const char* mixer : {"non_approximate", "rnd_emb_qk"}) add(mixer, layout, 1, true);
    return trials;
}

Plan make_plan(const Settings& settings, const Size& size, const Calibration& calibration, double spent) {
    Plan plan;
    plan.minutes = settings.minutes;
    plan.size = size;
    plan.data = settings.data;
    plan.threads = settings.threads;
    plan.workers = plan.workers_wanted = settings.workers;
    plan.end_seconds = calibration.end;
    const auto workers = static_cast<double>(settings.workers);
    const double left = std::max(1.0, kUsed * (60 * settings.minutes - spent) - calibration.end);
    struct Choice {
        std::int64_t seeds;
        bool ablation;
    };
    std::vector<Choice> choices{{3, true}, {3, false}, {1, false}};
    if (settings.seeds > 0) choices = {{settings.seeds, true}, {settings.seeds, false}};
    for (const Choice& choice : choices) {
        plan.seeds = choice.seeds;
        plan.with_ablation = choice.ablation;
        plan.trials = trials_of(choice.seeds, size.layers, choice.ablation);
        double a_step = 0;
        for (const Trial& trial : plan.trials) a_step += step_seconds(calibration, trial, size.layers);
        // Runs go side by side; in the last round some workers have nothing to do.
        const auto count = static_cast<double>(plan.trials.size());
        const double rounds = std::ceil(count / workers), idle = rounds * workers / count;
        const double overhead = calibration.run_overhead * rounds, a_step_of_all = a_step * idle / workers;
        plan.steps = std::max(kFewestSteps, static_cast<std::int64_t>((left - overhead) / a_step_of_all));
        plan.planned_seconds = spent + calibration.end + overhead + static_cast<double>(plan.steps) * a_step_of_all;
        if (plan.steps >= kSensibleSteps) break;
    }
    if (!plan.with_ablation) {
        // Machines are often faster than was planned with: what is left of the time is for the other layouts.
        const auto counted = static_cast<double>(plan.trials.size());
        plan.trials = trials_of(plan.seeds, size.layers, true);
        const double more = static_cast<double>(plan.trials.size()) / counted - 1,
                     over = std::max(0.0, 60 * settings.minutes - plan.planned_seconds);
        plan.planned_seconds += std::min(more * left, kUsed * over);
    }
    plan.evaluation_tokens = settings.minutes >= 10 ? 16384 : 8192;
    return plan;
}

const Size& choose_size(const Settings& settings, double seconds_of_token) {
    // Tokens that each of 39 runs would see with the smallest size, and no more than alone; work grows with the square
    // of the width.
    constexpr std::int64_t kRuns = 39;
    const double share = static_cast<double>(std::min(settings.workers, kRuns)) / static_cast<double>(kRuns);
    const double tokens = 60 * settings.minutes * kUsed * share / seconds_of_token;
    const Size* chosen = &sizes().front();
    for (const Size& size : sizes()) {
        const double wider = static_cast<double>(size.hidden) / static_cast<double>(sizes().front().hidden);
        // A million tokens is about an epoch of the Bible: below that a wider model only learns less.
        if (tokens / (wider * wider) >= 2.5e6) chosen = &size;
    }
    return *chosen;
}

training::JobFile job_of(const Plan& plan, const Trial& trial) {
    training::JobFile job;
    job.name = trial.label();
    job.seed = trial.seed;
    job.model.preset = "nano-100k";
    job.model.mixer = trial.mixer;
    job.model.layout = trial.mixer == "standard" ? "uniform" : trial.layout;
    job.model.config = {{"hidden_size", plan.size.hidden},
                        {"intermediate_size", plan.size.feed_forward},
                        {"num_hidden_layers", plan.size.layers},
                        {"num_attention_heads", plan.size.heads},
                        {"num_key_value_heads", plan.size.heads},
                        {"head_dim", plan.size.hidden / plan.size.heads},
                        {"max_position_embeddings", plan.sequence_length},
                        {"initializer_range", 0.05}};
    if (plan.data.empty())
        job.data.corpus = "kjv";
    else
        job.data.text = plan.data;
    job.data.tokenizer = "train:1024";
    job.tokenizer_given = true;
    job.data.sequence_length = plan.sequence_length;
    job.data.validation = 0.02;
    job.training.steps = plan.steps;
    job.training.tokens.reset();
    job.training.minutes.reset();
    job.training.batch = plan.batch;
    job.training.threads = plan.threads;
    // Of 1e-3 to 1e-2 and weights of 0.02 to 0.12: with these, Standard's perplexity is 5 % below MLP's after
    // 0.5 million tokens; with 2e-3 and 0.02 it is 6 % above.
    job.optimizer.learning_rate = 5e-3;
    job.schedule.kind = "cosine";
    job.schedule.warmup_steps = std::max<std::int64_t>(1, plan.steps / 20);
    job.schedule.minimum_rate = job.optimizer.learning_rate / 10;
    job.evaluation.every = std::max<std::int64_t>(1, plan.steps / 5);
    job.evaluation.batches = 4;
    job.snapshots.every = 0;
    job.snapshots.keep = 2;  // the fewest
    job.probe.every = 0;
    job.sample.every = 0;
    return job;
}

std::string to_json(const Plan& plan) {
    nlohmann::json trials = nlohmann::json::array();
    for (const Trial& trial : plan.trials)
        trials.push_back({{"name", trial.name},
                          {"mixer", trial.mixer},
                          {"layout", trial.layout},
                          {"seed", trial.seed},
                          {"ablation", trial.ablation}});
    return json_text({{"minutes", plan.minutes},
                      {"size",
                       {{"name", plan.size.name},
                        {"hidden", plan.size.hidden},
                        {"feed_forward", plan.size.feed_forward},
                        {"layers", plan.size.layers},
                        {"heads", plan.size.heads}}},
                      {"sequence_length", plan.sequence_length},
                      {"batch", plan.batch},
                      {"steps", plan.steps},
                      {"seeds", plan.seeds},
                      {"threads", plan.threads},
                      {"workers", plan.workers},
                      {"workers_wanted", plan.workers_wanted},
                      {"run_bytes", plan.run_bytes},
                      {"room_bytes", plan.room_bytes},
                      {"evaluation_tokens", plan.evaluation_tokens},
                      {"data", plan.data},
                      {"with_ablation", plan.with_ablation},
                      {"planned_seconds", plan.planned_seconds},
                      {"end_seconds", plan.end_seconds},
                      {"trials", trials}});
}

Plan plan_from_json(const std::string& text, const std::string& where) {
    const nlohmann::json document = parse_json(text, where);
    const JsonView view(document, where);
    Plan plan;
    plan.minutes = view.at("minutes").number(0);
    const JsonView size = view.at("size");
    plan.size = {size.at("name").string(), size.at("hidden").integer({1, 1 << 20}),
                 size.at("feed_forward").integer({1, 1 << 20}), size.at("layers").integer({1, 1000}),
                 size.at("heads").integer({1, 1 << 20})};
    plan.sequence_length = view.at("sequence_length").integer({16, 1 << 20});
    plan.batch = view.at("batch").integer({1, 1 << 20});
    plan.steps = view.at("steps").integer({1, 1 << 30});
    plan.seeds = view.at("seeds").integer({1, 1000});
    plan.threads = view.at("threads").integer({1, 4096});
    plan.workers = view.at("workers").integer({1, 4096});
    plan.workers_wanted = view.integer_or("workers_wanted", plan.workers, {1, 4096});
    plan.run_bytes = view.number_or("run_bytes", 0, 0);
    plan.room_bytes = view.number_or("room_bytes", 0, 0);
    plan.evaluation_tokens = view.at("evaluation_tokens").integer({1, 1 << 30});
    plan.data = view.at("data").strings();
    plan.with_ablation = view.at("with_ablation").boolean();
    plan.planned_seconds = view.at("planned_seconds").number(0);
    plan.end_seconds = view.at("end_seconds").number(0);
    const JsonView trials = view.at("trials").array();
    for (std::size_t i = 0; i < trials.size(); ++i) {
        const JsonView one = trials.at(i);
        plan.trials.push_back({one.at("name").string(), one.at("mixer").string(), one.at("layout").string(),
                               one.at("seed").integer({0, 1 << 30}), one.at("ablation").boolean()});
        const Trial& trial = plan.trials.back();
        // Files are named by all three.
        for (const auto& [key, value] :
             {std::pair{"name", &trial.name}, {"mixer", &trial.mixer}, {"layout", &trial.layout}})
            if (value->empty() || value->find('/') != std::string::npos)
                one.at(key).refuse(ErrorCode::format, "expected a plain name");
    }
    return plan;
}

}  // namespace headscope::reproduce

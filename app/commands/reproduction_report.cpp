// SPDX-License-Identifier: GPL-3.0-or-later
// What was measured becomes figures, a table of costs and the report.

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>

#include "app/commands/reproduction.h"
#include "app/commands/reproduction_parts.h"
#include "app/version.h"
#include "core/base/error.h"
#include "core/base/in_threads.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/base/machine/processors.h"
#include "core/base/text.h"
#include "core/reproduce/paper.h"
#include "core/reproduce/report.h"

namespace headscope::app {

namespace fs = std::filesystem;
using reproduce::Trial;

namespace {

constexpr const char* kCostCaption =
    "The paper's cost formulas at its 500M size (Tables 5 to 8); equal ones lie on one line: RndEmbQK, FixedSeqQK and "
    "StaticEmbQK on or near Standard, Non-approximate on or near MLP";

/// As the report shows them.
constexpr const char* kFigureOrder[] = {"loss-uniform",  "loss-hybrid",  "context-perplexity", "ablation",
                                        "radar-uniform", "radar-hybrid", "logits-rnd-emb-qk",  "logits-non-approximate",
                                        "cost"};

/// The paper's, as --mixers has them.
std::string paper_mixer_list() {
    std::string list;
    for (const reproduce::PaperMixer& mixer : reproduce::paper_mixers())
        list += (list.empty() ? "" : ",") + std::string(mixer.name);
    return list;
}

}  // namespace

void Reproduction::draw_cost() {
    figure("cost", kCostCaption, {"deconattn-500m", "--figure", "cost", "--mixers", paper_mixer_list()});
}

/// The paper's costs beside what runs here, at the width of the plan.
void Reproduction::measure_cost() {
    const fs::path table = options_.folder / "cost.csv";
    if (fs::exists(table)) return;
    try {
        own({"cost", (run_folder(plan_.trials.front()) / "snapshots" / "last").string(), "--measure", "--mixers",
             paper_mixer_list(), "--lengths", "64,256,1024", "--threads", std::to_string(plan_.threads), "-o",
             table.string()});
    } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        missing_.push_back(std::string("Costs could not be measured: ") + error.what() + ".");
    }
}

void Reproduction::draw() {
    std::vector<std::string> uniform_runs, hybrid_runs, uniform_radar, hybrid_radar;
    std::vector<std::string> logits_random, logits_running;
    for (const Trial& trial : plan_.trials) {
        if (trial.seed != 1 || trial.ablation || !is_done(trial)) continue;
        const std::string run = run_folder(trial).string(), analysis = analysis_file(trial).string();
        const std::string configuration = trial.configuration();
        if (configuration != "hybrid") uniform_runs.push_back(run);
        if (configuration != "uniform") hybrid_runs.push_back(run);
        if (trial.mixer != "mlp" && configuration != "hybrid") uniform_radar.push_back(analysis);
        if (trial.mixer != "mlp" && configuration != "uniform") hybrid_radar.push_back(analysis);
        if (trial.mixer == "rnd_emb_qk") logits_random.push_back(analysis);
        if (trial.mixer == "non_approximate") logits_running.push_back(analysis);
    }
    const std::string contexts = (options_.folder / "contexts.evaluation.h5").string(),
                      layouts = (options_.folder / "layouts.evaluation.h5").string();
    std::vector<std::function<void()>> work{[this] { measure_cost(); }};
    const auto add = [&](const char* name, const char* caption, std::vector<std::string> files, const char* recipe) {
        files.insert(files.end(), {"--figure", recipe});
        work.push_back([this, name, caption, files] { figure(name, caption, files); });
    };
    if (!uniform_runs.empty())
        add("loss-uniform", "Loss of Standard and the uniform variants, seed 1 (Fig. 5)", uniform_runs, "loss");
    if (hybrid_runs.size() > 1)
        add("loss-hybrid", "Loss of Standard and the hybrids, seed 1 (Fig. 5)", hybrid_runs, "loss");
    add("context-perplexity",
        "Perplexity and next-token accuracy by context length, uniform and hybrid (Standard in the even layers), with "
        "Standard in both (Table 4)",
        {contexts}, "context-perplexity");
    add("ablation", "Perplexity and next-token accuracy by which layers are Standard (Fig. 3)", {layouts}, "ablation");
    if (uniform_radar.size() > 1)
        add("radar-uniform", "Indicators of each layer, Standard beside the uniform variants, seed 1 (Fig. 1 and 7)",
            uniform_radar, "radar");
    if (hybrid_radar.size() > 1)
        add("radar-hybrid", "Indicators of each layer, Standard beside the hybrids, seed 1 (Fig. 1 and 8)",
            hybrid_radar, "radar");
    if (logits_random.size() > 1)
        add("logits-rnd-emb-qk", "Scores before softmax, RndEmbQK uniform beside hybrid, seed 1 (Fig. 2 and 6)",
            logits_random, "scores");
    if (logits_running.size() > 1)
        add("logits-non-approximate",
            "Scores before softmax, Non-approximate uniform beside hybrid, seed 1 (Fig. 2 and 6)", logits_running,
            "scores");
    if (!fs::exists(options_.folder / "figures" / "cost.csv"))
        work.push_back([this] { draw_cost(); });
    else if (drawn_.empty())
        drawn_.push_back({"cost", kCostCaption});
    tell("drawing");
    side_by_side(work, plan_.workers);
    const auto place = [](const Drawn& one) {
        return std::find(std::begin(kFigureOrder), std::end(kFigureOrder), one.name) - std::begin(kFigureOrder);
    };
    std::sort(drawn_.begin(), drawn_.end(), [&](const Drawn& a, const Drawn& b) { return place(a) < place(b); });
}

fs::path Reproduction::write_report() {
    tell("writing the report");
    const reproduce::Scores scores(evaluation_);
    reproduce::ReportInput input;
    input.plan = plan_;
    input.scores = &scores;
    for (const Trial& trial : plan_.trials) {
        if (!analysed(trial) || !fs::exists(analysis_file(trial))) continue;
        input.analyses.push_back(
            reproduce::read_indicators(analysis_file(trial), {trial.mixer, trial.configuration()}, trial.seed));
    }
    for (const Drawn& one : drawn_) input.figures.push_back({one.name, one.caption});
    input.missing = missing_;
    if (fs::exists(options_.folder / "cost.csv"))
        input.cost_csv = read_small_file(options_.folder / "cost.csv", kLargestPlan, "table");
    input.program_version = std::string("headscope ") + kVersion;
    input.machine = machine();
    for (const std::string& word : options_.launch) input.launch += (input.launch.empty() ? "" : " ") + word;
    input.seconds = spent();
    input.data =
        plan_.data.empty() ? "the King James Bible, its last 2 % held out" : "the given files, their last 2 % held out";
    const std::vector<double> seconds = step_seconds(run_folder(plan_.trials.front()));
    if (!seconds.empty())
        input.tokens_per_second =
            static_cast<double>(plan_.batch * plan_.sequence_length) / seconds[seconds.size() / 2];
    input.commands = {"headscope train jobs/standard-seed1.toml -o again",
                      "headscope evaluate again --task perplexity --length 16,256",
                      "headscope analyze again/snapshots/last --file text.txt -o again.headscope.h5",
                      "headscope export again.headscope.h5 --figure radar -o radar.pdf"};
    const fs::path report = options_.folder / "report.md";
    write_file(report, reproduce::report_markdown(input));
    return report;
}

}  // namespace headscope::app

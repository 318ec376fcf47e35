// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/reproduce/runner.h"
#include "core/run/journal.h"
#include "core/store/evaluation/evaluation_file.h"

namespace headscope::test {

/// Two models, one claim, tables of data sets.
inline constexpr const char* kTinyPaper = R"(
title = "Tiny"
summary = "Two models"
size = [{ name = "nano", slower = 1, tokens = 0 }]
stage = [{ name = "run", scores = { loss = "loss" }, evaluate = ["--task", "perplexity"] }]
stack = [{ name = "run", stages = ["run"] }]
model = [{ name = "a", label = "A" }, { name = "b", label = "B" }]
[[data_set]]
name = "choices"
title = "Choices"
tasks = ["arc_easy", "piqa"]
metric = "acc"
words = ["--limit", "9"]
recipe = ["tasks"]
[[data_set]]
name = "glue"
title = "Tuned"
tuned = "run"
tasks = ["rte", "cola"]
metric = "accuracy"
metrics = { cola = "matthews" }
recipe = ["benchmark"]
[[data_set]]
name = "retrieval"
title = "Retrieval"
tasks = ["fda"]
metric = "contains"
words = []
recipe = ["tasks"]
[plan]
sequence_length = 16
batch = 2
baseline = "a"
runs = 2
learn_tokens = 1
judge_tokens = 1
evaluation_tokens = [16, 16]
choices = [{ seeds = 1, extras = true }]
extras = "none"
[calibration]
first = "a"
model = "a"
end = 10
share = 1
[job]
optimizer = { learning_rate = 1e-3 }
[text]
validation = 0.1
[printed]
[[claim]]
title = "A learns"
paper = "yes"
criterion = "its loss is below 9"
found = [{ of = "a", text = "{loss}" }]
holds = [{ metric = "loss", of = "a", below = 9 }]
[report]
title = "Tiny, replayed"
who = "paper"
intro = "Two models."
facts = []
section = []
too_few = "Too few."
notes = []
commands = []
)";

inline void write_tiny_scores(const std::filesystem::path& file, const std::string& model) {
    store::Evaluation scores;
    scores.models.emplace_back();
    scores.models.back().name = model;
    scores.results.push_back({0, "perplexity", "loss", 16, 3.5});
    store::write_evaluation(file, scores);
}

/// A replay of 40 minutes whose first `trained` models are trained.
inline void write_tiny_replay(const std::filesystem::path& folder, const reproduce::Paper& paper, std::size_t trained) {
    reproduce::Pace pace;
    pace.size = "nano";
    for (const char* model : {"a", "b"}) pace.step_seconds[model] = 0.01;
    pace.overhead["run"] = 1;
    const reproduce::Plan plan = reproduce::make_plan(paper, {}, pace);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "plan.json") << reproduce::to_json(plan);
    for (std::size_t i = 0; i < trained; ++i) {
        const reproduce::Trial& trial = plan.trials.at(i);
        const std::filesystem::path run = folder / "runs" / plan.run_name(trial, paper.stages.front());
        std::filesystem::create_directories(run);
        write_tiny_scores(run / "scores.evaluation.h5", trial.name);
        std::ofstream(run / training::kJournalName).flush();
    }
}

inline std::string report_of(const std::filesystem::path& folder) {
    std::ifstream file(folder / "report.md");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace headscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tasks as lm-evaluation-harness 0.4.13 has them, by its names: which data set, which split, how they are scored.
// Source: its task files and lm_eval/api/task.py. Threads: any.

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::evaluation {

/// choices: one context, several continuations. partial: several contexts, one continuation (winogrande). last_word:
/// lambada. page: a whole document, rolled over in windows (wikitext). said: the model writes an answer.
enum class HarnessKind { choices, partial, last_word, page, said };

/// One answer is chosen of several.
inline bool has_options(HarnessKind kind) {
    return kind == HarnessKind::choices || kind == HarnessKind::partial;
}

/// Source of the prompts, cuts, stops and scores of LongBench: lm-eval 0.4.13 or THUDM/LongBench.
enum class LongBenchRules { lm_eval, thudm };

struct HarnessTask {
    std::string name;           ///< "arc_easy"
    std::string data_set;       ///< of the hub, without its owner: "ai2_arc"
    std::string configuration;  ///< "ARC-Easy"; empty: none
    std::string split;          ///< "test" or "validation"
    std::string summary;        ///< for people
    HarnessKind kind = HarnessKind::choices;
    std::vector<std::string> metrics;  ///< "acc", "acc_norm"; the first one says whether an item is right
    std::int64_t answer_tokens = 0;    ///< said: limit of tokens
    std::vector<std::string> stops;    ///< said: each cuts the answer
    LongBenchRules rules = LongBenchRules::lm_eval;
};

const std::vector<HarnessTask>& harness_tasks();
/// nullptr: none of that name.
const HarnessTask* find_harness_task(const std::string& name);

/// Sets of tasks by name ("deconattn", "natsl", "lazy", "zero_shot"), with the title of their paper and their tasks in
/// its order. RULER's tasks are in none.
struct TaskSet {
    std::string name, title, summary;
    std::vector<std::string> tasks;
};
const std::vector<TaskSet>& task_sets();

}  // namespace headscope::evaluation

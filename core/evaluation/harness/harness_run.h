// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tasks of lm-eval's on one model: their items as ids, one scoring of all of them, answers that are said, and the rows
// that follow. Threads: the compute thread. Errors: Error (what encoding, scoring and generating throw; limit for an
// item beyond the model's positions), Stopped.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/evaluation/generated_answers.h"
#include "core/evaluation/harness/answered_item.h"

namespace headscope::evaluation {

/// Applies a task's options (--task-option): `tokens` limits a generated answer. With it squad_completion stops at a
/// line's end, as published (48 tokens). Throws usage for other options.
HarnessTask with_options(HarnessTask task, const std::map<std::string, double>& options);

/// Items of all tasks that are scored, as ids: one item's after the other's.
struct HarnessIds {
    std::vector<HarnessRequest> requests;
    std::vector<std::vector<std::size_t>> ends;  ///< by task and item: where its requests end
};

struct HarnessWork {
    /// One a task, in the order of their rows; shared by the models of a call.
    std::vector<std::shared_ptr<const HarnessItems>> tasks;
    HarnessTokens tokens;
    std::int64_t shots = 0;           ///< that the items were read with
    std::int64_t resamples = 100000;  ///< of lambada's perplexity
    bool baselines = false;           ///< rows of who guesses, too
    HarnessIds ids;                   ///< encode_items of it
};

/// Refused by its place: an item that has more behind the cut to the length than `most`, what the model may read at
/// once (0: anything); an answer's prompt without a token.
HarnessIds encode_items(const HarnessWork& work, const GeneratedAnswers& said, std::int64_t most,
                        const Cancellation* cancellation);

struct HarnessRun {
    const HarnessWork& work;
    const GeneratedAnswers& said;
    const ScoreOptions& score;
    std::int64_t most = 0;                               ///< what the model may read at once; 0: anything
    std::int64_t model = 0;                              ///< its number in the rows
    std::function<void(const AnsweredItem&)> on_answer;  ///< in the order of tasks and items
    std::function<void(std::int64_t done, std::int64_t items)> progress = nullptr;  ///< of all tasks
};
/// Rows of answers that were stored before, one an item in their order, of model 0 at length 0. Throws Error usage for
/// another number of answers, and for a task that has none.
std::vector<store::EvaluationResult> score_answers(const HarnessItems& items, const std::vector<std::string>& answers,
                                                   const std::function<void(const AnsweredItem&)>& on_answer);
/// LongBench-e: the mean over its tasks, of each length that all of them have among one model's rows.
std::vector<store::EvaluationResult> longbench_means(std::span<const store::EvaluationResult> rows);
std::vector<store::EvaluationResult> run_harness(model::Model& model, const HarnessRun& run);

}  // namespace headscope::evaluation

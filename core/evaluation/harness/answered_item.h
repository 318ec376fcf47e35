// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One item as a model answered it, handed out while an evaluation runs: for people, one by one. Threads: any.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/evaluation/harness/harness_items.h"
#include "core/evaluation/harness/harness_metrics.h"
#include "core/evaluation/harness/harness_requests.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::evaluation {

/// More about a question of SQuAD.
struct AskedQuestion {
    std::string id;
    std::int64_t windows = 0;         ///< that its context was read in; 0: not known
    std::optional<double> no_answer;  ///< squad_v2 (questions.h)
};

struct AnsweredItem {
    std::string task;
    HarnessKind kind = HarnessKind::choices;
    std::int64_t length = 0, shots = 0;  ///< as the task's results have them
    std::int64_t number = 0;             ///< in the data, from 0
    const HarnessItem& item;
    const ItemScore& score;
    std::span<const HarnessRequest> requests;  ///< the item's; of a page its windows; of said answers none
    std::span<const std::string> classes{};    ///< names of the options, where they are a head's classes
    const AskedQuestion* question = nullptr;   ///< of SQuAD
};

/// A line of JSON: model, task, item, then loglikelihood, greedy and tokens of each request, gold where there are
/// options; of classes the names of the right and the chosen one; of said answers length and generated, of questions
/// id, windows and no_answer too; each metric's value. `texts`: context and continuation too, of said answers the
/// prompt.
std::string item_line(const AnsweredItem& answered, std::int64_t model, bool texts);

/// A row of an evaluation file, for a generated answer.
store::EvaluatedItem evaluated_answer(const AnsweredItem& answered, std::int64_t model);
/// The same for any item. `tokenizer` gives the texts of scored tokens.
store::EvaluatedItem evaluated_item(const AnsweredItem& answered, std::int64_t model,
                                    const tokenizer::Tokenizer& tokenizer);

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// SQuAD 1.1 and 2.0: answers of an encoder with a head of spans, and their scores by the official scripts (Rajpurkar et
// al. 2016, 2018). Threads: the compute thread; scores any. Errors: Error (usage, format with FILE:LINE), Stopped.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/source/question.h"
#include "core/data/tokenizer_choice.h"
#include "core/evaluation/harness/answered_item.h"
#include "core/evaluation/labelled.h"
#include "core/evaluation/score.h"

namespace headscope::evaluation {

inline constexpr const char *kSquad = "squad", *kSquad2 = "squad_v2";

/// Questions of one file, by the name that their results have.
struct QuestionItems {
    std::string name, task;
    std::filesystem::path file;
    std::vector<data::Question> questions;
    std::string text;    ///< the file's stem
    std::string sha256;  ///< of the file
};

/// "NAME=FILE" or a file, whose results are called `task`, or a folder of data sets (TASK/validation.jsonl and so on).
/// Error usage for a question of squad without an answer.
QuestionItems read_question_items(const std::string& data, const std::string& task, const Cancellation& cancellation);

struct QuestionOptions {
    std::int64_t stride = 128;  ///< context tokens that consecutive windows share
    std::int64_t best = 20;     ///< starts, and ends, of a window that are paired
    std::int64_t longest = 30;  ///< tokens of an answer
    double threshold = 0;       ///< squad_v2: no answer where SaidAnswer::no_answer is above
};

struct SaidAnswer {
    std::string text;
    std::optional<double> no_answer{};  ///< squad_v2: logits of no answer, minus those of the best one
    std::int64_t windows = 0;           ///< that the context was read in; 0: not known
    bool cut = false;                   ///< the question was too long
};

/// Refuses a tokenizer without room for a context in `length` tokens.
void check_question_length(const data::ChosenTokenizer& tokenizer, std::int64_t length, std::int64_t stride);

/// An answer for each question: the pair of tokens with the largest sum of logits in any window; "empty" where no pair
/// is in the context, in squad_v2 the empty text.
std::vector<SaidAnswer> answer_questions(model::Model& model, const data::ChosenTokenizer& tokenizer,
                                         const QuestionItems& items, std::int64_t length,
                                         const QuestionOptions& options, const ScoreOptions& score,
                                         const Share& progress);

/// squad: exact_match, f1. squad_v2: exact, f1, HasAns_* and NoAns_* of the questions with and without an answer, and
/// if each answer has no_answer, best_exact, best_f1 and their thresholds. Each question is reported to `answer`.
std::vector<NamedValue> score_questions(const QuestionItems& items, std::span<const SaidAnswer> said,
                                        std::int64_t length, const OnAnswer& answer);

/// Answers stored as JSON lines with id, generated and optionally no_answer, or as an object {id: text}; in the order
/// of the questions. Sets the file's SHA-256. Error usage for a question without an answer, and for other ids.
std::vector<SaidAnswer> read_stored_answers(const std::filesystem::path& file, const QuestionItems& items,
                                            std::string& sha256);

}  // namespace headscope::evaluation

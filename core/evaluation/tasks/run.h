// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One run of tasks on one model, as their kinds see it.

#include <cmath>
#include <limits>
#include <span>

#include "core/evaluation/tasks.h"

namespace headscope::evaluation {

inline constexpr const char* kPositions = "position_perplexity";
inline constexpr const char* kRetrieval = "ruler_retrieval";

/// A task at a length, on one text where it is on text.
struct Unit {
    const Task* task;
    std::int64_t length;
    const NamedText* text = nullptr;
};

/// Adds rows of one task, length and text.
class Rows {
public:
    Rows(std::int64_t model, const std::string& task, std::int64_t length, std::int64_t count,
         std::vector<store::EvaluationResult>& rows)
        : rows_(rows) {
        row_.model = model;
        row_.task = task;
        row_.length = length;
        row_.count = count;
    }
    Rows& of_text(const std::string& name, const std::string& sha256) {
        row_.text = name;
        row_.data_sha256 = sha256;
        return *this;
    }
    Rows& of_cut(std::int64_t items) {
        row_.cut = items;
        return *this;
    }
    void add(const std::string& metric, double value, double error = std::numeric_limits<double>::quiet_NaN()) {
        if (std::isnan(value)) return;
        row_.metric = metric;
        row_.value = value;
        row_.error = error;
        rows_.push_back(row_);
    }

private:
    store::EvaluationResult row_;
    std::vector<store::EvaluationResult>& rows_;
};

/// Runs units one after the other.
class TaskRun {
public:
    TaskRun(model::Model& model, const Request& request, std::span<const NamedText> texts, std::int64_t model_index,
            Progress& progress);

    std::vector<store::EvaluationResult> run();

    model::Model& model() const noexcept { return model_; }
    const Request& request() const noexcept { return request_; }
    std::int64_t model_index() const noexcept { return model_index_; }
    const std::vector<std::string>& shared() const noexcept { return shared_; }  ///< tasks of the shared pass
    std::vector<store::EvaluationResult>& rows() noexcept { return rows_; }
    Rows rows_of(const std::string& task, std::int64_t length, std::int64_t count, const NamedText* text = nullptr);
    /// Reports a share of the current unit.
    void report(double share);
    void report(double done, const std::string& what);
    /// Throws Error(limit) for a loss that is not finite: the results would lack it without a message.
    void check_finite(double loss) const;

private:
    std::string what() const;

    model::Model& model_;
    const Request& request_;
    std::int64_t model_index_;
    Progress& progress_;
    std::vector<std::string> shared_;
    std::vector<Unit> units_;
    std::size_t unit_ = 0;
    std::vector<store::EvaluationResult> rows_;
};

void check_length(const Request& request, const model::ModelConfig& config, const std::string& name,
                  std::int64_t length);

// Each adds the tasks of its file to the list.
void add_text_tasks(std::vector<Task>& list);
void add_labelled_tasks(std::vector<Task>& list);
void add_question_tasks(std::vector<Task>& list);
void add_speed_task(std::vector<Task>& list);
void add_ruler_tasks(std::vector<Task>& list);
void add_harness_tasks(std::vector<Task>& list);
void add_generator_tasks(std::vector<Task>& list);

/// Rows of questions that were answered (score_questions).
void add_question_rows(const QuestionItems& items, std::span<const SaidAnswer> said, std::int64_t length,
                       std::int64_t model, const OnAnswer& answer, std::vector<store::EvaluationResult>& rows);

void check_ruler(const Request& request, const model::ModelConfig& config);
std::vector<std::int64_t> ruler_lengths(const Request& request, const data::RulerTask& task,
                                        const model::ModelConfig& config);
/// Adds the mean of RULER's eight retrieval tasks at each length that all of them have.
void add_retrieval(TaskRun& run);
void run_harness_tasks(TaskRun& run);

}  // namespace headscope::evaluation

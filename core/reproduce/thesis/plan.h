// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a replay of chapter 2 or 3 of Xue's thesis trains and measures, so that it ends within its minutes: planned once
// from a short calibration, kept in plan.json, and followed on resume. No torch here. Errors: Error (format for a plan
// that is none).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/reproduce/replay_plan.h"

namespace headscope::reproduce::thesis {

/// Multiple-head embeddings (chapter 3), hash embeddings (chapter 2).
enum class Chapter { heads, hashes };
std::string chapter_name(Chapter chapter);  ///< "thesis-mhe"

/// Which of the thesis's three stacks.
enum class Stack { encoder, decoder, translation };
std::string stack_name(Stack stack);
/// What a run does: an encoder is pre-trained on text, then tuned to tell passages apart.
enum class Stage { pretrain, classify, decoder, translation };
std::string stage_name(Stage stage);
std::vector<Stage> stages_of(Stack stack);

struct Model {
    std::string_view name;         ///< of its folders; in chapter 3 its mixer
    std::string_view label;        ///< as the thesis calls it
    std::string_view preset{};     ///< the end of its preset's name; empty: the stack's of chapter 3
    std::string_view objective{};  ///< that an encoder is pre-trained on; empty: it is tuned from scratch
    std::string_view as{};         ///< the model that takes as long; empty: it is timed itself
    bool encoder_only = true;
    bool extra = false;              ///< trained with what is left of the time
    std::int64_t tokens_a_word = 1;  ///< its sequences are so much longer, its batches smaller

    std::string_view timed_as() const { return as.empty() ? name : as; }
};
/// In the order in which they are trained: what the claims need most comes first.
const std::vector<Model>& models(Chapter chapter);
const Model& model(Chapter chapter, std::string_view name);
/// What retention is counted from: the thesis's baseline, and in chapter 3 the smallest attention.
inline constexpr const char *kBaseline[] = {"standard", "bert-mlm"}, *kSmallest = "sha";

struct Trial {
    std::string name;   ///< of its folder: "encoder-mhe_mul-seed2"
    std::string model;  ///< Model::name
    Stack stack = Stack::encoder;
    std::int64_t seed = 1;
    bool extra = false;
};
std::vector<Trial> trials_of(Chapter chapter, std::int64_t seeds);

/// Passages of the text that a class is told of, and from how many parts of it they come.
inline constexpr std::int64_t kClasses = 4;

struct Plan : ReplayPlan {
    Plan() {
        sequence_length = 64;
        batch = 32;
    }

    Chapter chapter = Chapter::heads;
    std::int64_t seeds = 1;
    std::int64_t pretrain_steps = 0;         ///< the other stages have a share of them
    std::int64_t evaluation_tokens = 32768;  ///< of the held-out text
    std::vector<Trial> trials;               ///< in the order in which they are trained
    std::vector<double> trial_seconds;       ///< of each of them, by the calibration
    bool extras_planned = false;

    std::int64_t steps(Stage stage) const;
    std::int64_t length(const Model& model, Stage stage) const;
    std::int64_t sequences(const Model& model, Stage stage) const;  ///< of a step
    std::int64_t tokens(Stage stage) const;  ///< of each run, whatever the model: words of equal number
};

struct Calibration {
    std::map<std::pair<std::string, Stage>, double> step_seconds;  ///< by Model::timed_as()
    std::map<Stage, double> overhead;  ///< seconds of a run beside its steps, with what is measured of it
    double end = 60;                   ///< of timing, figures and report
};

/// Of the smallest models, to calibrate with.
Plan unplanned(Chapter chapter, const Settings& settings);
/// Steps for the minutes that are left after `spent` seconds: three seeds where each run still sees tokens enough.
Plan make_plan(Chapter chapter, const Settings& settings, const std::string& size, const Calibration& calibration,
               double spent);
std::string choose_size(Chapter chapter, const Settings& settings, double nano_seconds_of_token);

/// The job of a stage. What it goes on from and where passages lie is relative to the folder of its file:
/// ../runs/TRIAL-pretrain, ../passages/train.jsonl; `runs`: the folder in place of "runs".
training::JobFile job_of(const Plan& plan, const Trial& trial, Stage stage, const std::string& runs = "runs");
/// "encoder-sha-classify"; of stacks with one stage the trial's own.
std::string run_name(const Trial& trial, Stage stage);

/// The job cut down to the few steps that tell how long one takes.
training::JobFile to_time(training::JobFile job);

/// A training step of chapter 2's Table 2.3: as many embeddings as the thesis has, equal sizes else.
inline constexpr std::int64_t kLargeVocabulary = 50'265;
std::vector<std::string> timed_models();
training::JobFile timing_job(const Plan& plan, const Model& model);

std::string to_json(const Plan& plan);
Plan plan_from_json(Chapter chapter, const std::string& text, const std::string& where);

}  // namespace headscope::reproduce::thesis

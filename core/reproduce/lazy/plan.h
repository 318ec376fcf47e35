// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a replay of "Attention Needs to Focus" (Lazy Attention) trains and measures, so that it ends within its minutes:
// planned once from a short calibration, kept in plan.json, and followed on resume. No torch here. Errors: Error
// (format for a plan that is none).

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/reproduce/replay_plan.h"

namespace headscope::reproduce::lazy {

inline constexpr double kNotPrinted = std::numeric_limits<double>::quiet_NaN();

/// What the paper prints of a model; NaN: nothing.
struct Printed {
    double wikitext_340m = kNotPrinted, wikitext_760m = kNotPrinted;  ///< perplexity, Table 1
    double loss = kNotPrinted;                                        ///< Table 2, at a length of 512
    double density = kNotPrinted, sink = kNotPrinted;                 ///< Table 2, in per cent
};

/// A model of Table 1, a row of Table 2, or a Mask@k of Fig. 2.
struct Model {
    std::string_view name;     ///< of its folder: "no-bias"
    std::string_view label;    ///< in figures and in names of files
    std::string_view formula;  ///< its row of Table 2; empty: it is none
    std::string_view preset;   ///< the end of its preset's name: "lazy"
    std::string_view mixer;    ///< instead of the preset's; empty: the preset's own
    std::string_view options;  ///< of its mixer, as JSON; empty: none
    std::string_view as;       ///< the model that takes as long; empty: it is timed itself
    Printed paper;
    std::int64_t mask = -1;  ///< where each sequence has the fixed token, from 0; below 0: nowhere
    bool baseline = false;   ///< without attention weights, trained as minutes allow

    std::string_view timed_as() const { return as.empty() ? name : as; }
};
/// In the order in which they are trained: what the claims need most comes first.
const std::vector<Model>& models();
const Model& model(std::string_view name);
/// Of the seven rows of Table 2, in the paper's order.
std::vector<std::string> table_two();

struct Plan : ReplayPlan {
    Plan() {
        sequence_length = 256;
        batch = 8;
    }

    std::int64_t steps = 0;
    std::int64_t evaluation_tokens = 32768;  ///< of the held-out text, for each length
    std::int64_t mask_id = 0;                ///< the fixed token of Mask@k
    std::vector<std::string> trials;         ///< names of models, in the order in which they are trained
    std::vector<double> trial_seconds;       ///< of each of them, by the calibration
    std::int64_t planned = 0;                ///< time is planned for so many of them; the others come with what is left

    std::int64_t tokens() const { return steps * batch * sequence_length; }  ///< of each run
    /// Of perplexity: 1, 2 and 4 times the training length.
    std::vector<std::int64_t> lengths() const;
};

struct Calibration {
    std::map<std::string, double> step_seconds;  ///< of one training step, by Model::timed_as()
    double run_overhead = 0;                     ///< seconds of a run beside its steps, with what is measured of it
    double end = 60;                             ///< of figures and report
};

/// What is trained in so many minutes: below fifteen none of the baselines, there is no time for them.
std::vector<std::string> trials(double minutes);
/// Steps, equal for all, for the minutes that are left after `spent` seconds. Time is planned for as many trials as
/// leave each of them tokens enough to learn from, for the ten that the claims are about in any case.
Plan make_plan(const Settings& settings, const std::string& size, const Calibration& calibration, double spent);
/// "tiny" where its runs, by the speed of the small ones, would see 2 million tokens each; else "nano".
std::string choose_size(const Settings& settings, double nano_seconds_of_token);

training::JobFile job_of(const Plan& plan, const Model& model);

std::string to_json(const Plan& plan);
Plan plan_from_json(const std::string& text, const std::string& where);

}  // namespace headscope::reproduce::lazy

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a replay of "Neural Attention Search Linear" trains and measures, so that it ends within its minutes: planned
// once from a short calibration, kept in plan.json, and followed on resume. No torch here. Errors: Error (format for a
// plan that is none).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/reproduce/replay_plan.h"

namespace headscope::reproduce::natsl {

/// One of the paper's six models (section 5).
struct Model {
    std::string_view name;   ///< the end of its preset's name: "natsl-hybrid"
    std::string_view label;  ///< as the paper calls it
    double parameters = 0;   ///< millions, as printed
    double wikitext = 0;     ///< perplexity, Table 1
    double retrieval = 0;    ///< mean of six tasks, Table 1
    double ruler[3] = {};    ///< at 4096, 8192 and 16384 tokens, Table 2
};
/// In the order of the reports: NAtS-L Hybrid first, what it is compared with after it.
const std::vector<Model>& models();
const Model& model(std::string_view name);

/// An ablation of Table 4: an option of the mixer.
struct Ablation {
    std::string_view name, label;  ///< "softmax-inside", "Attn Out"
    std::string_view key, value;   ///< of mixers.natsl, the value as JSON
    double retrieval = 0;          ///< mean of Table 4; without ablation 33.49
};
const std::vector<Ablation>& ablations();

/// What a model is trained on.
enum class Task { text, recall };

struct Trial {
    std::string name;  ///< of its folder: "natsl-hybrid-recall"
    std::string model, ablation;
    Task task = Task::text;
    std::string label() const;  ///< "NAtS-L Hybrid", "NAtS-L Hybrid, Attn Out"
};

struct Plan : ReplayPlan {
    Plan() {
        sequence_length = 512;
        batch = 4;
    }

    std::int64_t text_steps = 0, recall_steps = 0;
    std::vector<Trial> trials;  ///< in the order in which they are trained; ablations last
    bool ablations_planned = false;

    std::int64_t steps(Task task) const { return task == Task::text ? text_steps : recall_steps; }
    std::int64_t tokens(Task task) const { return steps(task) * batch * sequence_length; }  ///< of each run
    /// Context lengths of the recall tasks: 1, 2 and 4 times the training length.
    std::vector<std::int64_t> recall_lengths() const;
    /// Of the perplexity by position: 8 times.
    std::int64_t long_length() const { return 8 * sequence_length; }
    std::vector<std::int64_t> latency_lengths() const;
};

struct Calibration {
    std::map<std::string, double> step_seconds;  ///< of one training step, by model
    double run_overhead = 0;                     ///< seconds of a run beside its steps, with what is measured of it
    double end = 60;                             ///< of latency, figures and report
};

/// Both tasks of six models, and the ablations of NAtS-L Hybrid on the recall task.
std::vector<Trial> trials();
/// Steps for the minutes that are left after `spent` seconds: 55 % of the training for text.
Plan make_plan(const Settings& settings, const std::string& size, const Calibration& calibration, double spent);
/// "tiny" where its runs, by the speed of the small ones, would see 2 million tokens each; else "nano".
std::string choose_size(const Settings& settings, double nano_seconds_of_token);

training::JobFile job_of(const Plan& plan, const Trial& trial);

std::string to_json(const Plan& plan);
Plan plan_from_json(const std::string& text, const std::string& where);

}  // namespace headscope::reproduce::natsl

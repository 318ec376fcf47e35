// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A snapshot's content besides the weights, so that a resumed run equals an uninterrupted one to the bit: training.json
// (this struct) and optimizer.safetensors (the running means, and the float32 weights of a bfloat16 job). Order of
// data, dropout and samples are pure functions of seed and step, so no generator's state is stored.

#include <cstdint>
#include <limits>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headscope::training {

inline constexpr const char* kStateName = "training.json";
inline constexpr const char* kOptimizerName = "optimizer.safetensors";

struct TrainingState {
    std::int64_t step = 0;            ///< updates since the run's begin
    std::int64_t optimizer_step = 0;  ///< updates in the running means: fewer after a fork that restarted them
    std::int64_t position = 0;        ///< sequences read: the next one's number
    std::int64_t tokens = 0;          ///< seen
    double seconds = 0;               ///< of training, without pauses
    std::int64_t begin_step = 0;      ///< of this run: the snapshot's step in a fork
    double begin_seconds = 0;         ///< likewise: minutes count from there
    double peak_rate = 0;             ///< the schedule's, from the job or a request
    std::int64_t planned_steps = 0;   ///< 0: a job of minutes before its first plan
    double validation = std::numeric_limits<double>::quiet_NaN();  ///< loss at this step
    /// evaluation.metric at this step, its sign such that lower is better; so are the best and the least.
    double score = std::numeric_limits<double>::quiet_NaN();
    double best_validation = std::numeric_limits<double>::infinity();
    std::int64_t best_step = -1;
    double least_validation = std::numeric_limits<double>::infinity();  ///< of the evaluations that patience counts
    std::int64_t waited = 0;  ///< of these, since that one; 0 without patience
    std::string job;          ///< TOML, every key written out
    std::string data_hash;    ///< of the data that the position is in
    std::string layout;       ///< layout_hash() of the model
    std::string program_version;
};

nlohmann::json state_json(const TrainingState& state);
/// Throws Error format for what is none; `where` names it.
TrainingState read_state(const nlohmann::json& document, const std::string& where);

}  // namespace headscope::training

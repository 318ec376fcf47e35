// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/training_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"

namespace headscope::training {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "headscope-training";

json number(double value) {
    return std::isfinite(value) ? json(value) : json();
}

}  // namespace

json state_json(const TrainingState& state) {
    return {{"format", kFormat},
            {"format_version", 1},
            {"step", state.step},
            {"optimizer_step", state.optimizer_step},
            {"position", state.position},
            {"tokens", state.tokens},
            {"seconds", state.seconds},
            {"begin_step", state.begin_step},
            {"begin_seconds", state.begin_seconds},
            {"peak_rate", state.peak_rate},
            {"planned_steps", state.planned_steps},
            {"validation", number(state.validation)},
            {"score", number(state.score)},
            {"best_validation", number(state.best_validation)},
            {"best_step", state.best_step},
            {"least_validation", number(state.least_validation)},
            {"waited", state.waited},
            {"job", state.job},
            {"data_hash", state.data_hash},
            {"layout", state.layout},
            {"program_version", state.program_version}};
}

TrainingState read_state(const json& document, const std::string& where) {
    const JsonView view(document, where);
    if (view.string_or("format", "") != kFormat) view.refuse(ErrorCode::format, "expected the state of a training run");
    if (view.at("format_version").integer() != 1)
        view.at("format_version").refuse(ErrorCode::unsupported, "expected version 1, the one that this program knows");
    const IntegerRange counts{0, std::int64_t{1} << 53U};  // sums and products of them stay numbers
    TrainingState state;
    state.step = view.at("step").integer(counts);
    state.optimizer_step = view.at("optimizer_step").integer(counts);
    state.position = view.at("position").integer(counts);
    state.tokens = view.at("tokens").integer(counts);
    state.seconds = view.at("seconds").number(0);
    state.begin_step = view.integer_or("begin_step", 0, counts);  // older states lack the two
    state.begin_seconds = view.number_or("begin_seconds", 0, 0);
    state.peak_rate = view.at("peak_rate").number(0);
    state.planned_steps = view.at("planned_steps").integer(counts);
    state.validation = view.number_or("validation", std::numeric_limits<double>::quiet_NaN());
    state.score = view.number_or("score", state.validation);  // older states follow the loss
    state.best_validation = view.number_or("best_validation", std::numeric_limits<double>::infinity());
    state.best_step = view.at("best_step").integer({-1, counts.highest});
    state.least_validation = view.number_or("least_validation", std::numeric_limits<double>::infinity());
    state.waited = view.integer_or("waited", 0, counts);  // older states lack the two
    state.job = view.at("job").string();
    state.data_hash = view.at("data_hash").string();
    state.layout = view.at("layout").string();
    state.program_version = view.at("program_version").string();
    return state;
}

}  // namespace headscope::training

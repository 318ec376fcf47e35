// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/run/run_layout.h"

#include <algorithm>

namespace headscope::store {

const std::vector<RunColumn<RunSnapshot>>& snapshot_columns() {
    using R = RunSnapshot;
    static const std::vector<RunColumn<R>> columns{
        {"step", &R::step, "", "updates behind the snapshot"},
        {"name", &R::name, "", "folder in snapshots/; older ones may be gone"},
        {"bytes", &R::bytes, "byte", "size of the folder"},
        {"seconds", &R::seconds, "s", "time that writing it took"},
        {"best", &R::best, "", "1: least validation loss so far"}};
    return columns;
}

const std::vector<RunColumn<RunControl>>& control_columns() {
    using R = RunControl;
    static const std::vector<RunColumn<R>> columns{{"time", &R::time, "s", "seconds since 1970, UTC"},
                                                   {"step", &R::step, "", "it took effect after this update"},
                                                   {"action", &R::action, "", "what was asked for"},
                                                   {"value", &R::value, "", "its value, as written"},
                                                   {"outcome", &R::outcome, "", "what was done about it"}};
    return columns;
}

const std::vector<RunColumn<RunSample>>& sample_columns() {
    using R = RunSample;
    static const std::vector<RunColumn<R>> columns{
        {"step", &R::step, "", "updates before it"},
        {"prompt", &R::prompt, "", "text that was given", kLongestSample},
        {"text", &R::text, "", "what the model went on with", kLongestSample}};
    return columns;
}

const std::vector<RunColumn<RunLogLine>>& log_columns() {
    using R = RunLogLine;
    static const std::vector<RunColumn<R>> columns{{"time", &R::time, "s", "seconds since 1970, UTC"},
                                                   {"step", &R::step, "", "updates before it"},
                                                   {"level", &R::level, "", "note, warning or error"},
                                                   {"text", &R::text, "", "the message"}};
    return columns;
}

const std::vector<RunSeries<RunSteps>>& training_series() {
    using T = RunSteps;
    static const std::vector<RunSeries<T>> series{
        {"tokens", &T::tokens, "token", "tokens seen"},
        {"loss", &T::loss, "nat", "mean loss of the step's batch, before its update"},
        {"learning_rate", &T::learning_rate, "", "learning rate of the update"},
        {"gradient_norm", &T::gradient_norm, "", "norm of all gradients before clipping"},
        {"tokens_per_second", &T::tokens_per_second, "s-1", "tokens learned from in a second"},
        {"seconds", &T::seconds, "s", "time of training, without pauses"},
        {"memory", &T::memory, "byte", "resident memory"},
        {"accuracy", &T::accuracy, "1", "share of the batch's targets that the model said; NaN: not measured", true}};
    return series;
}

const std::vector<RunSeries<RunValidations>>& validation_series() {
    using T = RunValidations;
    static const std::vector<RunSeries<T>> series{
        {"loss", &T::loss, "nat", "mean loss on held-out text"},
        {"tokens", &T::tokens, "token", "tokens that it is a mean over"},
        {"seconds", &T::seconds, "s", "time that it took"},
        {"accuracy", &T::accuracy, "1", "share of the targets that the model said; NaN: not measured", true}};
    return series;
}

const std::vector<RunText>& run_texts() {
    using R = RunRecord;
    static const std::vector<RunText> texts{
        {"state", &R::state},         {"state_text", &R::state_text}, {"program_version", &R::program_version},
        {"created", &R::created},     {"model_type", &R::model_type}, {"machine", &R::machine},
        {"data_hash", &R::data_hash}, {"device", &R::device, true},   {"kernels", &R::kernels, true}};
    return texts;
}

const std::vector<RunNumber>& run_numbers() {
    using R = RunRecord;
    static const std::vector<RunNumber> numbers{{"parameters", &R::parameters},
                                                {"threads", &R::threads},
                                                {"processes", &R::processes},
                                                {"planned_steps", &R::planned_steps},
                                                {"resumed", &R::resumed}};
    return numbers;
}

const std::vector<SiteText>& site_texts() {
    static const std::vector<SiteText> texts{{"stack", &Site::stack, "text, encoder or decoder"},
                                             {"kind", &Site::kind, "self or cross"},
                                             {"branch", &Site::branch, "empty, softmax, linear or difference"},
                                             {"query_stream", &Site::query_stream, "token sequence of the queries"},
                                             {"key_stream", &Site::key_stream, "token sequence of the keys"}};
    return texts;
}

const std::vector<SiteNumber>& site_numbers() {
    static const std::vector<SiteNumber> numbers{
        {"layer", &Site::layer, "layer that the site belongs to"},
        {"heads", &Site::heads, "query heads"},
        {"key_value_heads", &Site::key_value_heads, "key-value heads"},
        {"key_size", &Site::key_size, "size of a head's keys"},
        {"value_size", &Site::value_size, "size of a head's values"},
        {"causal", &Site::causal, "1: a query sees no later key"},
        {"has_matrix", &Site::has_matrix, "0: no attention matrix, all values absent"},
        {"has_implicit", &Site::has_implicit, "1: a recurrent layer's signed matrix, which has some indicators", true}};
    return numbers;
}

bool is_indicator_name(std::string_view name) {
    if (name.empty() || name.size() > 64 || name == "step" || name == "seconds" || name == "thumbnails") return false;
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::int64_t indicator_width(std::string_view name) {
    return name == "head_diversity" ? 0 : name == "local_focus" ? 4 : 1;
}

}  // namespace headscope::store

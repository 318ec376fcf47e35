// SPDX-License-Identifier: GPL-3.0-or-later
// Checks of values against the table of keys, and of keys against each other.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/schedule.h"

namespace headscope::training {
namespace {

using nlohmann::json;

constexpr double kMostStepTokens = 1e12;

[[noreturn]] void refuse(const json& value, const std::string& place, const std::string& expected) {
    throw Error(ErrorCode::format, place, "expected " + expected, "found " + escaped(toml_value(value), 80));
}

void check_fixed_token(const json& value, const std::string& place) {
    for (const auto& [name, number] : value.items()) {
        if (name != "position" && name != "id") refuse(value, place, "nothing but position and id");
        if (!number.is_number_integer() || number < 0)
            refuse(number, place, "a whole number from 0 for the fixed token's " + name);
    }
    if (!value.contains("position")) refuse(value, place, "a table with the fixed token's position: { position = 2 }");
}

void check_generator(const json& value, const std::string& place) {
    if (!value.contains("name") || !value["name"].is_string())
        refuse(value, place, "a table with the generator's name: { name = \"induction\" }");
    for (const auto& [name, option] : value.items())
        if (name != "name" && !option.is_number() && !option.is_boolean())
            refuse(option, place, "a number for the generator's option " + escaped(name));
}

void check_mixers(const json& value, const std::string& place) {
    for (const auto& [name, options] : value.items())
        if (!options.is_object()) refuse(options, place, "a table of options for the mixer " + escaped(name));
    const json guided = value.value("fixed_seq_qk", json::object());
    if (guided.contains("text") && (!guided["text"].is_string() || guided["text"] == ""))
        refuse(guided["text"], place, "a path for fixed_seq_qk's text");
}

void check_head(const json& value, const std::string& place) {
    for (const auto& [name, inside] : value.items()) {
        if (name == "kind" ? inside.is_string() : name == "classes" && inside.is_number_integer() && inside > 0)
            continue;
        refuse(value, place, "a table of kind and classes: { kind = \"token_classes\", classes = 3 }");
    }
}

std::string pointer_of(const std::string& name) {
    std::string pointer = "/" + name;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    return pointer;
}

bool has_place(const JobFile& job, const std::string& name) {
    return job.places.contains(pointer_of(name));
}

std::string place_of_key(const JobFile& job, const std::string& name) {
    const auto found = job.places.find(pointer_of(name));
    return (found == job.places.end() ? job.where : place_text(job.where, found->second)) + ": " + name;
}

[[noreturn]] void contradiction(const JobFile& job, const std::string& key, const std::string& expected,
                                const std::string& found) {
    throw Error(ErrorCode::usage, place_of_key(job, key), "expected " + expected, "found " + found);
}

/// Refuses keys of another objective, and an end by evaluations without evaluations.
void check_objective(const JobFile& job) {
    const data::ObjectiveSettings &objective = job.data.objective, standard;
    const auto of = [&](const char* key, const char* kind, bool said) {
        if (said && objective.kind != kind)
            contradiction(job, std::string("objective.") + key,
                          std::string("objective.kind = \"") + kind + "\" beside it", escaped(objective.kind));
    };
    of("mask", "masked", objective.mask != standard.mask);
    of("shuffle", "shuffle_random", objective.shuffle != standard.shuffle);
    of("random", "shuffle_random", objective.random != standard.random);
    of("classes", "classify", objective.classes != standard.classes);
    of("stride", "spans", objective.stride != standard.stride);
    const auto column = [&](const char* key, const char* kind, bool given, bool read) {
        if (given && !read)
            contradiction(job, std::string("data.") + key, std::string(kind) + " beside it", escaped(objective.kind));
    };
    const bool items = kind_of(objective).reads_items();
    const bool translates = kind_of(objective).translates;
    column("column", "an objective that reads text", job.data.column != data::DataSettings().column, !items);
    column("source", "objective.kind = \"translation\"", objective.source != standard.source, translates);
    column("target", "objective.kind = \"translation\"", objective.target != standard.target, translates);
    if (!kind_of(objective).reads_stream() && job.data.fixed_token)
        contradiction(job, "data.fixed_token", "objective.kind = \"next_token\" beside it", escaped(objective.kind));
    const bool held_out = job.data.validation > 0 || !job.data.validation_files.empty() || job.data.generator;
    const bool evaluates = job.evaluation.evaluates();
    if (job.evaluation.patience > 0 && (!evaluates || !held_out))
        contradiction(job, "evaluation.patience", "held-out text, and evaluation.every above 0, beside it",
                      evaluates ? "data.validation = 0" : "evaluation.every = 0");
    const std::vector<std::string> metrics = metrics_of(objective);
    if (std::find(metrics.begin(), metrics.end(), job.evaluation.metric) == metrics.end())
        contradiction(
            job, "evaluation.metric",
            "one of " + list_text(metrics, metrics.size()) + " with objective.kind = " + escaped(objective.kind),
            escaped(job.evaluation.metric));
    if (job.evaluation.every && job.evaluation.every_epochs)
        contradiction(job, "evaluation.every_epochs", "one of every and every_epochs", "both");
}

void check_warmup(const JobFile& job) {
    const ScheduleSettings& schedule = job.schedule;
    const int warmups =
        (schedule.warmup_steps ? 1 : 0) + (schedule.warmup_tokens ? 1 : 0) + (schedule.warmup_share ? 1 : 0);
    if (warmups > 1)
        contradiction(job, schedule.warmup_share ? "schedule.warmup_share" : "schedule.warmup_tokens",
                      "one of warmup_steps, warmup_tokens and warmup_share", std::to_string(warmups) + " of them");
    if (schedule.warmup_share && job.training.minutes)
        contradiction(job, "schedule.warmup_share", "training.steps, tokens or epochs with it", "training.minutes");
}

}  // namespace

json checked_value(const JobKey& key, const json& value, const std::string& place) {
    json checked = headscope::checked_value(static_cast<const Option&>(key), value, place);
    if (key.name == "fixed_token") check_fixed_token(checked, place);
    if (key.name == "generator") check_generator(checked, place);
    if (key.name == "mixers") check_mixers(checked, place);
    if (key.name == "head") check_head(checked, place);
    return checked;
}

void check_sizes(const JobFile& job) {
    // As doubles: the product may exceed 64 bits.
    const double tokens = static_cast<double>(job.training.batch) * static_cast<double>(job.training.accumulate) *
                          static_cast<double>(job.data.sequence_length);
    if (tokens <= kMostStepTokens) return;
    throw Error(ErrorCode::limit, place_of_key(job, "training.batch"),
                "expected at most " + plain_number(kMostStepTokens) +
                    " tokens in an update (batch, times accumulate, times data.sequence_length)",
                "found " + plain_number(tokens));
}

void check_together(const JobFile& job) {
    check_sizes(job);
    const auto& training = job.training;
    const int lengths =
        (training.steps ? 1 : 0) + (training.tokens ? 1 : 0) + (training.minutes ? 1 : 0) + (training.epochs ? 1 : 0);
    if (lengths != 1) {
        contradiction(job,
                      training.epochs    ? "training.epochs"
                      : training.minutes ? "training.minutes"
                                         : "training.tokens",
                      "one of steps, tokens, minutes and epochs", std::to_string(lengths) + " of them");
    }
    check_warmup(job);
    if (!job.model.preset.empty() && !job.model.from.empty())
        contradiction(job, "model.from", "either preset or from", "both");
    if (!job.model.layers.empty() && !job.model.mixer.empty())
        contradiction(job, "model.layers", "either layers, or mixer and layout", "both");
    if (!job.model.layers.empty() && !job.model.layout.empty())
        contradiction(job, "model.layers", "either layers, or mixer and layout", "both");
    const int data = (job.data.text.empty() ? 0 : 1) + (job.data.corpus.empty() ? 0 : 1) + (job.data.generator ? 1 : 0);
    if (data != 1) {
        contradiction(job, "data", "one of text, corpus and generator to train on",
                      data == 0 ? "none" : std::to_string(data) + " of them");
    }
    check_objective(job);
    if (!schedule_kind(job.schedule).falls_at_end && job.schedule.decay_share != ScheduleSettings().decay_share)
        contradiction(job, "schedule.decay_share", "schedule.kind = \"wsd\" beside it", escaped(job.schedule.kind));
    const double peak = job.optimizer.learning_rate;
    if (job.schedule.minimum_rate > peak)
        contradiction(job, "schedule.minimum_rate", "a rate of at most the learning rate, " + plain_number(peak),
                      plain_number(job.schedule.minimum_rate));
    if (job.schedule.warmup_start > peak)
        contradiction(job, "schedule.warmup_start", "a rate of at most the learning rate, " + plain_number(peak),
                      plain_number(job.schedule.warmup_start));
}

Error error_at_key(const JobFile& job, const std::string& key, const Error& error) {
    return {error.code(), place_of_key(job, key) + (error.where().empty() ? "" : ": " + error.where()),
            error.expected(), error.found()};
}

Error error_in_data(const JobFile& job, const Error& error) {
    const std::string& where = error.where();
    for (const JobKey& key : job_keys()) {
        const std::string name = key.full_name();
        if ((key.section != "data" && key.section != "objective") || !where.starts_with(name)) continue;
        // "data.generator NAME, OPTION": an option has a place of its own.
        const std::size_t comma = key.kind == OptionKind::table ? where.find(", ") : std::string::npos;
        const std::string option = comma == std::string::npos ? "" : name + "." + where.substr(comma + 2);
        if (!option.empty() && has_place(job, option))
            return {error.code(), place_of_key(job, option), error.expected(), error.found()};
        return {error.code(), place_of_key(job, name) + where.substr(name.size()), error.expected(), error.found()};
    }
    const data::DataSettings& data = job.data;
    const std::string source = data.generator
                                   ? (has_place(job, "data.generator.name") ? "data.generator.name" : "data.generator")
                               : data.text.empty() ? "data.corpus"
                                                   : "data.text";
    if (where == "data") return {error.code(), place_of_key(job, source), error.expected(), error.found()};
    const auto begins = [&](const std::string& path) { return where.starts_with(shown(path)); };
    if (std::any_of(data.validation_files.begin(), data.validation_files.end(), begins))
        return error_at_key(job, "data.validation", error);
    return error_at_key(job, begins(data.tokenizer) ? "data.tokenizer" : source, error);
}

}  // namespace headscope::training

// SPDX-License-Identifier: GPL-3.0-or-later
// Checks of single values against the table of keys, and of keys against each other.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/os_error.h"
#include "core/base/text.h"
#include "core/training/job/job_keys.h"

namespace headscope::training {
namespace {

using nlohmann::json;

constexpr double kMostStepTokens = 1e12;

std::string number_text(double value) {
    std::array<char, 64> buffer{};
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), result.ptr};
}

/// "a number above 0 and up to 1".
std::string range_text(const JobKey& key, const char* what) {
    const bool low = std::isfinite(key.lowest), high = std::isfinite(key.highest);
    std::string text = what;
    if (low) text += (key.above ? " above " : " from ") + number_text(key.lowest);
    if (high) text += (low ? (key.above ? " and up to " : " to ") : " up to ") + number_text(key.highest);
    return text;
}

class Checker {
public:
    Checker(const JobKey& key, const std::string& place) : key_(key), place_(place) {}

    json check(const json& value) const {
        switch (key_.kind) {
            case KeyKind::boolean:
                if (!value.is_boolean()) refuse(value, "true or false");
                return value;
            case KeyKind::integer:
                return integer(value);
            case KeyKind::number:
                return number(value);
            case KeyKind::text:
                return text(value, "a text");
            case KeyKind::path:
                return text(value, "a path as a text");
            case KeyKind::choice:
                return choice(value);
            case KeyKind::texts:
                return list(value, [&](const json& item) { return text(item, "a list of texts"); });
            case KeyKind::paths:
                return list(value, [&](const json& item) { return text(item, "a list of paths"); });
            case KeyKind::choices:
                return list(value, [&](const json& item) { return choice(item); });
            case KeyKind::pair:
                return pair(value);
            case KeyKind::share_or_paths:
                if (value.is_number()) return number(value);
                return list(value, [&](const json& item) { return text(item, "a share or a list of paths"); });
            case KeyKind::table:
                return table(value);
        }
        return value;
    }

private:
    json integer(const json& value) const {
        const std::string wanted = range_text(key_, "a whole number");
        if (!value.is_number() || (value.is_number_float() && std::floor(value.get<double>()) != value.get<double>()))
            refuse(value, wanted);
        in_range(value, wanted);
        return value.is_number_float() ? json(static_cast<std::int64_t>(value.get<double>())) : value;
    }

    json number(const json& value) const {
        const std::string wanted = range_text(key_, "a number");
        if (!value.is_number()) refuse(value, wanted);
        in_range(value, wanted);
        return value.get<double>();
    }

    void in_range(const json& value, const std::string& wanted) const {
        const auto number = value.get<double>();
        const bool inside = number <= key_.highest && (key_.above ? number > key_.lowest : number >= key_.lowest);
        if (!inside) throw Error(ErrorCode::limit, place_, "expected " + wanted, "found " + toml_value(value));
    }

    json text(const json& value, const char* wanted) const {
        if (!value.is_string()) refuse(value, wanted);
        if (value.get_ref<const std::string&>().find('\0') != std::string::npos)
            throw Error(ErrorCode::format, place_, std::string("expected ") + wanted, "found a NUL character in it");
        // Jobs are kept as TOML, which is UTF-8: other text could not be resumed.
        if (find_invalid_utf8(value.get_ref<const std::string&>()) != std::string_view::npos)
            throw Error(ErrorCode::format, place_, std::string("expected ") + wanted + " in UTF-8",
                        "found " + escaped(value.get_ref<const std::string&>()));
        return value;
    }

    json choice(const json& value) const {
        if (value.is_string()) {
            const auto& word = value.get_ref<const std::string&>();
            if (std::find(key_.choices.begin(), key_.choices.end(), word) != key_.choices.end()) return value;
            const std::string near = nearest_word(word, key_.choices);
            refuse(value, "one of " + list_text(key_.choices, 30) + (near.empty() ? "" : " (" + near + "?)"));
        }
        refuse(value, "one of " + list_text(key_.choices, 30));
    }

    template <class Item>
    json list(const json& value, Item item) const {
        json items = json::array();
        if (!value.is_array()) {
            items.push_back(item(value));
            return items;
        }
        for (const json& entry : value) items.push_back(item(entry));
        if (items.empty()) refuse(value, "at least one entry");
        return items;
    }

    json pair(const json& value) const {
        if (!value.is_array() || value.size() != 2) refuse(value, "a list of two numbers");
        return json::array({number(value[0]), number(value[1])});
    }

    json table(const json& value) const {
        if (!value.is_object()) refuse(value, "a table { ... }");
        // The model's configuration says what these may hold.
        if (key_.name == "rope_parameters" || key_.name == "embedding") return value;
        if (key_.name == "fixed_token") return fixed_token(value);
        if (key_.name == "generator") {
            if (!value.contains("name") || !value["name"].is_string())
                refuse(value, "a table with the generator's name: { name = \"induction\" }");
            for (const auto& [name, option] : value.items())
                if (name != "name" && !option.is_number() && !option.is_boolean())
                    refuse(option, "a number for the generator's option " + escaped(name));
        } else {
            for (const auto& [name, options] : value.items())
                if (!options.is_object()) refuse(options, "a table of options for the mixer " + escaped(name));
        }
        return value;
    }

    json fixed_token(const json& value) const {
        for (const auto& [name, number] : value.items()) {
            if (name != "position" && name != "id") refuse(value, "nothing but position and id");
            if (!number.is_number_integer() || number < 0)
                refuse(number, "a whole number from 0 for the fixed token's " + name);
        }
        if (!value.contains("position")) refuse(value, "a table with the fixed token's position: { position = 2 }");
        return value;
    }

    [[noreturn]] void refuse(const json& value, const std::string& wanted) const {
        throw Error(ErrorCode::format, place_, "expected " + wanted, "found " + escaped(toml_value(value), 80));
    }

    const JobKey& key_;
    const std::string& place_;
};

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

/// Keys of one objective beside another are a misunderstanding, as is an end by evaluations of which there are none.
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
    if (objective.kind != "next_token" && job.data.fixed_token)
        contradiction(job, "data.fixed_token", "objective.kind = \"next_token\" beside it", escaped(objective.kind));
    const bool held_out = job.data.validation > 0 || !job.data.validation_files.empty() || job.data.generator;
    if (job.evaluation.patience > 0 && (job.evaluation.every == 0 || !held_out))
        contradiction(job, "evaluation.patience", "held-out text, and evaluation.every above 0, beside it",
                      job.evaluation.every == 0 ? "evaluation.every = 0" : "data.validation = 0");
}

}  // namespace

json checked_value(const JobKey& key, const json& value, const std::string& place) {
    return Checker(key, place).check(value);
}

void check_sizes(const JobFile& job) {
    // As numbers: the product of the three may pass 64 bits.
    const double tokens = static_cast<double>(job.training.batch) * static_cast<double>(job.training.accumulate) *
                          static_cast<double>(job.data.sequence_length);
    if (tokens <= kMostStepTokens) return;
    throw Error(ErrorCode::limit, place_of_key(job, "training.batch"),
                "expected at most " + number_text(kMostStepTokens) +
                    " tokens in an update (batch, times accumulate, times data.sequence_length)",
                "found " + number_text(tokens));
}

void check_together(const JobFile& job) {
    check_sizes(job);
    const auto& training = job.training;
    const int lengths = (training.steps ? 1 : 0) + (training.tokens ? 1 : 0) + (training.minutes ? 1 : 0);
    if (lengths != 1) {
        contradiction(job, training.minutes ? "training.minutes" : "training.tokens",
                      "one of steps, tokens and minutes", std::to_string(lengths) + " of them");
    }
    if (job.model.preset.empty() == job.model.from.empty())
        contradiction(job, "model.from", "either preset or from", job.model.from.empty() ? "none" : "both");
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
    if (job.schedule.kind != "wsd" && job.schedule.decay_share != ScheduleSettings().decay_share)
        contradiction(job, "schedule.decay_share", "schedule.kind = \"wsd\" beside it", escaped(job.schedule.kind));
    const double peak = job.optimizer.learning_rate;
    if (job.schedule.minimum_rate > peak)
        contradiction(job, "schedule.minimum_rate", "a rate of at most the learning rate, " + number_text(peak),
                      number_text(job.schedule.minimum_rate));
    if (job.schedule.warmup_start > peak)
        contradiction(job, "schedule.warmup_start", "a rate of at most the learning rate, " + number_text(peak),
                      number_text(job.schedule.warmup_start));
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
        // "data.generator NAME, OPTION": an option stands at a place of its own.
        const std::size_t comma = key.kind == KeyKind::table ? where.find(", ") : std::string::npos;
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

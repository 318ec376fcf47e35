// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/job/job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/nearest_word.h"
#include "core/base/text/text.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/schedule.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kLargestJob = 1'000'000;

// The parts of kGuideText.
constexpr const char *kGuidedMixer = "fixed_seq_qk", *kTextOption = "text";

/// Keys of which one stands instead of the others.
const std::vector<std::vector<std::string>> kAlternatives = {
    {"training.steps", "training.tokens", "training.minutes", "training.epochs"},
    {"schedule.warmup_steps", "schedule.warmup_tokens", "schedule.warmup_share"},
    {"evaluation.every", "evaluation.every_epochs"},
    {"data.text", "data.corpus", "data.generator"},
    {"model.preset", "model.from"},
    {"model.layers", "model.mixer"},
    {"model.layers", "model.layout"},
};

std::set<std::string> sections() {
    std::set<std::string> names;
    for (const JobKey& key : job_keys())
        if (!key.section.empty()) names.insert(key.section);
    return names;
}

/// The nearest name in the section; else the same or a near name of another section, in full.
std::string nearest_key(const std::string& section, const std::string& name) {
    std::vector<std::string> here, all;
    for (const JobKey& key : job_keys()) {
        if (key.section == section) here.push_back(key.name);
        all.push_back(key.name);
    }
    if (section.empty())
        for (const auto& other : sections()) here.push_back(other);
    if (const std::string near = nearest_word(name, here); !near.empty())
        return section.empty() ? near : section + "." + near;
    const std::string near = nearest_word(name, all);
    for (const JobKey& key : job_keys())
        if (!near.empty() && key.name == near) return key.full_name();
    return "";
}

[[noreturn]] void refuse_unknown(const std::string& place, const std::string& section, const std::string& name) {
    const std::string near = nearest_key(section, name);
    throw Error(ErrorCode::format, place,
                "expected a key of " + (section.empty() ? std::string("a job") : "[" + section + "]") +
                    (near.empty() ? "; headscope list job-keys has them all" : "; is " + near + " meant?"),
                "found " + escaped(name));
}

/// True for a tokenizer that is made here, not a path.
bool is_made(const std::string& tokenizer) {
    return tokenizer == "bytes" || tokenizer.starts_with("train:");
}

/// True for a value that is no path though its key may hold one.
bool names_no_path(const JobKey& key, const std::string& value) {
    return key.full_name() == "data.tokenizer" && is_made(value);
}

/// `value` with its relative paths made absolute, from `base`.
json absolute(const JobKey& key, json value, const fs::path& base) {
    const auto change = [&](json& text) {
        const auto& path = text.get_ref<const std::string&>();
        if (path.empty() || names_no_path(key, path) || fs::path(path).is_absolute()) return;
        std::error_code error;
        const fs::path from = base.empty() ? fs::current_path(error) : fs::absolute(base, error);
        text = (from / path).lexically_normal().string();
        // The part before what was written may be any bytes; jobs are kept as TOML, which is UTF-8.
        if (find_invalid_utf8(text.get_ref<const std::string&>()) != std::string_view::npos)
            throw Error(ErrorCode::usage, key.full_name(), "expected a path in UTF-8",
                        "found " + escaped(text.get_ref<const std::string&>(), 4096));
    };
    const bool paths =
        key.kind == OptionKind::path || key.kind == OptionKind::paths || key.kind == OptionKind::share_or_paths;
    if (key.full_name() == "model.mixers" && value.contains(kGuidedMixer) && value[kGuidedMixer].contains(kTextOption))
        change(value[kGuidedMixer][kTextOption]);
    if (!paths || value.is_null()) return value;
    if (value.is_string()) change(value);
    if (value.is_array())
        for (json& item : value) change(item);
    return value;
}

/// Default of schedule.minimum_rate.
double standard_minimum(const JobFile& job) {
    if (schedule_kind(job.schedule).to_zero) return 0;
    return std::min(ScheduleSettings().minimum_rate, job.optimizer.learning_rate / 10);
}

/// Default of data.sequence_length.
std::int64_t standard_length(const JobFile& job) {
    if (!kind_of(job.data.objective).spans) return data::DataSettings().sequence_length;
    constexpr std::int64_t usual = 384;  // of SQuAD (Devlin et al. 2019)
    const auto positions = job.model.config.find("max_position_embeddings");
    if (positions == job.model.config.end() || !positions->is_number_integer()) return usual;
    return std::min(usual, positions->get<std::int64_t>());
}

/// Clears the alternatives of `name`, except keys in `keep`: two that were both written are reported later.
void clear_alternatives(JobFile& job, const std::string& name, const std::set<std::string>& keep) {
    for (const auto& group : kAlternatives) {
        if (std::find(group.begin(), group.end(), name) == group.end()) continue;
        for (const auto& other : group)
            if (other != name && !keep.contains(other)) find_key(other)->set(job, nullptr);
    }
    // A mixer without a layout is everywhere.
    const bool of_mixer = name == "model.mixer" || name == "model.layout";
    if (of_mixer && job.model.layers.empty() && job.model.layout.empty()) job.model.layout = "uniform";
}

class Reader {
public:
    Reader(const TomlDocument& document, JobFile& job) : document_(document), job_(job) {}

    void read() {
        const auto known = sections();
        for (const auto& [name, value] : document_.values().items()) {
            if (known.contains(name)) {
                if (!value.is_object())
                    throw Error(ErrorCode::format, place("/" + name, name), "expected the section [" + name + "]",
                                "found " + escaped(toml_value(value), 80));
                for (const auto& [key, inside] : value.items()) read_key(name, key, inside);
            } else {
                read_key("", name, value);
            }
        }
        // Said beside the list that it is about, it says nothing more.
        if (job_.model.layout == "custom" && given_.contains("model.layers")) given_.erase("model.layout");
        for (const std::string& name : given_) clear_alternatives(job_, name, given_);
        if (!given_.contains("schedule.minimum_rate")) job_.schedule.minimum_rate = standard_minimum(job_);
        if (!given_.contains("data.sequence_length")) job_.data.sequence_length = standard_length(job_);
        job_.tokenizer_given = given_.contains("data.tokenizer");
        if (!job_.tokenizer_given) job_.data.tokenizer = standard_tokenizer(job_);
    }

private:
    void read_key(const std::string& section, const std::string& name, const json& value) {
        const std::string full = section.empty() ? name : section + "." + name;
        const std::string pointer = section.empty() ? "/" + name : "/" + section + "/" + name;
        const JobKey* key = find_key(full);
        // Names are looked up as they are; a name with a point in quotes is no section and key.
        if (key == nullptr || key->section != section) refuse_unknown(place(pointer, full), section, name);
        key->set(job_, checked_value(*key, value, place(pointer, full)));
        given_.insert(full);
    }

    std::string place(const std::string& pointer, const std::string& name) const {
        const auto found = document_.places.find(pointer);
        const TextPlace at = found == document_.places.end() ? TextPlace{} : found->second;
        return place_text(job_.where, at) + ": " + escaped(name);
    }

    const TomlDocument& document_;
    JobFile& job_;
    std::set<std::string> given_;
};

/// The value of --set: TOML, or the text itself.
json parse_value(const JobKey& key, const std::string& text, const std::string& place) {
    const bool wants_text =
        key.kind == OptionKind::text || key.kind == OptionKind::choice || key.kind == OptionKind::path;
    try {
        const TomlDocument document = parse_toml("value = " + text, place);
        const json& value = document.values().at("value");
        if (document.values().size() == 1 && (!wants_text || value.is_string())) return value;
    } catch (const Error&) {
    }
    return text;
}

/// The key that `name` begins with, and what follows it inside a table: data.generator.name.
const JobKey* table_key(const std::string& name, std::vector<std::string>& inside) {
    for (const JobKey& key : job_keys()) {
        const std::string prefix = key.full_name() + ".";
        if (key.kind != OptionKind::table || !name.starts_with(prefix)) continue;
        std::string rest = name.substr(prefix.size());
        for (std::size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
            inside.push_back(rest.substr(0, dot));
            rest.erase(0, dot + 1);
        }
        inside.push_back(rest);
        return &key;
    }
    return nullptr;
}

}  // namespace

LossWords loss_words(const data::ObjectiveSettings& objective) {
    return kind_of(objective).loss(objective);
}

bool has_accuracy(const data::ObjectiveSettings& objective) {
    return kind_of(objective).has_accuracy(objective);
}

std::vector<std::string> metrics_of(const data::ObjectiveSettings& objective) {
    std::vector<std::string> metrics{"loss"};
    if (has_accuracy(objective)) metrics.emplace_back("accuracy");
    if (kind_of(objective).spans) metrics.insert(metrics.end(), {"exact_match", "f1"});
    if (kind_of(objective).translates) metrics.emplace_back("bleu");
    if (!kind_of(objective).labels()) return metrics;
    if (objective.classes == 1)
        metrics.emplace_back("spearman");
    else
        metrics.insert(metrics.end(), {"f1", "matthews"});
    return metrics;
}

std::string guide_text(const JobFile& job) {
    const json mixer = job.model.mixers.value(kGuidedMixer, json::object());
    return mixer.value(kTextOption, "");
}

json mixer_options(const JobFile& job) {
    json options = job.model.mixers;
    if (options.contains(kGuidedMixer)) options[kGuidedMixer].erase(kTextOption);
    return options;
}

std::string standard_tokenizer(const JobFile& job) {
    // Generators have a tokenizer of their own, but for items, which are texts.
    const bool items = kind_of(job.data.objective).reads_items();
    if (job.model.from.empty() || (job.data.generator && !items)) return data::DataSettings().tokenizer;
    return is_made(job.model.from) ? "./" + job.model.from : job.model.from;
}

JobFile read_job(std::string_view text, const std::string& where) {
    // Journals and snapshots hold jobs too, and may come from anywhere.
    if (text.size() > kLargestJob)
        throw Error(ErrorCode::limit, where, "expected a job of at most " + size_text(kLargestJob),
                    "found one of " + size_text(text.size()));
    JobFile job;
    job.where = where;
    TomlDocument document = parse_toml(text, where);
    Reader(document, job).read();
    job.places = std::move(document.places);
    check_together(job);
    return job;
}

JobFile read_job_file(const fs::path& path) {
    const std::string text = read_small_file(path, kLargestJob, "job file");
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos)
        throw Error(ErrorCode::format, shown(path) + ": byte " + std::to_string(bad), "expected UTF-8", "found none");
    JobFile job = read_job(text, shown(path));
    job.base = path.has_parent_path() ? path.parent_path() : fs::path(".");
    return job;
}

void set_key(JobFile& job, const std::string& assignment) {
    const std::size_t equal = assignment.find('=');
    const auto trimmed = [](std::string text) {
        const auto first = text.find_first_not_of(" \t");
        if (first == std::string::npos) return std::string();
        return text.substr(first, text.find_last_not_of(" \t") - first + 1);
    };
    const std::string name = trimmed(assignment.substr(0, equal));
    if (equal == std::string::npos || name.empty())
        throw Error(ErrorCode::usage, "--set", "expected section.key=value", "found " + escaped(assignment));
    const std::string place = "--set: " + escaped(name), text = trimmed(assignment.substr(equal + 1));
    std::vector<std::string> inside;
    const JobKey* key = find_key(name);
    if (key == nullptr) key = table_key(name, inside);
    if (key == nullptr) {
        const std::size_t dot = name.find('.');
        const std::string section = dot == std::string::npos ? "" : name.substr(0, dot);
        const bool known = section.empty() || sections().contains(section);
        refuse_unknown(place, known ? section : "", known && dot != std::string::npos ? name.substr(dot + 1) : name);
    }
    json value = parse_value(*key, text, place);
    if (!inside.empty()) {
        json whole = key->get(job);
        if (whole.is_null()) whole = json::object();
        json* at = &whole;
        for (const std::string& part : inside) {
            if (at->is_null()) *at = json::object();
            if (!at->is_object())
                throw Error(ErrorCode::usage, place, "expected a table to set this key in", "found a value");
            at = &(*at)[part];
        }
        *at = value;
        value = whole;
    }
    const std::string full = key->full_name();
    const bool follows_length = job.data.sequence_length == standard_length(job);
    const bool follows = job.schedule.minimum_rate == standard_minimum(job);
    key->set(job, absolute(*key, checked_value(*key, value, place), {}));
    if (follows && (full == "optimizer.learning_rate" || full == "schedule.kind"))
        job.schedule.minimum_rate = standard_minimum(job);
    if (follows_length && (full == "objective.kind" || full == "model.max_position_embeddings"))
        job.data.sequence_length = standard_length(job);
    clear_alternatives(job, full, {});
    job.tokenizer_given |= full == "data.tokenizer";
    if (!job.tokenizer_given) job.data.tokenizer = standard_tokenizer(job);
    std::string pointer = "/" + full;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    job.places.erase(pointer);
}

std::string job_text(const JobFile& job, bool explained) {
    std::string text, section;
    for (const JobKey& key : job_keys()) {
        const json value = key.get(job);
        if (key.section != section) {
            section = key.section;
            text += "\n[" + section + "]\n";
        }
        if (explained) text += "# " + key.help + "\n";
        if (value.is_null()) {
            if (explained) text += "# " + key.name + " =\n";
        } else if (key.kind == OptionKind::table && key.name == "mixers") {
            for (const auto& [mixer, options] : value.items())
                text += key.name + "." + toml_key(mixer) + " = " + toml_value(options) + "\n";
        } else {
            text += key.name + " = " + toml_value(value) + "\n";
        }
    }
    return text;
}

std::string text_but_for_seed(const JobFile& job) {
    std::string text;
    for (const JobKey& key : job_keys()) {
        const json value = key.get(job);
        if (key.may_change || value.is_null() || key.full_name() == "seed") continue;
        text += key.full_name() + " = " + toml_value(value) + "\n";
    }
    return text;
}

JobFile with_absolute_paths(const JobFile& job) {
    JobFile changed = job;
    for (const JobKey& key : job_keys()) key.set(changed, absolute(key, key.get(changed), job.base));
    changed.base.clear();
    return changed;
}

std::vector<std::string> job_differences(const JobFile& job, const JobFile& was, bool only_fixed) {
    std::vector<std::string> all;
    for (const JobKey& key : job_keys()) {
        if (only_fixed && (key.may_change || key.ends_run)) continue;
        const json now = key.get(job), before = key.get(was);
        if (now == before) continue;
        const auto shown_value = [](const json& value) {
            return value.is_null() ? std::string("not given") : escaped(toml_value(value), 80);
        };
        all.push_back(key.full_name() + ": " + shown_value(now) + ", was " + shown_value(before));
    }
    return all;
}

}  // namespace headscope::training

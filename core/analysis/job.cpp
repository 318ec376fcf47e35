// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/job.h"

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "core/base/device_choice.h"
#include "core/model/load/residence.h"

namespace headscope::analysis {
namespace {

using nlohmann::json;

constexpr double kMostTokens = 1 << 24;
constexpr double kMostThreads = 4096;

struct RecordName {
    const char* name;
    bool store::RecordLevels::*level;
};
constexpr RecordName kRecordNames[] = {
    {"maps", &store::RecordLevels::maps},         {"attention", &store::RecordLevels::attention},
    {"states", &store::RecordLevels::states},     {"logits", &store::RecordLevels::logits},
    {"experts", &store::RecordLevels::experts},   {"norms", &store::RecordLevels::norms},
    {"implicit", &store::RecordLevels::implicit}, {"branch-weights", &store::RecordLevels::branches}};

std::vector<std::string> record_names() {
    std::vector<std::string> names;
    for (const auto& one : kRecordNames) names.emplace_back(one.name);
    return names;
}

class JobTable {
public:
    std::vector<JobOption> build() {
        input();
        for (JobOption& option : options_) option.input = true;
        measuring();
        computing();
        return std::move(options_);
    }

private:
    template <class T>
    JobOption& add(const char* name, const char* key, T AnalysisJob::*member, const char* help) {
        JobOption option;
        if constexpr (std::is_same_v<T, std::vector<std::string>>)
            option.kind = OptionKind::texts;
        else
            static_cast<Option&>(option) = Option(name, AnalysisJob().*member);
        option.name = name;
        option.key = key;
        option.member = member;
        option.help = help;
        return options_.emplace_back(std::move(option));
    }

    template <class T>
    JobOption& add(const char* name, T AnalysisJob::*member, const char* help) {
        return add(name, name, member, help);
    }

    template <class T>
    void choice(const char* name, const char* key, T AnalysisJob::*member, std::vector<std::string> choices,
                const char* help) {
        JobOption& option = add(name, key, member, help);
        option.kind = option.kind == OptionKind::texts ? OptionKind::choices : OptionKind::choice;
        option.choices = std::move(choices);
    }

    void count(const char* name, const char* key, std::int64_t AnalysisJob::*member, double lowest, double highest,
               const char* help) {
        JobOption& option = add(name, key, member, help);
        option.lowest = lowest;
        option.highest = highest;
    }

    void device() {
        JobOption option;
        static_cast<Option&>(option) = device_option();
        option.key = "device_requested";
        option.member = &AnalysisJob::device;
        options_.push_back(std::move(option));
    }

    void input() {
        using Job = AnalysisJob;
        add("text", "texts", &Job::texts, "A text; may repeat");
        add("pair", "pairs", &Job::pairs,
            "A second text: each text becomes a pair with it, as the tokenizer joins them; one, or one for each text");
        add("file", "files", &Job::files, "A text file; - is standard input; may repeat");
        add("tokens", &Job::tokens,
            "A JSON array of arrays of ids; needs no tokenizer. Hash embeddings also accept words, or {\"hash\": HEX}");
        add("labels", &Job::labels,
            "Labels of each token of --tokens, for an encoder's head: a JSON array of arrays of numbers, -100 for "
            "none; the file stores the loss of each");
        add("example", "examples", &Job::examples, "A bundled text; see headscope list examples");
        add("target", "targets", &Job::targets,
            "The decoder's side of an encoder-decoder: one text, or one for each sequence");
        add("target-tokens", "target_tokens", &Job::target_tokens,
            "The same as a JSON array of arrays of ids, which follow the start token");
        choice("bos", "bos", &Job::bos, {"yes", "no", "auto"},
               "The token before the text: yes, no, auto (as the tokenizer does)");
        add("chat", &Job::chat, "Each text is a user's message, put into the checkpoint's chat template");
        count("length", "length", &Job::length, 1, kMostTokens, "Cut each sequence to N tokens");
        add("windows", &Job::windows, "Cut a long text into windows of --length instead");
        count("segment", "segments/tokens", &Job::segment, 1, kMostTokens,
              "Transformer-XL: read each sequence in segments of N tokens, each behind the model's memory");
        count("memory", "segments/memory", &Job::memory, 0, kMostTokens,
              "Transformer-XL: tokens of memory, 0: none; default: the model's");
        add("repeat-token", "repeat_token", &Job::repeat_token, "Replace every token by the text's first one");
    }

    void measuring() {
        using Job = AnalysisJob;
        choice("record", "record", &Job::record, record_names(),
               "Store more: maps, attention, states, logits, experts, norms (with maps: for norm-based maps), implicit "
               "(matrices of recurrent layers), branch-weights (of NAtS-L)");
        add("layers", &Job::layers, "Measure these layers only: 0,2,5-8");
        add("skip", &Job::skip, "Leave these blocks out of the model: 0,2,5-8");
        add("switch-off", "switch_off", &Job::switch_off,
            "Switch heads off, as layer.head: 3.1,4.2; in layers with several attentions 3.cross.1. They are measured; "
            "later layers change");
        choice("switch-off-how", "switch_off_how", &Job::switch_off_how, {"zero", "mean"},
               "Their output becomes zero, or its mean");
        add("interventions", "interventions_file", &Job::interventions,
            "Edits of the forward pass, a TOML file: values replaced by layer, head and position, ahead of "
            "--switch-off");
    }

    void computing() {
        using Job = AnalysisJob;
        choice("dtype", "dtype", &Job::dtype, {"float32", "bfloat16"},
               "Type of weights and activations: float32 or bfloat16");
        choice("weights", "weights_requested", &Job::weights, model::residence_choices(), model::kResidenceHelp);
        device();
        count("threads", "threads", &Job::threads, 0, kMostThreads, "0: all processors");
        add("kernels", "kernels_requested", &Job::kernels, "auto, reference or one of headscope list kernels");
        add("beyond-positions", "beyond_positions", &Job::beyond_positions,
            "Let rotary and position-free models run past their limit; figures mark it");
        add("all-rows", "all_rows", &Job::all_rows, "Histograms of every row");
        add("maps-int16", "maps_int16", &Job::maps_int16, "Half the space for --record maps, coarser weights");
    }

    std::vector<JobOption> options_;
};

/// The file holds their tokens.
bool is_counted(const JobOption& option) {
    return option.key == "texts" || option.key == "targets" || option.key == "pairs";
}

json::json_pointer place_of(const JobOption& option) {
    return json::json_pointer("/" + option.key);
}

}  // namespace

std::span<const JobOption> job_options() {
    static const std::vector<JobOption> options = JobTable().build();
    return options;
}

json to_json(const AnalysisJob& job) {
    json settings{{"model", job.model}};
    for (const JobOption& option : job_options()) {
        json value = std::visit([&](const auto member) { return json(job.*member); }, option.member);
        settings[place_of(option)] = is_counted(option) ? json(value.size()) : std::move(value);
    }
    if (job.labels.empty()) settings.erase("labels");
    if (job.interventions.empty()) settings.erase("interventions_file");
    const AnalysisJob standard;
    if (job.segment == standard.segment && job.memory == standard.memory) settings.erase("segments");
    return settings;
}

AnalysisJob job_of(const json& settings) {
    AnalysisJob job;
    if (settings.contains("model") && settings["model"].is_string()) job.model = settings["model"].get<std::string>();
    for (const JobOption& option : job_options()) {
        if (is_counted(option) || !settings.contains(place_of(option))) continue;
        try {
            const json value = checked_value(option, settings[place_of(option)], option.key);
            std::visit([&](const auto member) { value.get_to(job.*member); }, option.member);
        } catch (const Error&) {  // settings of another program
        }
    }
    return job;
}

store::RecordLevels record_levels(const std::vector<std::string>& names) {
    store::RecordLevels levels;
    for (const std::string& name : names) {
        check_choice(record_names(), name, "--record");
        for (const auto& one : kRecordNames)
            if (name == one.name) levels.*one.level = true;
    }
    levels.maps |= levels.norms;  // a norm-based map is made of both
    return levels;
}

}  // namespace headscope::analysis

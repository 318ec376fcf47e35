// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/outlook.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/process/machine.h"
#include "core/checkpoint/fingerprint.h"

namespace headscope::reproduce {
namespace {

using nlohmann::json;

constexpr double kMostMinutes = 100'000;  // --minutes
constexpr std::uint64_t kLargestFile = 1 << 20;
constexpr int kFileVersion = 1;

/// The fewest minutes, to a fiftieth, that give `needed`; 0 where none do.
double minutes_for(double needed, double from, const std::function<double(double)>& tokens) {
    double enough = from;
    while (tokens(enough) < needed) {
        if (enough >= kMostMinutes) return 0;
        enough = std::min(kMostMinutes, 2 * enough);
    }
    double less = enough / 2;
    while (enough - less > enough / 50) {
        const double middle = (less + enough) / 2;
        (tokens(middle) < needed ? less : enough) = middle;
    }
    return std::ceil(enough);
}

std::string count_text(double count) {
    char text[40];
    std::snprintf(text, sizeof text, count >= 1e6 ? "%.1f million" : "%.0f thousand",
                  count / (count >= 1e6 ? 1e6 : 1e3));
    return text;
}

std::string minutes_text(double minutes) {
    char text[40];
    std::snprintf(text, sizeof text, minutes < 10 && minutes != std::floor(minutes) ? "%.1f" : "%.0f", minutes);
    return std::string(text) + (minutes == 1 ? " minute" : " minutes");
}

json pace_json(const Pace& pace) {
    return {{"size", pace.size}, {"threads", pace.threads},           {"workers", pace.workers},  {"spent", pace.spent},
            {"end", pace.end},   {"step_seconds", pace.step_seconds}, {"overhead", pace.overhead}};
}

std::optional<std::filesystem::path> pace_file() {
    const auto folder = checkpoint::cache_folder();
    return folder ? std::optional(*folder / "replays.json") : std::nullopt;
}

std::map<std::string, double> numbers_of(const JsonView& view) {
    std::map<std::string, double> numbers;
    for (const auto& [key, value] : view.object().value().items()) numbers[key] = view.at(key).number(0);
    return numbers;
}

}  // namespace

std::string Outlook::text() const {
    if (enough()) return "";
    const std::string given = minutes_text(minutes);
    return given + (minutes == 1 ? " gives" : " give") + " each run " + count_text(tokens) + " tokens; below " +
           count_text(needed) + " most claims stay undecided. " +
           (minutes_needed > 0 ? "Give about " + minutes_text(minutes_needed) : "Give more minutes, or a shorter text");
}

Outlook outlook(const Paper& paper, const Settings& settings, const Pace& pace) {
    Settings asked = settings;
    asked.workers = pace.workers;
    const auto tokens = [&](double minutes) {
        asked.minutes = minutes;
        return static_cast<double>(make_plan(paper, asked, pace).tokens());
    };
    Outlook found;
    found.minutes = settings.minutes;
    found.needed = paper.judge_tokens;
    found.tokens = tokens(settings.minutes);
    if (!found.enough()) found.minutes_needed = minutes_for(found.needed, settings.minutes, tokens);
    return found;
}

Outlook outlook(const Plan& plan) {
    Outlook found;
    found.minutes = plan.steps_minutes;
    found.needed = plan.paper->judge_tokens;
    found.tokens = static_cast<double>(plan.tokens());
    if (!found.enough()) found.minutes_needed = std::ceil(plan.steps_minutes * found.needed / found.tokens);
    return found;
}

void keep_pace(const std::filesystem::path& file, const std::string& paper, const std::string& processor,
               const Pace& pace) {
    json document;
    try {
        document = read_json_file(file, kLargestFile, "paces");
        if (!document.is_object() || document.value("version", 0) != kFileVersion ||
            document.value("processor", "") != processor || !document["papers"].is_object())
            document = json();
    } catch (const std::exception&) {
        document = json();  // the first one, or no file of ours
    }
    if (document.is_null())
        document = {{"version", kFileVersion}, {"processor", processor}, {"papers", json::object()}};
    document["papers"][paper] = pace_json(pace);
    OutputFile out(file, {}, "paces");
    out.append(json_text(document));
    out.publish();
}

std::optional<Pace> kept_pace(const std::filesystem::path& file, const std::string& paper, const std::string& processor,
                              std::int64_t threads) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
    try {
        const json document = read_json_file(file, kLargestFile, "paces");
        const JsonView view(document, "paces");
        if (view.at("version").integer() != kFileVersion || view.at("processor").string() != processor ||
            !view.at("papers").has(paper))
            return std::nullopt;
        const JsonView one = view.at("papers").at(paper);
        Pace pace{one.at("size").string(),
                  one.at("threads").integer({1, 4096}),
                  one.at("workers").integer({1, 4096}),
                  one.at("spent").number(0),
                  one.at("end").number(0),
                  numbers_of(one.at("step_seconds")),
                  numbers_of(one.at("overhead"))};
        if (pace.threads != threads) return std::nullopt;
        return pace;
    } catch (const Error&) {
        return std::nullopt;
    }
}

void keep_replay_pace(const std::string& paper, const Pace& pace) {
    const auto file = pace_file();
    if (!file) return;
    try {
        keep_pace(*file, paper, processor_name(), pace);
    } catch (const Error&) {
    }
}

std::string minutes_warning(const std::string& paper, const Settings& settings) {
    const auto file = pace_file();
    if (!file) return "";
    const auto pace = kept_pace(*file, paper, processor_name(), settings.threads);
    if (!pace) return "";
    try {
        return outlook(reproduce::paper(paper), settings, *pace).text();
    } catch (const Error&) {  // of a version that timed other models
        return "";
    }
}

}  // namespace headscope::reproduce

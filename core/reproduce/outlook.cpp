// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/outlook.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/output_file.h"
#include "core/reproduce/lazy/plan.h"
#include "core/reproduce/natsl/plan.h"
#include "core/reproduce/thesis/plan.h"

namespace headscope::reproduce {
namespace {

using nlohmann::json;

constexpr double kMostMinutes = 100'000;  // --minutes
constexpr std::uint64_t kLargestFile = 1 << 20;
constexpr int kFileVersion = 1;
/// After half a million tokens Standard's perplexity is 5 % below MLP's (plan.cpp), and claims differ by 3 % and more.
constexpr double kTokensOfDeconattn = 5e5;
constexpr const char* kRun = "run";

double seconds_at(const std::map<std::string, double>& seconds, const std::string& key) {
    const auto found = seconds.find(key);
    if (found == seconds.end())
        throw Error(ErrorCode::format, "pace of a replay", "expected the time of " + key, "found none");
    return found->second;
}

thesis::Calibration of_thesis(const Pace& pace) {
    thesis::Calibration calibration;
    calibration.end = pace.end;
    using thesis::Stage;
    for (const Stage stage : {Stage::pretrain, Stage::classify, Stage::decoder, Stage::translation}) {
        const std::string ending = "/" + thesis::stage_name(stage);
        for (const auto& [name, seconds] : pace.step_seconds)
            if (name.ends_with(ending))
                calibration.step_seconds[{name.substr(0, name.size() - ending.size()), stage}] = seconds;
        if (const auto found = pace.overhead.find(thesis::stage_name(stage)); found != pace.overhead.end())
            calibration.overhead[stage] = found->second;
    }
    return calibration;
}

/// Tokens of each run in so many minutes, as the paper's plan gives them.
double planned_tokens(const std::string& paper, const Settings& settings, const Pace& pace) {
    const auto fill = [&](auto& calibration) {
        calibration.step_seconds = pace.step_seconds;
        calibration.run_overhead = seconds_at(pace.overhead, kRun);
        calibration.end = pace.end;
    };
    if (paper == "deconattn") {
        Calibration calibration;
        fill(calibration);
        const auto& all = sizes();
        const auto size = std::find_if(all.begin(), all.end(), [&](const Size& one) { return one.name == pace.size; });
        if (size == all.end())
            throw Error(ErrorCode::format, "pace of a replay", "expected a size of the paper's", "found another");
        return static_cast<double>(make_plan(settings, *size, calibration, pace.spent).tokens());
    }
    if (paper == "natsl") {
        natsl::Calibration calibration;
        fill(calibration);
        return static_cast<double>(
            natsl::make_plan(settings, pace.size, calibration, pace.spent).tokens(natsl::Task::text));
    }
    if (paper == "lazy") {
        lazy::Calibration calibration;
        fill(calibration);
        // Slower rivals are timed where the minutes leave time for them; else they take as long as Lazy Attention.
        for (const lazy::Model& model : lazy::models())
            calibration.step_seconds.try_emplace(std::string(model.timed_as()), seconds_at(pace.step_seconds, "lazy"));
        return static_cast<double>(lazy::make_plan(settings, pace.size, calibration, pace.spent).tokens());
    }
    for (const thesis::Chapter chapter : {thesis::Chapter::heads, thesis::Chapter::hashes})
        if (thesis::chapter_name(chapter) == paper)
            return static_cast<double>(thesis::make_plan(chapter, settings, pace.size, of_thesis(pace), pace.spent)
                                           .tokens(thesis::Stage::pretrain));
    throw Error(ErrorCode::usage, "reproduce", "expected a paper that is replayed", "found " + escaped(paper));
}

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

double tokens_to_judge(const std::string& paper) {
    return paper == "deconattn" ? kTokensOfDeconattn : static_cast<double>(kTokensToJudge);
}

Outlook outlook(const std::string& paper, const Settings& settings, const Pace& pace) {
    Settings asked = settings;
    asked.workers = pace.workers;
    const auto tokens = [&](double minutes) {
        asked.minutes = minutes;
        try {
            return planned_tokens(paper, asked, pace);
        } catch (const std::out_of_range&) {
            throw Error(ErrorCode::format, "pace of " + paper, "expected the time of each of its models",
                        "found none of some");
        }
    };
    Outlook found;
    found.minutes = settings.minutes;
    found.needed = tokens_to_judge(paper);
    found.tokens = tokens(settings.minutes);
    if (!found.enough()) found.minutes_needed = minutes_for(found.needed, settings.minutes, tokens);
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

}  // namespace headscope::reproduce

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "app/own_program.h"
#include "app/resources.h"
#include "app/version.h"
#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/base/machine/processors.h"
#include "core/base/process/os_error.h"
#include "core/figures/options/figure_arguments.h"
#include "core/reproduce/outlook.h"
#include "core/reproduce/runner.h"

namespace headscope::app {
namespace reproduce_command {
namespace {

struct Options {
    std::string paper, output, launch, data_sets;
    reproduce::Settings settings;
    bool resume = false, json = false;
    std::vector<std::string> given;
};

/// Refuses options that contradict the plan. Without --minutes the plan's hold.
void follow_plan(const std::filesystem::path& plan, const Options& options, reproduce::Settings& settings) {
    const nlohmann::json document = read_json_file(plan, reproduce::kLargestPlan, "plan");
    const JsonView view(document, shown(plan));
    const auto given = [&](const char* option) {
        return std::count(options.given.begin(), options.given.end(), option) > 0;
    };
    const auto refuse = [&](const char* option, const char* key, const std::string& expected,
                            const nlohmann::json& wanted) {
        throw Error(ErrorCode::usage, option,
                    expected + " the plan in " + shown(plan) + " follows, " + view.at(key).value().dump(),
                    "found " + wanted.dump());
    };
    const auto compare = [&](const char* option, const char* key, const nlohmann::json& wanted) {
        if (given(option) && view.at(key).value() != wanted) refuse(option, key, "expected what", wanted);
    };
    const double minutes = view.at("minutes").number(0);
    if (!given("--minutes")) settings.minutes = minutes;
    if (settings.minutes < minutes) refuse("--minutes", "minutes", "expected at least what", settings.minutes);
    compare("--data", "data", settings.data);
    compare("--threads", "threads", settings.threads);
    if (settings.seeds > 0) compare("--seeds", "seeds", settings.seeds);
}

void warn(const std::string& text) {
    finish_progress_line();
    std::fprintf(stderr, "headscope: warning: %s\n", text.c_str());
}

reproduce::Host host(const Context& context) {
    const auto run = [&context](const std::vector<std::string>& arguments, const std::vector<std::string>& before,
                                const std::filesystem::path& log) -> reproduce::Host::Ran {
        std::vector<std::string> words = before;
        words.emplace_back("headscope");
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::ofstream(log, std::ios::app)
            << "\n$ " + figures::shell_command({words.begin() + 1, words.end()}, words.front()) + "\n";
        const OwnRun ran = run_own_program(arguments, log, context.cancellation, before);
        return {ran.status, ran.peak_bytes, ran.last_line};
    };
    return {.run = run, .warn = warn, .version = kVersion, .texts = resource_folder() / "texts"};
}

/// The command that continues a replay. Until it has a plan, the options alone hold its settings.
std::vector<std::string> resuming(const Options& options, const reproduce::Settings& settings, bool planned) {
    std::vector<std::string> words{"reproduce", options.paper, "-o", options.output, "--resume"};
    const auto add = [&](const char* option, const std::string& value) {
        if (!planned && std::count(options.given.begin(), options.given.end(), option) > 0)
            words.insert(words.end(), {option, value});
    };
    add("--minutes", nlohmann::json(settings.minutes).dump());
    add("--seeds", std::to_string(settings.seeds));
    for (const std::string& path : settings.data) add("--data", path);
    add("--data-sets", options.data_sets);
    add("--threads", std::to_string(settings.threads));
    add("--launch", options.launch);
    return words;
}

void run(const Options& options, Context& context) {
    reproduce::ReplayOptions wanted;
    wanted.folder = options.output;
    wanted.settings = options.settings;
    // Relative paths would start from the jobs' folder.
    for (std::string& path : wanted.settings.data) path = std::filesystem::absolute(path).string();
    wanted.data_sets = options.data_sets;
    wanted.resume = options.resume;
    const std::filesystem::path plan = wanted.folder / "plan.json";
    if (options.resume && std::filesystem::exists(plan)) follow_plan(plan, options, wanted.settings);
    std::istringstream words(options.launch);
    for (std::string word; words >> word;) wanted.launch.push_back(word);
    // Small models train faster side by side with a thread each than one after the other with all threads.
    const std::int64_t processors = usable_processors();
    wanted.settings.workers =
        wanted.launch.empty() ? std::max<std::int64_t>(1, processors / wanted.settings.threads) : 1;
    if (!std::filesystem::exists(plan))
        if (const std::string warning = reproduce::minutes_warning(options.paper, wanted.settings); !warning.empty())
            warn(warning + " (by an earlier replay on this machine)");
    ConsoleProgress progress;
    try {
        const auto report = reproduce::Runner(reproduce::paper(options.paper), wanted, host(context), progress).run();
        finish_progress_line();
        if (options.json)
            print_json({{"report", report.string()}});
        else
            print(escaped(report.string(), 4096) + "\n");
    } catch (const Stopped&) {
        finish_progress_line();
        context.stopped_in_order = true;
        const bool planned = std::filesystem::exists(plan);
        if (!options.json)
            print("stopped; " + escaped(figures::shell_command(resuming(options, wanted.settings, planned)), 4096) +
                  " goes on\n");
    }
}

}  // namespace
}  // namespace reproduce_command

void add_reproduce(CLI::App& app, Context& context) {
    using namespace reproduce_command;
    auto* command = app.add_subcommand(
        "reproduce", "Replay a paper small: train, evaluate, analyze, draw its figures and report which claims held");
    auto options = std::make_shared<Options>();
    std::vector<std::string> names;
    std::string help;
    for (const reproduce::Paper& paper : reproduce::papers()) {
        names.push_back(paper.name);
        help += (help.empty() ? "" : "; ") + paper.name + ": " + paper.title;
    }
    add_option(*command, "paper", options->paper, help)->required()->check(one_of(names));
    add_option(*command, "-o,--output", options->output, "A new folder, or with --resume the one to go on in")
        ->required();
    add_option(*command, "--minutes", options->settings.minutes,
               "Time for all of it, earlier sessions included; --resume with more plans what is left")
        ->check(in_range(0.2, 100000.0));
    add_option(*command, "--seeds", options->settings.seeds,
               "Seeds of each configuration that the replay trains more than once; 0: as the minutes allow")
        ->check(in_range(0, 100));
    add_option(*command, "--data", options->settings.data,
               "Text instead of the replay's own: files, folders, patterns");
    add_option(*command, "--data-sets", options->data_sets,
               "A folder of data sets, TASK/SPLIT.jsonl, on which the models are evaluated after the planned minutes")
        ->check(CLI::ExistingDirectory);
    add_option(*command, "--threads", options->settings.threads,
               "Of each run; as many run side by side as there are processors for")
        ->check(in_range(1, 4096));
    add_option(*command, "--launch", options->launch, "Words before the training program: \"mpirun -n 2\"");
    add_flag(*command, "--resume", options->resume,
             "Go on where an earlier session ended, by its plan; a finished replay renders its report");
    add_flag(*command, "--json", options->json, "One JSON document at the end");
    command->callback([&context, options, command] {
        options->given = given_options(*command);
        context.command = [&context, options] { run(*options, context); };
    });
}

}  // namespace headscope::app

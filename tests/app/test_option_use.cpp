// SPDX-License-Identifier: GPL-3.0-or-later
// Walks every option of every command: each is in the list of option_use.cpp, what a kind does not read is refused by
// its name, and what the list says is read is read by the sources.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/option_use.h"
#include "core/reproduce/plan.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

/// The program's commands, as command_line.cpp adds them.
struct Program {
    Program() {
        using Add = void (*)(CLI::App&, app::Context&);
        for (const Add add : {app::add_info, app::add_tokenize, app::add_analyze, app::add_ask, app::add_export,
                              app::add_generate, app::add_evaluate, app::add_cost, app::add_reproduce, app::add_convert,
                              app::add_list, app::add_bench, app::add_train, app::add_control})
            add(cli, context);
    }
    std::vector<const CLI::App*> commands() const {
        const auto& all = std::as_const(cli).get_subcommands([](const CLI::App*) { return true; });
        return {all.begin(), all.end()};
    }

    app::Context context;
    CLI::App cli;
};

std::vector<std::string> options_of(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        if (const std::string name = option->get_name(); name != "--help") names.push_back(name);
    return names;
}

std::set<std::string> listed(const app::OptionUse& use) {
    std::set<std::string> names(use.always.begin(), use.always.end());
    for (const auto& kind : use.kinds) names.insert(kind.reads.begin(), kind.reads.end());
    return names;
}

std::string source(const fs::path& path) {
    std::ifstream file(fs::path(HEADSCOPE_SOURCE_DIR) / path);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// All of a folder's .cpp and .h files, one behind the other.
std::string sources(const fs::path& folder) {
    std::string all;
    for (const auto& entry : fs::directory_iterator(fs::path(HEADSCOPE_SOURCE_DIR) / folder))
        if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h")
            all += source(folder / entry.path().filename());
    return all;
}

/// How often a text has a word; `access`: behind a dot or an arrow.
std::size_t words(const std::string& text, const std::string& word, bool access = false) {
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::size_t count = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) {
        const std::size_t end = at + word.size();
        const char before = at == 0 ? ' ' : text[at - 1];
        const bool begins = access ? before == '.' || before == '>' : !part(before);
        if (begins && (end == text.size() || !part(text[end]))) ++count;
    }
    return count;
}

std::size_t accesses(const std::string& text, const std::string& member) {
    return words(text, member, true);
}

}  // namespace

TEST_CASE("Every option of every command is in the list, and the list names no other", "[app][options]") {
    const Program program;
    CHECK(program.commands().size() == app::option_uses().size());
    for (const CLI::App* command : program.commands()) {
        INFO(command->get_name());
        const auto there = options_of(*command);
        const auto names = listed(app::option_use(command->get_name()));
        CHECK(std::set<std::string>(there.begin(), there.end()) == names);
    }
}

TEST_CASE("An option that a kind does not read is refused, with the kinds that read it", "[app][options]") {
    for (const auto& use : app::option_uses()) {
        for (const std::string& option : listed(use)) {
            const bool always = std::find(use.always.begin(), use.always.end(), option) != use.always.end();
            for (const auto& kind : use.kinds) {
                INFO(use.command << ", " << kind.name << ", " << option);
                const bool read = always || std::find(kind.reads.begin(), kind.reads.end(), option) != kind.reads.end();
                if (read) {
                    CHECK_NOTHROW(app::check_options(use.command, {option}, {kind.name}));
                    continue;
                }
                std::string message;
                try {
                    app::check_options(use.command, {option}, {kind.name});
                } catch (const app::UsageError& error) {
                    message = error.what();
                }
                CHECK(message.starts_with(option + " has no effect on " + use.command + " with " + kind.name));
                const auto reader = std::find_if(use.kinds.begin(), use.kinds.end(), [&](const auto& other) {
                    return std::find(other.reads.begin(), other.reads.end(), option) != other.reads.end();
                });
                REQUIRE(reader != use.kinds.end());
                CHECK(message.find(reader->name) != std::string::npos);
            }
        }
    }
}

TEST_CASE("An output that is another output or an input is refused, whatever the command", "[app][options]") {
    const test::TemporaryFolder folder;
    const fs::path here = fs::current_path();
    const fs::path file = folder / "file", other = folder / "other";
    std::ofstream(file) << "x";
    std::ofstream(other) << "y";
    fs::create_symlink(file, folder / "symbolic");
    fs::create_hard_link(file, folder / "hard");
    const std::vector<std::pair<fs::path, fs::path>> same{{file, file},
                                                          {file, folder / "." / "file"},
                                                          {file, folder / "symbolic"},
                                                          {folder / "hard", file},
                                                          {file, file.lexically_relative(here)},
                                                          {folder / "new", folder / "." / "new"}},
        apart{{file, other}, {folder / "new", file}, {folder / "new", folder / "newer"}};
    const auto has = [](const std::vector<std::string>& names, const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::set<std::string> outputs, inputs;
    const Program program;
    for (const CLI::App* command : program.commands()) {
        std::vector<std::string> written, read;
        for (const std::string& name : options_of(*command)) {
            if (has(app::output_options(), name)) written.push_back(name);
            if (has(app::input_options(), name)) read.push_back(name);
        }
        outputs.insert(written.begin(), written.end());
        inputs.insert(read.begin(), read.end());
        for (const std::string& output : written) {
            std::vector<std::string> others = read;
            for (const std::string& another : written)
                if (another != output) others.push_back(another);
            for (const std::string& another : others) {
                INFO(command->get_name() << ", " << output << ", " << another);
                for (const auto& [a, b] : same)
                    CHECK_THROWS_MATCHES(app::check_outputs({{output, {a.string()}}, {another, {b.string()}}}), Error,
                                         test::IsError(ErrorCode::usage, "found the same file as"));
                for (const auto& [a, b] : apart)
                    CHECK_NOTHROW(app::check_outputs({{output, {a.string()}}, {another, {b.string()}}}));
            }
        }
    }
    // Both lists name options that exist.
    CHECK(outputs == std::set<std::string>(app::output_options().begin(), app::output_options().end()));
    CHECK(inputs == std::set<std::string>(app::input_options().begin(), app::input_options().end()));
    // Each of several inputs counts, and names of data sets are cut off.
    CHECK_THROWS_MATCHES(
        app::check_outputs({{"--data", {other.string(), "set=" + file.string()}}, {"--output", {file.string()}}}),
        Error, test::IsError(ErrorCode::usage, "--output"));
    CHECK_NOTHROW(app::check_outputs({{"--text", {file.string()}}, {"--output", {file.string()}}}));
}

TEST_CASE("Each option whose help speaks of a file that is written is in the list of outputs", "[app][options]") {
    const Program program;
    int found = 0;
    for (const CLI::App* command : program.commands()) {
        for (const CLI::Option* option : command->get_options()) {
            const std::string help = option->get_description(), name = option->get_name();
            if (option->get_type_name() != "TEXT") continue;
            const bool writes = help.find("OUT") != std::string::npos || help.find("CSV") != std::string::npos ||
                                help.find("FILE.jsonl") != std::string::npos || name == "--output" || name == "--dump";
            const auto& outputs = app::output_options();
            const auto& inputs = app::input_options();
            INFO(command->get_name() << ", " << name);
            if (!writes || std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
            ++found;
            CHECK(std::find(outputs.begin(), outputs.end(), name) != outputs.end());
        }
    }
    CHECK(found >= 12);
}

TEST_CASE("What a command's option is stored in is read by the command", "[app][options]") {
    // "add_option(*command, "--seeds", options->settings.seeds", or of references "command" and
    // "options.settings.seeds".
    const std::regex added(
        R"re(add_(?:tool_)?(?:option|flag)\(\s*\*?command,\s*"([^"]+)",\s*(options(?:->|\.))?([A-Za-z0-9_.]+))re");
    // Structs that go to core as a whole are read there.
    std::string core;
    for (const char* folder : {"core/analysis", "core/figures", "core/model", "core/reproduce"})
        core += sources(folder);
    int walked = 0;
    const fs::path root = HEADSCOPE_SOURCE_DIR, commands = root / "app/commands";
    for (const auto& entry : fs::recursive_directory_iterator(commands)) {
        if (entry.path().extension() != ".cpp") continue;
        const std::string text = source(entry.path().lexically_relative(root));
        for (std::sregex_iterator at(text.begin(), text.end(), added), end; at != end; ++at) {
            ++walked;
            const std::string option = (*at)[1], place = (*at)[3];
            const bool part = place.find('.') != std::string::npos;
            const std::string member = place.substr(place.rfind('.') + 1);
            INFO(entry.path().filename() << ", " << option << ", " << place);
            std::string others = text;
            others.erase(static_cast<std::size_t>(at->position()), static_cast<std::size_t>(at->length()));
            // A command with a folder of its own has several files.
            for (const auto& more : fs::recursive_directory_iterator(entry.path().parent_path())) {
                if (entry.path().parent_path() != commands && more.path().extension() == ".cpp" &&
                    more.path() != entry.path())
                    others += source(more.path().lexically_relative(root));
            }
            if (!(*at)[2].matched) {  // a static of the file: its declaration, and a use
                CHECK(words(others, member) > 1);
                continue;
            }
            CHECK(accesses(others, member) + (part ? accesses(core, member) : 0) > 0);
        }
    }
    const std::string table = source("core/analysis/job.cpp"),
                      readers = source("core/analysis/job_request.cpp") + source("app/commands/analyze/analyze.cpp");
    const std::regex row(R"re(&Job::([a-z0-9_]+),)re");
    for (std::sregex_iterator at(table.begin(), table.end(), row), end; at != end; ++at) {
        ++walked;
        INFO("analyze, " << (*at)[1]);
        CHECK(accesses(readers, (*at)[1]) > 0);
    }
    CHECK(walked > 120);
}

TEST_CASE("A replay reads the settings of the list", "[app][options][reproduce]") {
    const auto& use = app::option_use("reproduce");
    const auto words_of = [](const reproduce::Paper& paper, const reproduce::Settings& settings) {
        reproduce::Pace pace;
        pace.size = paper.smallest();
        for (const auto& stage : paper.stages) {
            for (const auto& model : paper.models) pace.step_seconds[paper.timed_key(model.timed_as(), stage)] = 0.05;
            pace.overhead[paper.overhead_key(stage)] = 2;
        }
        return reproduce::to_json(reproduce::make_plan(paper, settings, pace));
    };
    for (const auto& paper : reproduce::papers()) {
        reproduce::Settings minutes, seeds, data, threads;
        minutes.minutes = 77;
        seeds.seeds = 5;
        data.data = {"a.txt"};
        threads.threads = 3;
        for (const auto& [option, settings] : std::map<std::string, reproduce::Settings>{
                 {"--minutes", minutes}, {"--seeds", seeds}, {"--data", data}, {"--threads", threads}}) {
            INFO(paper.name << ", " << option);
            CHECK(std::find(use.always.begin(), use.always.end(), option) != use.always.end());
            CHECK(words_of(paper, settings) != words_of(paper, {}));
        }
    }
}

TEST_CASE("Progress of a long step is written again where there is no terminal", "[app]") {
    using std::chrono::milliseconds;
    CHECK_FALSE(app::is_line_due(false, milliseconds(400)));
    CHECK(app::is_line_due(false, milliseconds(500)));
    CHECK_FALSE(app::is_line_due(true, milliseconds(4900)));
    CHECK(app::is_line_due(true, milliseconds(5000)));
}

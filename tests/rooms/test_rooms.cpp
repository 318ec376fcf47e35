// SPDX-License-Identifier: GPL-3.0-or-later
// Who may include whom, read from the includes themselves. A folder and what lies below it are one room.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Include {
    std::string from, to;  ///< files, below the source folder
};

std::string folder_of(const std::string& file) {
    return fs::path(file).parent_path().string();
}

/// `folder` or something below it.
bool within(const std::string& path, const std::string& folder) {
    return path == folder || path.compare(0, folder.size() + 1, folder + "/") == 0;
}

std::vector<Include> read_includes(const fs::path& source) {
    std::vector<Include> includes;
    const std::regex line_of(R"rx(\s*#include ["<]([A-Za-z0-9_./+-]+)[">].*)rx");
    for (const char* top : {"app", "core", "kernels", "widgets", "tests/rig"}) {
        for (const auto& entry : fs::recursive_directory_iterator(source / top)) {
            const std::string ending = entry.path().extension().string();
            if (ending != ".h" && ending != ".cpp") continue;
            std::ifstream file(entry.path());
            for (std::string line; std::getline(file, line);) {
                std::smatch found;
                if (std::regex_match(line, found, line_of))
                    includes.push_back({fs::relative(entry.path(), source).string(), found[1].str()});
            }
        }
    }
    return includes;
}

/// Level of a file; it may include files of its own level and lower ones.
int level_of(const std::string& file) {
    constexpr const char* kLevels[] = {"core/base/machine", "kernels", "core", "widgets", "app"};
    if (within(file, "tests/rig")) return 4;  // part of a program that has tests
    for (int level = 0; level < 5; ++level)
        if (within(file, kLevels[level])) return level;
    return -1;  // not ours
}

using Graph = std::map<std::string, std::map<std::string, Include>>;

Graph graph_of(const std::vector<Include>& includes) {
    Graph graph;
    for (const Include& include : includes) {
        const std::string from = folder_of(include.from), to = folder_of(include.to);
        if (level_of(include.to) < 0 || within(from, to) || within(to, from)) continue;
        graph[from].emplace(to, include);
    }
    return graph;
}

/// One circle as "a -> b -> a", with an include for each step; empty: there is none.
std::string circle_in(const Graph& graph) {
    std::map<std::string, int> state;  // 1: on the way, 2: done
    std::vector<std::string> way;
    std::function<std::string(const std::string&)> visit = [&](const std::string& folder) -> std::string {
        state[folder] = 1;
        way.push_back(folder);
        const auto edges = graph.find(folder);
        if (edges != graph.end()) {
            for (const auto& [to, include] : edges->second) {
                if (state[to] == 2) continue;
                if (state[to] == 0) {
                    if (std::string circle = visit(to); !circle.empty()) return circle;
                    continue;
                }
                std::string circle;
                auto at = std::find(way.begin(), way.end(), to);
                for (; at != way.end(); ++at) {
                    const std::string next = at + 1 == way.end() ? to : *(at + 1);
                    const Include& step = graph.at(*at).at(next);
                    circle += "\n  " + *at + " -> " + next + ": " + step.from + " includes " + step.to;
                }
                return circle;
            }
        }
        state[folder] = 2;
        way.pop_back();
        return {};
    };
    for (const auto& [folder, edges] : graph) {
        if (state[folder] != 0) continue;
        if (std::string circle = visit(folder); !circle.empty()) return circle;
    }
    return {};
}

}  // namespace

TEST_CASE("A level includes itself and those below it alone", "[rooms]") {
    for (const Include& include : read_includes(HEADSCOPE_SOURCE_DIR)) {
        INFO(include.from << " includes " << include.to);
        CHECK(level_of(include.to) <= level_of(include.from));
    }
}

TEST_CASE("No folders include each other in a circle", "[rooms]") {
    const std::vector<Include> includes = read_includes(HEADSCOPE_SOURCE_DIR);
    REQUIRE(includes.size() > 3000);
    CHECK(circle_in(graph_of(includes)) == "");
    // A circle would be seen.
    CHECK(circle_in(graph_of(
              {{"core/a/x.h", "core/b/y.h"}, {"core/b/y.h", "core/c/z.h"}, {"core/c/z.h", "core/a/w.h"}})) != "");
    CHECK(circle_in(graph_of({{"core/a/x.h", "core/a/b/y.h"}, {"core/a/b/y.h", "core/a/w.h"}})) == "");
}

TEST_CASE("What the window reads knows no tensor", "[rooms]") {
    const auto of_tensors = [](const std::string& file) {
        return within(file, "ATen") || within(file, "torch") || within(file, "c10");
    };
    for (const Include& include : read_includes(HEADSCOPE_SOURCE_DIR)) {
        for (const char* room :
             {"core/base", "core/store", "core/run", "core/maps", "core/figures", "core/workspace",
              "core/cost/formula.h", "core/mixers/types", "core/training/job", "core/ask/options", "widgets"}) {
            if (!within(include.from, room)) continue;
            INFO(include.from << " includes " << include.to);
            CHECK_FALSE(of_tensors(include.to));
        }
    }
}

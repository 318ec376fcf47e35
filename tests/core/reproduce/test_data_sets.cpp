// SPDX-License-Identifier: GPL-3.0-or-later
// A replay's tables of data sets in a folder, with a host that writes the files in the program's place.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/reproduce/tiny_replay.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

/// Writes what `evaluate` would, but for tasks that its folder lacks.
class FakeProgram {
public:
    explicit FakeProgram(fs::path sets) : sets_(std::move(sets)) {}

    reproduce::Host host() {
        reproduce::Host host;
        host.run = [this](const auto& words, const auto&, const fs::path&) { return run(words); };
        host.warn = [](const std::string&) {};
        host.version = "0";
        return host;
    }

    std::vector<std::string> tasks;  ///< that were asked
    std::vector<std::string> trained;

private:
    static std::string after(const std::vector<std::string>& words, const std::string& option) {
        const auto at = std::find(words.begin(), words.end(), option);
        return at == words.end() ? "" : *(at + 1);
    }

    reproduce::Host::Ran run(const std::vector<std::string>& words) {
        if (words.front() == "train") trained.push_back(after(words, "-o"));
        if (words.front() != "evaluate") return {};
        std::string task = after(words, "--task");
        const std::string data = after(words, "--data");
        if (task == "classify")
            task = data.substr(0, data.find('='));
        else if (!fs::exists(sets_ / task))
            return {1, 0, "expected a file " + task};
        tasks.push_back(task);
        store::Evaluation one;
        store::EvaluatedModel model;
        model.name = words[1];
        model.sha256 = words[1];
        one.models.push_back(model);
        const double value = 0.25 * static_cast<double>(tasks.size());
        one.results.push_back({0, task, task == "rte" ? "accuracy" : "acc", 16, value});
        store::write_evaluation(after(words, "-o"), one);
        return {};
    }

    fs::path sets_;
};

}  // namespace

TEST_CASE("A replay has tables of the data sets in a folder, and names those that it lacks", "[reproduce]") {
    const test::TemporaryFolder folder;
    const reproduce::Paper paper = reproduce::read_paper("tiny", test::kTinyPaper);
    const fs::path sets = folder / "sets", replay = folder / "replay";
    fs::create_directories(sets / "arc_easy");
    fs::create_directories(sets / "glue" / "rte");
    for (const char* split : {"train", "validation"})
        std::ofstream(sets / "glue" / "rte" / (std::string(split) + ".jsonl")) << R"({"text":"a","label":0})"
                                                                               << "\n";
    test::write_tiny_replay(replay, paper, 2);
    reproduce::ReplayOptions options;
    options.folder = replay;
    options.resume = true;
    options.data_sets = sets;
    NoProgress progress;
    FakeProgram program(sets);
    reproduce::Runner(paper, options, program.host(), progress).run();
    CHECK(program.tasks == std::vector<std::string>{"arc_easy", "arc_easy", "rte", "rte"});
    CHECK(program.trained.size() == 2);
    const std::string report = test::report_of(replay);
    INFO(report);
    CHECK(report.find("## Choices") != std::string::npos);
    CHECK(report.find("| model | arc_easy, acc |\n") != std::string::npos);
    CHECK(report.find("| A | 25.0 |") != std::string::npos);
    CHECK(report.find("| B | 50.0 |") != std::string::npos);
    CHECK(report.find("| A | 75.0 |") != std::string::npos);
    CHECK(report.find("## Retrieval") == std::string::npos);
    CHECK(report.find("has no usable \"piqa\"") != std::string::npos);
    CHECK(report.find("has no usable \"cola\"") != std::string::npos);
    CHECK(report.find("has no usable \"fda\"") != std::string::npos);
    // The job tunes on the folder's lines, and names its row and column.
    const auto job = training::read_job_file(replay / "jobs" / "a-rte.toml");
    CHECK(job.data.text == std::vector<std::string>{(sets / "glue" / "rte" / "train.jsonl").string()});
    CHECK(job.benchmark.variant == "A");
    CHECK(job.benchmark.task == "rte");
    const auto merged = store::read_evaluation(replay / "choices.evaluation.h5");
    CHECK(merged.models.size() == 2);
    CHECK(merged.models[1].name == "B");

    // Resumed without the option: the folder is known, and nothing is asked again.
    options.data_sets.clear();
    FakeProgram again(sets);
    reproduce::Runner(paper, options, again.host(), progress).run();
    CHECK(again.tasks.empty());
    CHECK(test::report_of(replay).find("| A | 25.0 |") != std::string::npos);
}

TEST_CASE("Models are tuned on files of the hub's names, and evaluated on MNLI's split", "[reproduce]") {
    const test::TemporaryFolder folder;
    const reproduce::Paper paper = reproduce::read_paper("tiny", test::kTinyPaper);
    const fs::path sets = folder / "sets", replay = folder / "replay", place = sets / "rte";
    fs::create_directories(place);
    std::ofstream(place / "train-00000-of-00001.parquet") << "PAR1";
    std::ofstream(place / "validation_matched.jsonl.gz") << "packed";
    test::write_tiny_replay(replay, paper, 2);
    reproduce::ReplayOptions options;
    options.folder = replay;
    options.resume = true;
    options.data_sets = sets;
    NoProgress progress;
    FakeProgram program(sets);
    reproduce::Runner(paper, options, program.host(), progress).run();
    CHECK(program.tasks == std::vector<std::string>{"rte", "rte"});
    const auto job = training::read_job_file(replay / "jobs" / "a-rte.toml");
    CHECK(job.data.text == std::vector<std::string>{(place / "train-00000-of-00001.parquet").string()});
    CHECK(job.data.validation_files == std::vector<std::string>{(place / "validation_matched.jsonl.gz").string()});
}

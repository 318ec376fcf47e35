// SPDX-License-Identifier: GPL-3.0-or-later
// Run folders, run.h5 and evaluation files on the command line.
#include <catch2/catch.hpp>

#include "core/training/journal.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_folder.h"
#include "tests/core/figures/sample_records.h"

using namespace headscope;
using namespace headscope::testing;
using headscope::test::read_file;
using headscope::test::TemporaryFolder;
using nlohmann::json;

namespace {

json info(const std::filesystem::path& path) {
    const Outcome outcome = run_headscope({"info", path.string(), "--json"});
    check_success(outcome);
    return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("info tells of a run by its folder and by its file alike", "[app][run]") {
    const TemporaryFolder folder;
    test::write_run_folder(folder / "lantern", test::sample_record("lantern"));
    for (const auto& path : {folder / "lantern", folder / "lantern" / "run.h5"}) {
        const json run = info(path);
        CHECK(run.at("kind") == "run");
        CHECK(run.at("name") == "lantern");
        CHECK(run.at("state") == "finished");
        CHECK(run.at("step") == 400);
        CHECK(run.at("probes") == 9);
        CHECK(run.at("validation_step") == 400);
        CHECK(run.at("snapshots") == json{"step-000200"});
        CHECK(run.at("problems").empty());
    }
    const Outcome text = run_headscope({"info", (folder / "lantern").string()});
    check_success(text);
    CHECK(text.out.find("validation loss") != std::string::npos);
}

TEST_CASE("A run whose process died is told as interrupted, one that is trained as running", "[app][run]") {
    const TemporaryFolder folder;
    {
        training::JournalWriter writer(folder / training::kJournalName);
        writer.append(training::Started{});
        writer.append(training::StateChanged{});
        CHECK(info(folder.path()).at("state") == "running");
        CHECK_FALSE(std::filesystem::exists(folder / "run.h5"));
    }
    const json run = info(folder.path());
    CHECK(run.at("state") == "interrupted");
    CHECK(run.at("problems").size() == 1);
    // To be told of a folder, which may be somebody else's, changes nothing in it.
    CHECK_FALSE(std::filesystem::exists(folder / "run.h5"));
}

TEST_CASE("Figures of runs, evaluations and models come from the command line", "[app][run]") {
    const TemporaryFolder folder;
    test::write_run_folder(folder / "a", test::sample_record("a"));
    test::write_run_folder(folder / "b", test::sample_record("b", 200));
    const auto scores = folder / "scores.evaluation.h5";
    store::write_evaluation(scores, test::sample_evaluation());
    const std::string a = (folder / "a").string(), b = (folder / "b" / "run.h5").string();
    struct Wish {
        std::vector<std::string> arguments;
        std::string begin;
    };
    const std::vector<Wish> wishes{{{a, b, "--figure", "loss", "--against", "tokens"}, "run,of,step"},
                                   {{a, "--figure", "timeline", "--step", "120"}, "run,layer,head,indicator"},
                                   {{scores.string(), "--figure", "context-perplexity"}, "task,metric,mixer"},
                                   {{scores.string(), "--figure", "ablation", "--task", "mqar"}, "task,metric,mixer"},
                                   {{scores.string(), "--figure", "scaling"}, "task,metric,mixer"},
                                   {{a, "tiny-1m", sample().string(), "--figure", "cost"}, "model,mixer,length"}};
    for (const Wish& wish : wishes) {
        std::vector<std::string> arguments{"export"};
        arguments.insert(arguments.end(), wish.arguments.begin(), wish.arguments.end());
        arguments.insert(arguments.end(), {"-o", (folder / "out.csv").string()});
        check_success(run_headscope(arguments));
        CHECK(read_file(folder / "out.csv").starts_with(wish.begin));
    }
    // Called as the job calls it, by the folder and by the file.
    auto named = test::sample_record("folder", 40);
    named.job = "name = \"Standard, seed 1\"\n[data]\ncorpus = \"kjv\"\n[model]\npreset = \"tiny-1m\"\n";
    test::write_run_folder(folder / "c", named);
    for (const auto& path : {folder / "c", folder / "c" / "run.h5"}) {
        check_success(
            run_headscope({"export", path.string(), "--figure", "loss", "-o", (folder / "out.csv").string()}));
        CHECK(read_file(folder / "out.csv").find("\"Standard, seed 1\",training,") != std::string::npos);
    }
    const Outcome mixed =
        run_headscope({"export", a, scores.string(), "--figure", "loss", "-o", (folder / "x.csv").string()});
    CHECK(mixed.status == 1);
    CHECK(mixed.err.find("of one kind") != std::string::npos);
    CHECK(!std::filesystem::exists(folder / "x.csv"));
}

TEST_CASE("A run folder is no checkpoint, and is told where its models are", "[app][run]") {
    const TemporaryFolder folder;
    test::write_run_folder(folder / "a", test::sample_record("a", 50));
    const Outcome outcome = run_headscope({"tokenize", (folder / "a").string(), "text"});
    CHECK(outcome.status == 1);
    const Outcome analysis = run_headscope({"convert", (folder / "a").string(), (folder / "b").string()});
    CHECK(analysis.status == 1);
    CHECK(analysis.err.find("snapshots") != std::string::npos);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Run folders, run.h5 and evaluation files on the command line.
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "core/run/journal.h"
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

TEST_CASE("info lists a run by its folder and by its file alike", "[app][run]") {
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

TEST_CASE("A run whose process died is interrupted, one in training is running", "[app][run]") {
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
    // Listing a folder, perhaps another user's, changes nothing in it.
    CHECK_FALSE(std::filesystem::exists(folder / "run.h5"));
}

TEST_CASE("Figures of runs, evaluations and models come from the command line", "[app][run]") {
    const TemporaryFolder folder;
    test::write_run_folder(folder / "a", test::sample_record("a"));
    test::write_run_folder(folder / "b", test::sample_record("b", 200));
    const auto scores = folder / "scores.evaluation.h5";
    store::write_evaluation(scores, test::sample_evaluation());
    const auto tasks = folder / "tasks.evaluation.h5";
    store::write_evaluation(tasks, test::sample_task_evaluation());
    CHECK(info(tasks).at("items") == 21);
    const std::string a = (folder / "a").string(), b = (folder / "b" / "run.h5").string();
    struct Wish {
        std::vector<std::string> arguments;
        std::string begin;
    };
    const std::vector<Wish> wishes{
        {{a, b, "--figure", "loss", "--against", "tokens"}, "run,of,step"},
        {{a, "--figure", "timeline", "--step", "120"}, "run,layer,head,indicator"},
        {{scores.string(), "--figure", "context-perplexity"}, "task,metric,mixer"},
        {{scores.string(), "--figure", "ablation", "--task", "mqar"}, "task,metric,mixer"},
        {{scores.string(), "--figure", "scaling"}, "task,metric,mixer"},
        {{tasks.string(), "--figure", "tasks", "--metric", "acc_norm"},
         "task,metric,shots,model,mixer,layout,skipped,parameters,length,value,error,seeds,rank,text,subset\r\n"
         "arc_easy,acc_norm,0,Standard,"},
        {{tasks.string(), "--figure", "retention", "--baseline", "standard"},
         "model,task,metric,score,prr,peop,pcr_all,pcr_emb,poep,text,subset\r\nstandard,"},
        {{a, "tiny-1m", sample().string(), "--figure", "cost"}, "model,mixer,length"},
        {{"tiny-1m", "--figure", "cost", "--mixers", "mlp,titans"},
         "model,mixer,length,quantity,paper,measured\r\ntiny-1m,mlp,"},
        {{"tiny-1m", "--figure", "cost", "--of", "stacks"}, "mixer,heads,layers,parameters\r\nsha,32,12,"},
        {{sample().string(), "--figure", "tensors", "--tensor", "*.q_proj.weight"},
         "model,tensor,quantity,low,high,value"}};
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

TEST_CASE("Tensors of a figure are those that are named, and no others", "[app][export]") {
    const TemporaryFolder folder;
    const auto draw = [&](const std::vector<std::string>& names) {
        std::vector<std::string> arguments{"export", sample().string(), "--figure", "tensors"};
        for (const auto& name : names) arguments.insert(arguments.end(), {"--tensor", name});
        arguments.insert(arguments.end(), {"-o", (folder / "out.csv").string()});
        return run_headscope(arguments);
    };
    check_success(draw({"model.norm.weight", "model.layers.1.*norm.weight", "model.norm.*"}));
    std::map<std::string, double> values;
    std::istringstream lines(read_file(folder / "out.csv"));
    for (std::string line; std::getline(lines, line);) {
        std::vector<std::string> fields;
        std::istringstream parts(line);
        for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
        if (fields.at(2) == "values") values[fields.at(1)] += std::stod(fields.at(5));
    }
    // As many values as config.json's hidden_size says, in each.
    const auto hidden = json::parse(read_file(sample() / "config.json")).at("hidden_size").get<double>();
    CHECK(values == std::map<std::string, double>{{"model.layers.1.input_layernorm.weight", hidden},
                                                  {"model.layers.1.post_attention_layernorm.weight", hidden},
                                                  {"model.norm.weight", hidden}});
    std::filesystem::remove(folder / "out.csv");
    const auto refused = [&](const Outcome& outcome, const std::string& words) {
        CHECK(outcome.status != 0);
        CHECK(outcome.err.find(words) != std::string::npos);
        CHECK_FALSE(std::filesystem::exists(folder / "out.csv"));
    };
    refused(draw({}), "--tensor] expected the name of a tensor");
    refused(draw({"model.norm.weigth"}), "did you mean model.norm.weight?");
    refused(draw({"*.k_norm.*"}), "expected a tensor named, or named like, *.k_norm.*");
}

TEST_CASE("A run folder is no checkpoint; the error names its models", "[app][run]") {
    const TemporaryFolder folder;
    test::write_run_folder(folder / "a", test::sample_record("a", 50));
    const Outcome outcome = run_headscope({"tokenize", (folder / "a").string(), "text"});
    CHECK(outcome.status == 1);
    const Outcome analysis = run_headscope({"convert", (folder / "a").string(), (folder / "b").string()});
    CHECK(analysis.status == 1);
    CHECK(analysis.err.find("snapshots") != std::string::npos);
}

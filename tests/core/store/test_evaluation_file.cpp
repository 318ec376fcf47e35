// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "core/store/evaluation_file.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;

namespace {

store::Evaluation two_models() {
    store::Evaluation evaluation;
    evaluation.models.push_back(
        {"standard", "/runs/a", std::string(64, 'a'), "standard", "uniform", "standard,standard", "", 1234, 2, 256, 1});
    evaluation.models.push_back({"mlp, \"even\"", "", "", "mlp", "even", "mlp,standard", "0", 1234, 2, 0, -1});
    evaluation.results.push_back({0, "perplexity", "token_perplexity", 16, 12.5, 0.25, 1000});
    evaluation.results.push_back({1, "perplexity", "token_perplexity", 256, 1e5, std::nan(""), 7});
    evaluation.settings_json = R"({"stride":0})";
    evaluation.program_version = "1.2.3";
    evaluation.created = "2030-01-02T03:04:05Z";
    return evaluation;
}

}  // namespace

TEST_CASE("An evaluation comes back from its file as it was written", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.evaluation.h5";
    const store::Evaluation written = two_models();
    store::write_evaluation(path, written);
    const store::Evaluation read = store::read_evaluation(path);
    CHECK(read.models == written.models);
    CHECK(read.settings_json == written.settings_json);
    CHECK(read.program_version == "1.2.3");
    CHECK(read.created == written.created);
    REQUIRE(read.results.size() == 2);
    CHECK(read.results[0].value == 12.5);
    CHECK(read.results[0].error == 0.25);
    CHECK(read.results[1].model == 1);
    CHECK(read.results[1].count == 7);
    CHECK(std::isnan(read.results[1].error));
    const auto* found = read.find(1, "perplexity", "token_perplexity", 256);
    REQUIRE(found != nullptr);
    CHECK(found->value == 1e5);
    CHECK(read.find(1, "perplexity", "token_perplexity", 16) == nullptr);
}

TEST_CASE("An evaluation without rows is a file too", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    store::write_evaluation(folder / "a.evaluation.h5", {});
    const auto read = store::read_evaluation(folder / "a.evaluation.h5");
    CHECK(read.models.empty());
    CHECK(read.results.empty());
    CHECK_FALSE(read.program_version.empty());
    CHECK(read.created.size() == 20);
}

TEST_CASE("A result of no model is refused, and what is no evaluation", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    store::Evaluation evaluation = two_models();
    evaluation.results[0].model = 2;
    CHECK_THROWS_AS(store::write_evaluation(folder / "a.evaluation.h5", evaluation), Error);
    CHECK_FALSE(std::filesystem::exists(folder / "a.evaluation.h5"));
    std::ofstream(folder / "b.evaluation.h5") << "no HDF5";
    CHECK_THROWS_AS(store::read_evaluation(folder / "b.evaluation.h5"), Error);
}

TEST_CASE("What stands as a word in figures is no long text", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    for (const int which : {0, 1, 2, 3}) {
        store::Evaluation evaluation = two_models();
        const std::string fits(256, 'x'), text(257, 'x');
        for (const std::string& word : {fits, text}) {
            if (which == 0) evaluation.models[1].mixer = word;
            if (which == 1) evaluation.models[1].layout = word;
            if (which == 2) evaluation.results[0].task = word;
            if (which == 3) evaluation.results[0].metric = word;
            if (word == fits)
                CHECK_NOTHROW(store::write_evaluation(folder / "a.evaluation.h5", evaluation));
            else
                CHECK_THROWS_AS(store::write_evaluation(folder / "b.evaluation.h5", evaluation), Error);
        }
    }
}

TEST_CASE("CSV has a row a result, with the model's members and quoted texts", "[store][evaluation]") {
    const std::string csv = store::evaluation_csv(two_models());
    CHECK(csv.find("name,path,sha256,mixer,layout,layer_mixers,skipped,parameters,layers,training_length,seed,task,"
                   "metric,length,value,error,count\n") == 0);
    CHECK(csv.find("uniform,\"standard,standard\",,1234,2,256,1,perplexity,token_perplexity,16,12.5,0.25,1000\n") !=
          std::string::npos);
    CHECK(csv.find("\n\"mlp, \"\"even\"\"\",,,mlp,even,") != std::string::npos);
    CHECK(csv.find(",256,1e+05,,7\n") != std::string::npos);  // an error that is not known is an empty cell
}

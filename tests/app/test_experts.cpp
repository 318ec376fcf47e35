// SPDX-License-Identifier: GPL-3.0-or-later
// Which experts took a token, from the command line.
#include <catch2/catch.hpp>

#include "core/store/analysis/analysis_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

TEST_CASE("analyze stores each token's experts, info lists them, export draws them", "[app][experts]") {
    const TemporaryFolder folder;
    const std::string model = golden_sample(folder / "model", "gpt-oss").string();
    const std::string tokens = write_file(folder / "tokens.json", "[[3, 4, 5, 6, 7], [9, 8, 7]]").string();
    const std::string out = (folder / "a.headscope.h5").string();
    check_success(run_headscope({"analyze", model, "--tokens", tokens, "--record", "experts", "-o", out}));

    for (const std::string& path : {out, model}) {
        const Outcome outcome = run_headscope({"info", path, "--json"});
        check_success(outcome);
        CHECK(json::parse(outcome.out).at("experts") == 5);
        CHECK(json::parse(outcome.out).at("experts_per_token") == 2);
    }
    const Outcome told = run_headscope({"info", out});
    check_success(told);
    CHECK(told.out.find("experts per token 2\n") != std::string::npos);
    CHECK(told.out.find("record            experts\n") != std::string::npos);

    const auto file = store::AnalysisFile::open(out);
    CHECK(file->header().experts == 5);
    const auto experts = file->experts(1, 1);
    REQUIRE(experts.has_value());
    REQUIRE(experts->weight.shape == std::vector<std::int64_t>{5, 2});
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(experts->index.data[2 * i] != experts->index.data[2 * i + 1]);
        CHECK(experts->weight.data[2 * i] >= experts->weight.data[2 * i + 1]);
        CHECK(experts->weight.data[2 * i] + experts->weight.data[2 * i + 1] == Approx(1));
    }
    CHECK(experts->index.data[6] == -1);

    const std::string csv = (folder / "load.csv").string();
    check_success(run_headscope({"export", out, "--figure", "experts", "--sequence", "all", "-o", csv}));
    CHECK(read_file(csv).starts_with("model,layer,expert,tokens,share,weight\r\n"));
}

TEST_CASE("Recording experts of a model without any is refused before its weights are read", "[app][experts]") {
    const TemporaryFolder folder;
    const std::string out = (folder / "a.headscope.h5").string();
    check_refusal(
        run_headscope({"analyze", sample().string(), "--text", "In the beginning", "--record", "experts", "-o", out}),
        "--record experts");
    check_success(run_headscope({"analyze", sample().string(), "--text", "In the beginning", "-o", out}));
    check_refusal(run_headscope({"export", out, "--figure", "experts", "-o", (folder / "load.pdf").string()}),
                  "--record experts");
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders with a head for classes of texts, from the command line.
#include <catch2/catch.hpp>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/store/analysis/analysis_file.h"
#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

const std::vector<std::string> kTexts{"the cat sat", "a dog ran far", "river", "on a mat near the town"};

/// Log-probabilities of classes from their logits.
std::vector<double> log_shares(std::vector<double> logits) {
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    for (double& logit : logits) logit -= std::log(sum);
    return logits;
}

}  // namespace

TEST_CASE("A decoder's classes of texts are the same to evaluate and analyze, and speed times it",
          "[app][evaluate][classes]") {
    const TemporaryFolder folder;
    std::string lines;
    for (std::size_t n = 0; n < 40; ++n) {
        json one{{"text", kTexts[n % 4]}, {"label", n % 4 == 3 ? 0 : n % 4}};
        if (n == 1) one["pair"] = kTexts[3];
        lines += one.dump() + "\n";
    }
    const std::string file = write_file(folder / "texts.jsonl", lines).string();
    const auto job =
        write_file(folder / "job.toml",
                   "[model]\npreset = \"nano-transformer\"\n[data]\ntext = [\"texts.jsonl\"]\n"
                   "sequence_length = 64\nvalidation = 0.2\n[objective]\nkind = \"classify\"\nclasses = 3\n"
                   "[training]\nsteps = 3\nbatch = 4\nthreads = 1\n[probe]\nevery = 0\n[sample]\nevery = 0\n");
    check_success(run_headscope({"train", job.string(), "-o", (folder / "run").string()}));
    const std::string snapshot = (folder / "run" / "snapshots" / "last").string();

    const std::string items = (folder / "items.jsonl").string();
    check_success(run_headscope({"evaluate", snapshot, "--task", "classify", "--data", file, "--items", items}));
    std::vector<std::vector<double>> asked;
    std::istringstream stream(read_file(items));
    for (std::string line; std::getline(stream, line);)
        asked.push_back(json::parse(line).at("loglikelihood").get<std::vector<double>>());
    REQUIRE(asked.size() == 40);
    const auto analysed = [&](const std::string& name, const std::vector<std::string>& texts) {
        const auto output = folder / (name + ".headscope.h5");
        std::vector<std::string> words{"analyze", snapshot, "--record", "logits", "-o", output.string()};
        words.insert(words.end(), texts.begin(), texts.end());
        check_success(run_headscope(words));
        return store::AnalysisFile::open(output);
    };
    const auto agree = [&](const store::AnalysisFile& analysis, std::int64_t sequence, std::size_t item) {
        INFO(item);
        const auto logits = analysis.class_logits(sequence);
        REQUIRE(logits.has_value());
        REQUIRE(logits->data.size() == 3);
        const std::vector<double> found = log_shares(logits->data);
        for (std::size_t n = 0; n < 3; ++n) CHECK(found[n] == Approx(asked[item][n]).margin(2e-4));
    };
    const auto texts = analysed("texts", {"--text", kTexts[0], "--text", kTexts[3], "--text", kTexts[2]});
    agree(*texts, 0, 0);
    agree(*texts, 1, 3);
    agree(*texts, 2, 2);
    agree(*analysed("pair", {"--text", kTexts[1], "--pair", kTexts[3]}), 0, 1);

    const Outcome timed =
        run_headscope({"evaluate", snapshot, "--task", "speed", "--length", "16", "--batch", "2", "--json"});
    check_success(timed);
    std::size_t count = 0;
    const json document = json::parse(timed.out);
    for (const json& row : document.at("results")) {
        const std::string metric = row.at("metric");
        if (metric != "forward_ms" && metric != "step_ms") continue;
        CHECK(row.at("value").get<double>() > 0);
        ++count;
    }
    CHECK(count == 2);
}

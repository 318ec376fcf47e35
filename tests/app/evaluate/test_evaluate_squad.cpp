// SPDX-License-Identifier: GPL-3.0-or-later
// SQuAD from the command line: training, answers, stored answers, and the figure of benchmarks.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

std::string questions() {
    std::string lines;
    for (int n = 0; n < 12; ++n) {
        json one{{"id", "q" + std::to_string(n)}, {"question", "which day?"}};
        one["context"] = "day " + std::to_string(n) + " was long";
        one["answers"]["text"] = json::array();
        one["answers"]["answer_start"] = json::array();
        if (n % 3 != 2) {
            one["answers"]["text"].push_back(std::to_string(n));
            one["answers"]["answer_start"].push_back(4);
        }
        lines += one.dump() + "\n";
    }
    return lines;
}

double value_of(const json& results, const std::string& metric) {
    for (const json& row : results.at("results"))
        if (row.at("metric") == metric) return row.at("value");
    FAIL("no row of " << metric);
    return 0;
}

}  // namespace

TEST_CASE("An encoder answers questions, and its stored answers have the same scores", "[app][evaluate][squad]") {
    const TemporaryFolder folder;
    write_file(folder / "train.jsonl", questions());
    std::filesystem::create_directories(folder / "sets" / "squad_v2");
    write_file(folder / "sets" / "squad_v2" / "validation.jsonl", questions());
    const auto job =
        write_file(folder / "job.toml",
                   "[benchmark]\nvariant = \"MHA\"\ntask = \"squad_v2\"\n[model]\npreset = "
                   "\"nano-mhe-encoder\"\n[data]\ntext = [\"train.jsonl\"]\nvalidation = 0\nsequence_length = "
                   "40\n[objective]\nkind = \"spans\"\nstride = 8\n[probe]\nevery = 0\n[sample]\nevery = "
                   "0\n[training]\nsteps = 2\nbatch = 4\nthreads = 1\n");
    const std::string run = (folder / "run").string(), sets = (folder / "sets").string();
    check_success(run_headscope({"train", job.string(), "-o", run}));
    const auto evaluated = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate"};
        all.insert(all.end(), more.begin(), more.end());
        all.insert(all.end(), {"--json", "--task", "squad_v2", "--data", sets});
        const Outcome outcome = run_headscope(all);
        check_success(outcome);
        return json::parse(outcome.out);
    };
    const std::string items = (folder / "said.jsonl").string(), file = (folder / "a.evaluation.h5").string();
    const json results = evaluated({run, "--length", "40", "--task-option", "squad_v2.stride=8",
                                    "squad_v2.threshold=-0.01", "--items", items, "-o", file});
    const json stored = evaluated({"--predictions", items});
    for (const char* metric : {"exact", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "NoAns_f1", "best_exact",
                               "best_f1", "best_exact_thresh", "best_f1_thresh"}) {
        INFO(metric);
        CHECK(value_of(results, metric) == Approx(value_of(stored, metric)).margin(1e-9));
    }
    std::istringstream lines(read_file(items));
    std::string line;
    std::size_t count = 0;
    for (; std::getline(lines, line); ++count) {
        const json one = json::parse(line);
        CHECK(one.at("id") == "q" + std::to_string(count));
        CHECK(one.at("windows") == 1);
        CHECK(one.at("generated").get<std::string>().empty() == (one.at("no_answer").get<double>() > -0.01));
    }
    CHECK(count == 12);

    const std::string table = (folder / "squad.csv").string();
    check_success(
        run_headscope({"export", file, "--figure", "benchmark", "--set", "squad", "--baseline", "MHA", "-o", table}));
    CHECK(read_file(table).find("MHA,squad_v2,f1") != std::string::npos);

    const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
        std::vector<std::string> all{"evaluate", run, "--task", "squad_v2"};
        all.insert(all.end(), more.begin(), more.end());
        check_refusal(run_headscope(all), part);
    };
    refused({"--data", sets, "--length", "40"}, "the stride");  // 128
    refused({"--data", sets, "--length", "40", "--task-option", "squad_v2.windows=3"}, "squad_v2.windows");
    refused({}, "expected files of questions");
    check_refusal(run_headscope({"evaluate", run, "--task", "squad", "--data", (folder / "train.jsonl").string(),
                                 "--task-option", "squad.stride=8"}),
                  "an answer to each question");
}

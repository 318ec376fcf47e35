// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "core/analysis/job.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::analysis;
using nlohmann::json;
using test::IsError;

namespace {

AnalysisJob some_job() {
    AnalysisJob job;
    job.model = "models/a";
    job.files = {"a.txt", "b.txt"};
    job.tokens = {"ids.json"};
    job.labels = "labels.json";
    job.bos = "no";
    job.chat = job.windows = true;
    job.length = 64;
    job.segment = 16;
    job.memory = 0;
    job.record = {"states", "branch-weights"};
    job.layers = "0,2-3";
    job.switch_off = "1.2";
    job.switch_off_how = "mean";
    job.beyond_positions = job.maps_int16 = true;
    job.dtype = "bfloat16";
    job.weights = "file";
    job.device = "auto";
    job.kernels = "reference";
    job.threads = 3;
    return job;
}

}  // namespace

TEST_CASE("The settings of an analysis are the job and read back as it", "[analysis][job]") {
    const AnalysisJob job = some_job();
    CHECK(job_of(to_json(job)) == job);
    CHECK(job_of(to_json(AnalysisJob())) == AnalysisJob());
    CHECK(to_json(job).dump() ==
          R"({"all_rows":false,"beyond_positions":true,"bos":"no","chat":true,)"
          R"("device_requested":"auto","dtype":"bfloat16","examples":[],"files":["a.txt","b.txt"],)"
          R"("kernels_requested":"reference","labels":"labels.json","layers":"0,2-3",)"
          R"("length":64,"maps_int16":true,"model":"models/a","pairs":0,"record":["states","branch-weights"],)"
          R"("repeat_token":false,"segments":{"memory":0,"tokens":16},"skip":"","switch_off":"1.2",)"
          R"("switch_off_how":"mean","target_tokens":[],"targets":0,"texts":0,"threads":3,"tokens":["ids.json"],)"
          R"("weights_requested":"file","windows":true})");
}

TEST_CASE("Texts are counted in the settings; labels and segments are there where given", "[analysis][job]") {
    AnalysisJob job;
    job.texts = {"one", "two"};
    job.pairs = job.targets = {"three"};
    const json settings = to_json(job);
    CHECK(settings["texts"] == 2);
    CHECK(settings["pairs"] == 1);
    CHECK(settings["targets"] == 1);
    CHECK_FALSE(settings.contains("labels"));
    CHECK_FALSE(settings.contains("segments"));
    CHECK(job_of(settings) == AnalysisJob());
}

TEST_CASE("Settings of other programs leave defaults", "[analysis][job]") {
    for (const char* text : {"{}", "[]", "null", "7", R"({"model": 3, "files": {"a": 1}, "length": "x"})",
                             R"({"segments": [1], "threads": 1e300, "record": ["all"], "chat": 1})"})
        CHECK(job_of(json::parse(text)) == AnalysisJob());
    CHECK(job_of(json::parse("{", nullptr, false)) == AnalysisJob());
    CHECK(job_of(json::parse(R"({"length": 0, "switch_off": "0.1", "new": 1})")).switch_off == "0.1");
}

TEST_CASE("Every option has a name, a key and help of its own", "[analysis][job]") {
    std::set<std::string> names, keys;
    for (const JobOption& option : job_options()) {
        INFO(option.name);
        CHECK_FALSE(option.help.empty());
        CHECK(names.insert(option.name).second);
        CHECK(keys.insert(option.key).second);
    }
    CHECK(names.size() == 29);
}

TEST_CASE("Norms are recorded with maps; unknown levels are refused", "[analysis][job]") {
    const auto levels = record_levels({"norms", "branch-weights"});
    CHECK(levels.norms);
    CHECK(levels.maps);
    CHECK(levels.branches);
    CHECK_FALSE(levels.states);
    CHECK_THROWS_MATCHES(record_levels({"map"}), Error,
                         IsError(ErrorCode::usage, "[--record] expected one of \"maps\", \"attention\""));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Runs for every objective: they learn, report accuracies and metrics, resume to the bit, and refuse other models.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/run/run_history.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/objective_jobs.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("A run for any objective resumes to the bit, and reports its accuracy", "[training][objective][resume]") {
    const TemporaryFolder folder;
    for (const Objective& one : objectives(folder)) {
        DYNAMIC_SECTION(one.name) {
            const TemporaryFolder runs;
            const JobFile job = small_job(folder, with(one.lines, {"training.dropout=0.1", "training.accumulate=2"}));
            const Told whole = run(fresh(job, runs / "whole"));
            CHECK(whole.outcome.state == RunState::finished);
            TrainRequest request = fresh(job, runs / "parts");
            request.stop_after = [](std::int64_t step) { return step == 5; };
            run(request);
            const Told rest = run(resumed(runs / "parts"));
            CHECK(rest.outcome.validation == whole.outcome.validation);
            CHECK(weights_of(runs / "parts", 12) == weights_of(runs / "whole", 12));
            CHECK(optimizer_of(runs / "parts", 12) == optimizer_of(runs / "whole", 12));
            const auto history = read_run(runs / "parts"), expected = read_run(runs / "whole");
            CHECK(history.training.loss == expected.training.loss);
            for (const Step& step : whole.all<Step>()) {
                CHECK(std::isfinite(step.loss));
                CHECK(std::isnan(step.accuracy) != one.accurate);
                if (one.accurate) CHECK((step.accuracy >= 0 && step.accuracy <= 1));
            }
            for (const Validation& validation : whole.all<Validation>())
                CHECK(std::isnan(validation.accuracy) != one.accurate);
            if (one.accurate) CHECK(history.training.accuracy == expected.training.accuracy);
            CHECK(whole.all<SampleText>().empty());  // none of them can continue a text
            for (const Log& log : whole.all<Log>()) CHECK(log.level == LogLevel::note);
            const auto probes = whole.all<ProbeResult>();
            REQUIRE(probes.size() == 3);
            CHECK(checkpoint::Checkpoint::open(snapshot_of(runs / "whole", 12))->has_config());
        }
    }
}

TEST_CASE("A model learns what its objective asks for", "[training][objective]") {
    const TemporaryFolder folder;
    for (const Objective& one : objectives(folder)) {
        // Shuffled words of a text without order cannot be detected.
        if (std::string(one.name).find("classify") != 0 && std::string(one.name) != "number") continue;
        DYNAMIC_SECTION(one.name) {
            const Told told =
                run(fresh(small_job(folder, with(one.lines, {"training.steps=150", "training.batch=16",
                                                             "optimizer.learning_rate=2e-3", "schedule.warmup_steps=20",
                                                             "snapshots.every=0"})),
                          folder / "run"));
            const auto steps = told.all<Step>();
            INFO("from " << steps.front().loss << " to " << steps.back().loss);
            // Classes: below the entropy of their frequencies (1.04 nats of 1.1). Numbers: below their variance (1.25
            // of 5).
            CHECK(steps.back().loss < (one.accurate ? 0.5 : 0.15) * steps.front().loss);
            // One batch holds 16 items, of which a few decide: the last ten hold 160.
            if (one.accurate) {
                double accuracy = 0.0;
                for (const Step& step : std::span(steps).last(10)) accuracy += step.accuracy / 10.0;
                CHECK(accuracy > 0.8);
            }
            fs::remove_all(folder / "run");
        }
    }
}

TEST_CASE("Every metric of an objective is measured and logged", "[training][objective]") {
    const TemporaryFolder folder;
    for (const Objective& one : objectives(folder)) {
        const std::string kind = one.name;
        if (kind != "classify" && kind != "number" && kind != "spans" && kind != "translation") continue;
        const JobFile plain = small_job(folder, one.lines);
        for (const std::string& metric : metrics_of(plain.data.objective)) {
            if (metric == "loss") continue;
            const TemporaryFolder runs;
            const JobFile job = small_job(folder, with(one.lines, {"training.steps=4", "evaluation.metric=" + metric}));
            const Told told = run(fresh(job, runs / "run"));
            const auto lines = told.all<Log>();
            INFO(kind << " " << metric);
            CHECK(std::any_of(lines.begin(), lines.end(), [&](const Log& line) {
                return line.text.starts_with(metric + " ") && line.text.ends_with(" held-out items");
            }));
        }
    }
}

TEST_CASE("A model that cannot be trained for a job's objective is refused at its key", "[training][objective]") {
    const TemporaryFolder folder;
    const auto refused = [&](const Lines& lines, const std::string& key, const std::string& part) {
        INFO(lines.front() << " " << lines.back());
        TrainRequest request = fresh(small_job(folder, lines), folder / "run");
        REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::unsupported, part));
        REQUIRE_THROWS_MATCHES(run(request), Error, IsError(ErrorCode::unsupported, key));
        CHECK_FALSE(fs::exists(folder / "run"));
    };
    refused({"objective.kind=masked"}, "objective.kind", "found a decoder");
    refused({"model.preset=nano-mhe-encoder"}, "objective.kind", "found an encoder");
    refused({"objective.kind=masked", "model.preset=nano-hashformer-md5-add"}, "objective.kind", "hashes of words");
    refused({"objective.kind=masked", "model.preset=nano-mhe-encoder",
             "model.embedding={kind=\"emb\", hash=\"md5\", rows=50}"},
            "objective.kind", "hashes of words");
    refused({"objective.kind=translation", "model.preset=nano-mhe-encoder"}, "objective.kind", "found an encoder");
    refused({"objective.kind=shuffle_random", "model.preset=nano-mhe-decoder"}, "objective.kind", "found a decoder");
}

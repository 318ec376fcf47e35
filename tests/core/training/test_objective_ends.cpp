// SPDX-License-Identifier: GPL-3.0-or-later
// Ends of runs by patience and by epochs, and their best snapshots.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/run/run_folder.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/objective_jobs.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

TEST_CASE("A run ends when its evaluations find no lower loss", "[training][objective][resume]") {
    const TemporaryFolder folder;
    // Nothing is learned at a rate of 0: the first evaluation is the best.
    const JobFile job = small_job(folder, {"optimizer.learning_rate=0", "schedule.minimum_rate=0", "evaluation.every=2",
                                           "evaluation.patience=2"});
    const Told whole = run(fresh(job, folder / "whole"));
    CHECK(whole.outcome.state == RunState::finished);
    CHECK(whole.outcome.step == 6);
    CHECK(run(resumed(folder / "whole")).outcome.step == 6);
    TrainRequest request = fresh(job, folder / "parts");
    request.stop_after = [](std::int64_t step) { return step == 5; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.step == 6);
    CHECK(weights_of(folder / "parts", 6) == weights_of(folder / "whole", 6));
    CHECK(run(fresh(small_job(folder, {"evaluation.every=2", "evaluation.patience=50"}), folder / "learns"))
              .outcome.step == 12);
}

TEST_CASE("The best snapshot follows the job's metric", "[training][objective][resume]") {
    const TemporaryFolder folder;
    // Every text to learn from has class 1, three of five held-out ones do. The held-out accuracy is at its peak once
    // class 1 is the likelier one; the loss falls until its probability is 3/5.
    const auto texts = [&](const char* name, const std::function<int(std::size_t)>& label) {
        std::string lines;
        for (std::size_t n = 0; n < 40; ++n)
            lines += "{\"text\": \"" + kWords[n % 4] + " " + kWords[n / 4 % 4] +
                     "\", \"label\": " + std::to_string(label(n)) + "}\n";
        write_file(folder / name, lines);
        return (folder / name).string();
    };
    const std::string learned = texts("learned.jsonl", [](std::size_t) { return 1; });
    const std::string held_out = texts("held-out.jsonl", [](std::size_t n) { return n % 5 < 3 ? 1 : 0; });
    const auto job = [&](const Lines& more) {
        return small_job(
            folder, with({"objective.kind=classify", "model.preset=nano-mhe-encoder", "data.text=" + learned,
                          "data.validation=[\"" + held_out + "\"]", "training.steps=40", "optimizer.learning_rate=1e-3",
                          "schedule.kind=constant", "evaluation.every=2", "evaluation.batches=1", "snapshots.every=2",
                          "probe.every=0"},
                         more));
    };
    const auto best_of = [&](const fs::path& run) {
        return snapshot_step(fs::read_symlink(RunFolder{run}.snapshots() / "best").filename().string());
    };
    const Told told = run(fresh(job({"evaluation.metric=accuracy"}), folder / "accuracy"));
    std::int64_t peak = 0, lowest = 0;
    double accuracy = -1, loss = 1e9;
    for (const Validation& one : told.all<Validation>()) {
        CHECK(one.tokens == 40);  // all items, not evaluation.batches
        if (one.step > 0 && one.accuracy > accuracy) {
            accuracy = one.accuracy;
            peak = one.step;
        }
        if (one.step > 0 && one.loss < loss) {
            loss = one.loss;
            lowest = one.step;
        }
    }
    REQUIRE(peak < lowest);
    CHECK(best_of(folder / "accuracy") == peak);
    CHECK(fs::exists(snapshot_of(folder / "accuracy", peak)));
    run(fresh(job({"evaluation.metric=accuracy", "snapshots.every=30"}), folder / "between"));  // not at the peak
    CHECK(best_of(folder / "between") == peak);
    CHECK(weights_of(folder / "between", peak) == weights_of(folder / "accuracy", peak));
    run(fresh(job({"evaluation.metric=accuracy", "snapshots.every=0"}), folder / "end"));
    CHECK(best_of(folder / "end") == 40);  // the only one
    run(fresh(job({"evaluation.batches=10"}), folder / "loss"));
    CHECK(best_of(folder / "loss") > peak);

    // Patience follows it too.
    std::int64_t best = 0, last = 0, waited = 0;
    double highest = -1;
    for (const Validation& one : told.all<Validation>()) {
        if (one.step == 0 || waited == 3) continue;
        last = one.step;
        waited = one.accuracy > highest ? 0 : waited + 1;
        if (waited == 0) best = one.step;
        highest = std::max(highest, one.accuracy);
    }
    REQUIRE(waited == 3);
    const Lines patient = {"evaluation.metric=accuracy", "evaluation.patience=3"};
    CHECK(run(fresh(job(patient), folder / "whole")).outcome.step == last);
    TrainRequest request = fresh(job(patient), folder / "parts");
    request.stop_after = [&](std::int64_t step) { return step == last - 3; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.step == last);
    CHECK(best_of(folder / "parts") == best);
}

TEST_CASE("A run of epochs ends, warms up and evaluates by the data's length, and logs it",
          "[training][objective][resume]") {
    const TemporaryFolder folder;
    std::string lines;
    for (int n = 0; n < 40; ++n)
        lines += "{\"text\": \"" + kWords[n % 4] + "\", \"label\": " + (n % 2 ? "1}\n" : "0}\n");
    for (const char* name : {"forty.jsonl", "held-out.jsonl"}) write_file(folder / name, lines);
    const std::string file = (folder / "forty.jsonl").string(), held_out = (folder / "held-out.jsonl").string();
    const JobFile job =
        small_job(folder, {"objective.kind=classify", "model.preset=nano-mhe-encoder", "data.text=" + file,
                           "data.validation=[\"" + held_out + "\"]", "training.epochs=1.5", "schedule.warmup_share=0.2",
                           "evaluation.every_epochs=0.5", "snapshots.every=5", "probe.every=0"});
    // 60 sequences, 4 an update.
    const Told told = run(fresh(job, folder / "run"));
    CHECK(told.outcome.step == 15);
    const auto logs = told.all<Log>();
    CHECK(std::any_of(logs.begin(), logs.end(), [](const Log& line) {
        return line.text == "the run has 15 updates, a warm-up of 3, an evaluation every 5";
    }));
    std::vector<std::int64_t> evaluated;
    for (const Validation& one : told.all<Validation>()) evaluated.push_back(one.step);
    CHECK(evaluated == std::vector<std::int64_t>{0, 5, 10, 15});
    const auto steps = told.all<Step>();
    CHECK(steps[1].learning_rate < steps[2].learning_rate);
    CHECK(steps[2].learning_rate == Approx(5e-3));
    TrainRequest request = fresh(job, folder / "parts");
    request.stop_after = [](std::int64_t step) { return step == 7; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.step == 15);
    CHECK(weights_of(folder / "parts", 15) == weights_of(folder / "run", 15));
    // A share of the run is fixed once it began.
    TrainRequest longer = resumed(folder / "parts");
    set_key(longer.job, "training.epochs=3");
    REQUIRE_THROWS_MATCHES(run(longer), Error, IsError(ErrorCode::mismatch, "warmup_share"));
}

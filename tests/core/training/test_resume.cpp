// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that end too early and go on: the same weights to the bit, whatever was interrupted, damaged or asked for.
// A run folder that is copied while the run works is what a kill at that moment leaves.
#include "core/base/error.h"
#include "core/run/control.h"
#include "core/run/run_folder.h"
#include "core/run/run_history.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kHard = {"training.dropout=0.1", "training.attention_dropout=0.2",
                                        "training.accumulate=2", "data.workers=1",
                                        "data.fixed_token={ position = 3, id = 0 }"};

void copy_folder(const fs::path& from, const fs::path& to) {
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

void change_byte(const fs::path& path, std::size_t from_end) {
    std::string bytes = read_file(path);
    bytes.at(bytes.size() - from_end) ^= 1;
    write_file(path, bytes);
}

}  // namespace

TEST_CASE("A run killed after any of its events ends with the same weights", "[training][resume]") {
    const TemporaryFolder folder;
    TrainRequest request = fresh(small_job(folder, kHard), folder / "whole");
    std::vector<fs::path> killed;
    request.on_event = [&](const Event& event) {
        // A choice of moments: kinds of events are as good as times.
        const bool early = killed.size() < 3;
        const auto* step = std::get_if<Step>(&event.what);
        const bool chosen = early || (step != nullptr && step->step % 4 == 1) ||
                            std::holds_alternative<training::Snapshot>(event.what) ||
                            std::holds_alternative<StateChanged>(event.what);
        if (!chosen) return;
        killed.push_back(folder / ("killed-" + std::to_string(killed.size())));
        copy_folder(folder / "whole", killed.back());
    };
    const Told whole = run(request);
    REQUIRE(killed.size() >= 9);
    for (std::size_t i = 0; i < killed.size(); ++i) {
        INFO("killed at moment " << i);
        TrainRequest again = resumed(killed[i]);
        set_key(again.job, "data.workers=" + std::to_string(1 + i % 3));
        const Told told = run(again);
        CHECK(told.outcome.state == RunState::finished);
        CHECK(told.outcome.validation == whole.outcome.validation);
        CHECK(weights_of(killed[i], 12) == weights_of(folder / "whole", 12));
        CHECK(optimizer_of(killed[i], 12) == optimizer_of(folder / "whole", 12));
        // The history shows one run, each step once, with the same losses.
        const auto history = read_run(killed[i]), expected = read_run(folder / "whole");
        CHECK(history.training.loss == expected.training.loss);
        CHECK(history.validation.loss == expected.validation.loss);
        CHECK(history.probes.step == expected.probes.step);
    }
}

TEST_CASE("A run that is stopped again and again ends with the same weights", "[training][resume]") {
    const TemporaryFolder folder;
    for (const char* precision : {"training.precision=float32", "training.precision=bfloat16"}) {
        const TemporaryFolder runs;
        std::vector<std::string> lines = kHard;
        lines.emplace_back(precision);
        run(fresh(small_job(folder, lines), runs / "whole"));
        TrainRequest request = fresh(small_job(folder, lines), runs / "parts");
        for (int parts = 1;; ++parts) {
            REQUIRE(parts < 8);
            request.stop_after = [](std::int64_t step) { return step % 5 == 3; };
            const Told told = run(request);
            if (told.outcome.state == RunState::finished) break;
            CHECK(told.outcome.state == RunState::stopped);
            request = resumed(runs / "parts");
        }
        CHECK(weights_of(runs / "parts", 12) == weights_of(runs / "whole", 12));
        CHECK(optimizer_of(runs / "parts", 12) == optimizer_of(runs / "whole", 12));
    }
}

TEST_CASE("Mixers with windows, sinks and learned states resume with the same weights", "[training][resume]") {
    const TemporaryFolder folder;
    for (const char* mixer : {"lazy", "ttt_linear", "streaming_llm"}) {
        INFO(mixer);
        const TemporaryFolder runs;
        std::vector<std::string> lines = kHard;
        lines.insert(lines.end(), {std::string("model.mixer=") + mixer, "training.steps=7", "sample.every=0"});
        if (mixer == std::string("ttt_linear")) lines.emplace_back("training.attention_dropout=0");
        const Told whole = run(fresh(small_job(folder, lines), runs / "whole"));
        TrainRequest request = fresh(small_job(folder, lines), runs / "parts");
        request.stop_after = [](std::int64_t step) { return step == 3; };
        run(request);
        CHECK(run(resumed(runs / "parts")).outcome.validation == whole.outcome.validation);
        CHECK(weights_of(runs / "parts", 7) == weights_of(runs / "whole", 7));
        CHECK(optimizer_of(runs / "parts", 7) == optimizer_of(runs / "whole", 7));
    }
}

TEST_CASE("A torn, changed or mixed snapshot is noticed, and the one before is taken", "[training][resume]") {
    const TemporaryFolder folder;
    const fs::path whole = folder / "whole", broken = folder / "broken";
    run(fresh(small_job(folder, kHard), whole));
    copy_folder(whole, broken);
    const fs::path last = broken / "snapshots" / "step-000012";
    std::string problem = "step-000012";
    SECTION("weights changed") {
        change_byte(last / "model.safetensors", 9);
    }
    SECTION("optimiser's state cut") {
        fs::resize_file(last / "optimizer.safetensors", fs::file_size(last / "optimizer.safetensors") - 4);
    }
    SECTION("a file missing") {
        fs::remove(last / "training.json");
    }
    SECTION("no manifest") {
        fs::remove(last / "manifest.json");
    }
    SECTION("a manifest of something else") {
        write_file(last / "manifest.json", "{\"files\": {}}");
    }
    SECTION("weights of another step") {
        fs::copy_file(broken / "snapshots" / "step-000008" / "model.safetensors", last / "model.safetensors",
                      fs::copy_options::overwrite_existing);
    }
    SECTION("all of another step under its name") {
        fs::remove_all(last);
        copy_folder(broken / "snapshots" / "step-000008", last);
    }
    const Told told = run(resumed(broken));
    REQUIRE_FALSE(told.all<Log>().empty());
    CHECK(told.all<Log>()[0].text.find(problem) != std::string::npos);
    CHECK(told.all<Started>()[0].step == 8);
    CHECK(told.all<Rewound>().size() == 1);
    CHECK(weights_of(broken, 12) == weights_of(whole, 12));
    CHECK(fs::exists(broken / "snapshots" / "step-000012.damaged"));
}

TEST_CASE("Without a whole snapshot a run begins again", "[training][resume]") {
    const TemporaryFolder folder;
    run(fresh(small_job(folder), folder / "whole"));
    copy_folder(folder / "whole", folder / "broken");
    for (const char* step : {"step-000004", "step-000008", "step-000012"})
        fs::remove(folder / "broken" / "snapshots" / step / "config.json");
    const Told told = run(resumed(folder / "broken"));
    CHECK(told.all<Started>()[0].step == 0);
    CHECK(weights_of(folder / "broken", 12) == weights_of(folder / "whole", 12));
}

TEST_CASE("A changed job or changed data are refused on resume", "[training][resume]") {
    const TemporaryFolder folder;
    TrainRequest request = fresh(small_job(folder), folder / "run");
    request.stop_after = [](std::int64_t step) { return step == 5; };
    run(request);
    SECTION("the job") {
        TrainRequest again = resumed(folder / "run");
        set_key(again.job, "optimizer.learning_rate=1e-2");
        REQUIRE_THROWS_MATCHES(run(again), Error,
                               IsError(ErrorCode::mismatch, "optimizer.learning_rate: 0.01, was 0.005"));
    }
    SECTION("the text") {
        write_file(folder / "text.txt", small_text() + "more");
        REQUIRE_THROWS_MATCHES(run(resumed(folder / "run")), Error, IsError(ErrorCode::mismatch, "the data that"));
    }
    SECTION("what changes no number") {
        TrainRequest again = resumed(folder / "run");
        for (const char* line : {"evaluation.every=3", "probe.every=0", "snapshots.keep=2", "name=x"})
            set_key(again.job, line);
        CHECK(run(again).outcome.state == RunState::finished);
        CHECK(stored_job(folder / "run").name == "x");
    }
}

TEST_CASE("What was done to a run is done again after a kill", "[training][resume][control]") {
    const TemporaryFolder folder;
    const RunFolder whole{folder / "whole"};
    TrainRequest request = fresh(small_job(folder), whole.path);
    request.on_event = [&](const Event& event) {
        const auto* step = std::get_if<Step>(&event.what);
        if (step == nullptr) return;
        if (step->step == 5) send_control(whole, ControlAction::learning_rate, "1e-3");
        if (step->step == 6) send_control(whole, ControlAction::evaluate);
        if (step->step == 7) copy_folder(whole.path, folder / "killed");
        if (step->step == 9) send_control(whole, ControlAction::learning_rate, "2e-3");
    };
    const Told told = run(request);
    const auto controls = told.all<Control>();
    REQUIRE(controls.size() == 3);
    CHECK(controls[0].step == 5);
    CHECK(controls[0].action == "learning_rate");
    CHECK_FALSE(controls[0].id.empty());
    CHECK(told.all<Step>()[5].learning_rate < 1.01e-3);
    CHECK(controls[1].outcome.find("loss") != std::string::npos);
    // The copy has the first two; the third is done again.
    const RunFolder killed{folder / "killed"};
    TrainRequest again = resumed(killed.path);
    again.on_event = [&](const Event& event) {
        const auto* step = std::get_if<Step>(&event.what);
        if (step != nullptr && step->step == 9) send_control(killed, ControlAction::learning_rate, "2e-3");
    };
    const Told second = run(again);
    CHECK(second.all<Started>()[0].step == 4);
    CHECK(second.all<Control>().size() == 3);
    CHECK(weights_of(killed.path, 12) == weights_of(whole.path, 12));
    // Without it they would differ.
    CHECK(told.all<Step>()[11].learning_rate != told.all<Step>()[4].learning_rate);
}

TEST_CASE("A killed job of minutes follows the plans that were made before", "[training][resume]") {
    const TemporaryFolder folder;
    TrainRequest request = fresh(small_job(folder, {"training.minutes=0.02", "snapshots.every=5", "probe.every=0",
                                                    "sample.every=0", "evaluation.every=0"}),
                                 folder / "whole");
    std::int64_t last = 0, plans = 0;
    request.on_event = [&](const Event& event) {
        const auto* control = std::get_if<Control>(&event.what);
        if (const auto* step = std::get_if<Step>(&event.what); step != nullptr && !fs::exists(folder / "killed"))
            last = step->step;
        // After the third plan: one was made since the last snapshot.
        if (control != nullptr && control->action == "plan" && ++plans == 3)
            copy_folder(folder / "whole", folder / "killed");
    };
    const Told whole = run(request);
    CHECK(whole.outcome.state == RunState::finished);
    CHECK(whole.all<Step>().back().learning_rate < 1.5e-3);
    REQUIRE(plans > 3);
    const Told again = run(resumed(folder / "killed"));
    const std::vector<Step> steps = again.all<Step>(), undisturbed = whole.all<Step>();
    REQUIRE_FALSE(steps.empty());
    for (const Step& step : steps) {
        if (step.step > last) break;
        const Step& before = undisturbed.at(static_cast<std::size_t>(step.step) - 1);
        CHECK(step.loss == before.loss);
        CHECK(step.learning_rate == before.learning_rate);
    }
    CHECK(again.outcome.state == RunState::finished);
}

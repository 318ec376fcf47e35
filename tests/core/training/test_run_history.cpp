// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>

#include "core/run/journal.h"
#include "core/run/run_history.h"
#include "core/store/hdf5/half.h"
#include "core/store/run/run_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/training/sample_run.h"

using namespace headscope;
using namespace headscope::test;
using namespace headscope::training;

namespace {

RunHistory history_of(const std::vector<What>& whats) {
    RunHistory history;
    for (const What& what : whats) history.add({1.75e9, what});
    return history;
}

}  // namespace

TEST_CASE("Accuracies are kept with their steps, through a rewind and in the file", "[training][run]") {
    const TemporaryFolder folder;
    Step first = sample_step(1), second = sample_step(2);
    first.accuracy = 0.25;
    second.accuracy = 0.5;
    auto record = history_of({sample_start(), first, Validation{1, 5.5, 4096, 0.5, 0.375}, second,
                              Validation{2, 5, 4096, 0.5, 0.625}, Rewound{1, "resumed"}, sample_step(2)})
                      .take();
    REQUIRE(record.training.accuracy.size() == 2);
    CHECK(record.training.accuracy[0] == 0.25);
    CHECK(std::isnan(record.training.accuracy[1]));
    CHECK(record.validation.accuracy == std::vector<double>{0.375});
    record.training.accuracy.pop_back();  // of a record that has no accuracies: NaN in the file
    store::write_run_file(folder / "run.h5", record);
    const auto read = store::read_run_file(folder / "run.h5");
    REQUIRE(read.training.accuracy.size() == 2);
    CHECK(read.training.accuracy[0] == 0.25);
    CHECK(std::isnan(read.training.accuracy[1]));
    CHECK(read.validation.accuracy == record.validation.accuracy);
}

TEST_CASE("A run's events come to its numbers", "[training][run]") {
    const auto record =
        history_of({sample_start(), sample_step(1), Validation{1, 5.5, 4096, 0.5}, sample_probe(1), sample_step(2),
                    Snapshot{2, "step-000002", 4000, 0.1, true}, SampleText{2, "In", " the"},
                    Control{2, "learning_rate", "3e-4", "set"}, Log{LogLevel::warning, 2, "a spike"},
                    StateChanged{RunState::paused, 2, "asked for"}})
            .take();
    REQUIRE(record.created == "2025-06-15T15:06:40Z");
    REQUIRE(record.training.step == std::vector<std::int64_t>{1, 2});
    REQUIRE(record.training.loss == std::vector<double>{5.0, 3.0});
    REQUIRE(record.training.memory == std::vector<double>{3e8, 3e8});
    REQUIRE(record.validation.loss == std::vector<double>{5.5});
    REQUIRE(record.probes.step == std::vector<std::int64_t>{1});
    REQUIRE(record.probes.find("entropy")->values.size() == 4);
    REQUIRE(!record.probes.find("head_diversity")->per_head);
    REQUIRE(record.probes.find("local_focus")->width == 4);
    REQUIRE(record.probes.thumbnails == std::vector<std::uint16_t>(16, store::half_from_float(0.5F)));
    REQUIRE(record.snapshots.front().best);
    REQUIRE(record.samples.front().text == " the");
    REQUIRE(record.controls.front().action == "learning_rate");
    REQUIRE(record.log.front().level == "warning");
    REQUIRE(record.state == "paused");
    REQUIRE(record.last_step() == 2);
}

TEST_CASE("What a resume from an earlier step supersedes is not shown", "[training][run]") {
    std::vector<What> whats{sample_start()};
    for (int n = 1; n <= 30; ++n) {
        whats.emplace_back(sample_step(n, 9));
        if (n % 10 == 0) {
            whats.emplace_back(Validation{n, 9, 1, 0});
            whats.emplace_back(sample_probe(n));
            whats.emplace_back(Snapshot{n, "step", 1, 0, false});
            whats.emplace_back(SampleText{n, "", "old"});
        }
    }
    SECTION("recorded by a rewind") {
        whats.emplace_back(Rewound{20, "resumed from step-000020"});
    }
    SECTION("recorded by a new start") {
        whats.emplace_back(sample_start(20));
    }
    whats.emplace_back(sample_step(21, 2));
    const auto record = history_of(whats).take();
    REQUIRE(record.training.step.size() == 21);
    REQUIRE(record.training.loss[19] == 9);
    REQUIRE(record.training.loss[20] == 2);
    REQUIRE(record.training.seconds.size() == 21);
    REQUIRE(record.validation.step == std::vector<std::int64_t>{10, 20});
    REQUIRE(record.probes.step == std::vector<std::int64_t>{10, 20});
    REQUIRE(record.probes.find("entropy")->values.size() == 8);
    REQUIRE(record.probes.thumbnails.size() == 32);
    REQUIRE(record.snapshots.size() == 2);
    REQUIRE(record.samples.size() == 2);
}

TEST_CASE("A repeated step replaces everything after the first", "[training][run]") {
    const auto record = history_of({sample_start(), sample_step(1), sample_step(2, 9), sample_step(3, 9),
                                    sample_step(2, 4), sample_probe(2), sample_probe(2, 0.25F)})
                            .take();
    REQUIRE(record.training.loss == std::vector<double>{5, 4});
    REQUIRE(record.probes.count() == 1);
    REQUIRE(record.probes.thumbnails.front() == store::half_from_float(0.25F));
}

TEST_CASE("A run's numbers have all texts that it wrote", "[training][run]") {
    std::vector<What> whats{sample_start()};
    for (int n = 1; n <= 1000; ++n) whats.emplace_back(SampleText{n, "", std::to_string(n)});
    const auto record = history_of(whats).take();
    REQUIRE(record.samples.size() == 1000);
    CHECK(record.samples.front().text == "1");
}

TEST_CASE("Probes of odd sizes are left out or filled", "[training][run]") {
    auto late = sample_probe(2);
    late.indicators.push_back({"sink", {1, 2, 3, 4}});
    late.indicators.push_back({"../name", {1, 2, 3, 4}});
    late.indicators[0].values.pop_back();
    late.thumbnails.clear();
    const auto record = history_of({sample_start(), sample_probe(1), late}).take();
    const auto& sink = record.probes.find("sink")->values;
    REQUIRE(sink.size() == 8);
    REQUIRE(std::isnan(sink[3]));
    REQUIRE(sink[4] == 1);
    REQUIRE(record.probes.find("../name") == nullptr);
    REQUIRE(std::isnan(record.probes.find("entropy")->values[4]));
    REQUIRE(record.probes.thumbnails.size() == 32);
    REQUIRE(std::isnan(store::float_from_half(record.probes.thumbnails.back())));
}

TEST_CASE("Empty probes take at most a multiple of the room of the others", "[training][run]") {
    auto start = sample_start();
    start.sites.assign(1000, start.sites.front());
    const auto cells = start.sites.size() * static_cast<std::size_t>(start.sites.front().heads);
    RunHistory history;
    history.add({1.75e9, start});
    ProbeResult probe;
    for (int step = 1; step < 30'000; ++step) {
        probe.step = step;
        if (step == 1) probe.indicators = {{"entropy", std::vector<double>(cells, 1.0)}};
        history.add({1.75e9, probe});
        probe.indicators.clear();
    }
    const auto record = history.take();
    const auto& entropy = record.probes.find("entropy")->values;
    CHECK(entropy.size() == record.probes.step.size() * cells);
    CHECK(entropy.size() <= (std::size_t{1} << 20U) + 17 * cells);
    // One that comes late stands for all those before it.
    probe.step = 30'000;
    probe.indicators = {{"sink", std::vector<double>(cells, 1.0)}};
    RunHistory late;
    late.add({1.75e9, start});
    ProbeResult nothing;
    for (nothing.step = 1; nothing.step < 30'000; ++nothing.step) late.add({1.75e9, nothing});
    late.add({1.75e9, probe});
    CHECK(late.take().probes.find("sink") == nullptr);
}

TEST_CASE("run.h5 is built from the journal and again after a crash, and reads the same", "[training][run]") {
    const TemporaryFolder folder;
    {
        JournalWriter writer(folder / "events.log");
        writer.append(sample_start());
        for (int n = 1; n <= 20; ++n) writer.append(sample_step(n));
        writer.append(sample_probe(20));
        build_run_file(folder.path());
        REQUIRE(store::read_run_file(folder / "run.h5").state == "running");
        writer.append(sample_step(21));
    }
    write_file(folder / "run.h5", "a file that was not finished");
    REQUIRE(read_run(folder.path()).state == "interrupted");
    build_run_file(folder.path());
    REQUIRE(folder.names() == std::vector<std::string>{"events.log", "run.h5"});
    const auto record = store::read_run_file(folder / "run.h5");
    REQUIRE(record.training.step.size() == 21);
    REQUIRE(record.state == "interrupted");
    REQUIRE(record.name == folder.path().filename().string());
    std::filesystem::remove(folder / "events.log");
    REQUIRE(read_run(folder.path()).training.loss == record.training.loss);
    std::filesystem::remove(folder / "run.h5");
    REQUIRE(!is_run_folder(folder.path()));
    REQUIRE_THROWS_MATCHES(read_run(folder.path()), Error, IsError(ErrorCode::mismatch, "folder of a run"));
}

TEST_CASE("Opening a run rebuilds a run file that a crash left behind the journal", "[training][run]") {
    const TemporaryFolder folder;
    const auto file = folder / "run.h5";
    const auto steps = [&] { return store::read_run_file(file).training.step.size(); };
    {
        JournalWriter writer(folder / "events.log");
        writer.append(sample_start());
        writer.append(sample_step(1));
        mend_run_file(folder.path());
        REQUIRE(folder.names() == std::vector<std::string>{"events.log"});  // somebody works on it
    }
    mend_run_file(folder.path());
    REQUIRE(steps() == 1);
    REQUIRE(store::read_run_file(file).state == "interrupted");
    const auto made = std::filesystem::last_write_time(file);
    mend_run_file(folder.path());
    REQUIRE(std::filesystem::last_write_time(file) == made);
    {
        JournalWriter writer(folder / "events.log");
        writer.append(sample_step(2));
    }
    std::filesystem::last_write_time(file, made - std::chrono::seconds(60));  // clocks of files are coarse
    mend_run_file(folder.path());
    REQUIRE(steps() == 2);
    // Without write access the journal is read.
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);
    mend_run_file(folder.path());
    REQUIRE(read_run(folder.path()).training.step.size() == 2);
}

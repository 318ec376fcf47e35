// SPDX-License-Identifier: GPL-3.0-or-later
// A journal's events as columns, curves and radars.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/workspace/finished_run.h"
#include "core/workspace/live_run.h"
#include "core/workspace/probe_series.h"
#include "core/workspace/run_curves.h"

using namespace headscope;
using namespace headscope::workspace;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

training::Event at(double time, training::What what) {
    return {time, std::move(what)};
}

training::Step step(std::int64_t number, double loss = 1) {
    training::Step event;
    event.step = number;
    event.tokens = 100 * number;
    event.loss = loss;
    event.seconds = 0.5 * static_cast<double>(number);
    return event;
}

training::Started started(std::int64_t steps) {
    training::Started event;
    event.steps = steps;
    for (int layer = 0; layer < 2; ++layer) {
        Site site;
        site.layer = layer;
        site.heads = layer == 0 ? 3 : 2;
        event.sites.push_back(site);
    }
    return event;
}

/// Two sites, three heads at most; the last head of the second site is not there.
training::ProbeResult probe(std::int64_t number, double base) {
    training::ProbeResult result;
    result.step = number;
    result.indicators.push_back({"sink", {base, base + 1, base + 2, base + 3, base + 5, kNone}});
    result.indicators.push_back({"head_diversity", {base / 10, base / 5}});
    training::ProbeResult::Indicator focus{"local_focus", {}};
    for (int i = 0; i < 24; ++i) focus.values.push_back(i < 20 ? i : kNone);
    result.indicators.push_back(focus);
    return result;
}

LiveRun made(std::initializer_list<training::What> events) {
    LiveRun run;
    double time = 1000;
    for (const auto& event : events) run.add(at(time++, event));
    return run;
}

}  // namespace

TEST_CASE("A run's state is its journal's last one, unless its writer died", "[workspace][run]") {
    LiveRun run;
    CHECK(run.status() == RunStatus::empty);
    run.add(at(1, started(10)));
    CHECK(run.status() == RunStatus::interrupted);
    run.written = true;
    CHECK(run.status() == RunStatus::running);
    run.add(at(2, training::StateChanged{training::RunState::paused, 3, {}}));
    CHECK(run.status() == RunStatus::paused);
    run.written = false;
    CHECK(run.status() == RunStatus::interrupted);
    run.add(at(3, training::StateChanged{training::RunState::finished, 10, {}}));
    CHECK(run.status() == RunStatus::finished);
    run.add(at(4, started(20)));
    CHECK(run.status() == RunStatus::interrupted);
    CHECK(run.planned_steps() == 20);
}

TEST_CASE("What a rewind supersedes is forgotten", "[workspace][run]") {
    LiveRun run =
        made({started(10), step(1), step(2), step(3), training::Validation{3, 2.0, 10, 0}, probe(2, 0), probe(3, 0),
              training::Snapshot{2, "step-000002", 10, 0, true}, training::Snapshot{3, "step-000003", 10, 0, false},
              training::SampleText{3, "a", "b"}, training::Rewound{2, "a resume"}});
    CHECK(run.last_step() == 2);
    CHECK(run.steps.size() == 2);
    CHECK(run.steps.loss.size() == 2);
    CHECK(run.validations.step.empty());
    CHECK(run.probes.size() == 1);
    REQUIRE(run.snapshots.size() == 1);
    CHECK(run.snapshots.front().name == "step-000002");
    CHECK(run.samples.empty());
    CHECK(run.log.back().text.find("step 2") != std::string::npos);
    run.add(at(2000, step(2, 7)));  // without a word, as after a machine that died
    CHECK(run.steps.size() == 2);
    CHECK(run.steps.loss.back() == 7);
}

TEST_CASE("Records of a resumed run replace earlier ones", "[workspace][run]") {
    LiveRun run =
        made({started(10), step(1), step(2), training::Validation{2, 3.0, 10, 0}, probe(2, 0),
              training::Snapshot{2, "step-000002", 10, 0, true}, step(3), step(4), training::Validation{4, 2.0, 10, 0},
              training::Snapshot{4, "step-000004", 10, 0, true}, training::SampleText{4, "a", "old"}});
    CHECK(run.best_snapshot()->step == 4);
    training::Started again = started(20);
    again.step = 2;
    run.add(at(2000, again));  // a machine that died recorded no rewind
    CHECK(run.last_step() == 2);
    CHECK(run.validations.step == std::vector<std::int64_t>{2});
    CHECK(run.samples.empty());
    REQUIRE(run.best_snapshot() != nullptr);
    CHECK(run.best_snapshot()->step == 2);
    CHECK(run.best_snapshot()->best);
    CHECK(run.resumed == 1);
    for (const training::What& what :
         {training::What(training::Validation{2, 3.0, 10, 0}), training::What(probe(2, 1)),
          training::What(training::SampleText{2, "a", "new"}), training::What(training::SampleText{2, "a", "new"})})
        run.add(at(2001, what));
    CHECK(run.validations.loss == std::vector<double>{3.0});
    CHECK(run.probes.size() == 1);
    CHECK(run.samples.size() == 1);
    run.add(at(2002, training::Control{2, "plan", "77", "", ""}));
    CHECK(run.planned_steps() == 77);
    CHECK(run.controls.empty());
}

TEST_CASE("Of the texts that a run wrote the last ones are held, and how many there were before", "[workspace][run]") {
    constexpr std::int64_t kAll = 1000, kHeld = static_cast<std::int64_t>(LiveRun::kMostSamples);
    LiveRun run = made({started(2000)});
    store::RunRecord record;
    for (std::int64_t n = 1; n <= kAll; ++n) {
        run.add(at(2000, training::SampleText{n, "In", std::to_string(n)}));
        record.samples.push_back({n, "In", std::to_string(n)});
        REQUIRE(std::ssize(run.samples) == std::min(n, kHeld));
        REQUIRE(std::ssize(run.older_samples) == n - std::min(n, kHeld));
    }
    CHECK(run.samples.front().step == kAll - kHeld + 1);
    CHECK(run.samples.back().text == "1000");
    const LiveRun finished = live_run(record);
    CHECK(finished.samples.size() == run.samples.size());
    CHECK(finished.older_samples == run.older_samples);
    // Superseded records are gone, also before the held ones.
    run.add(at(2001, training::Rewound{900, {}}));
    CHECK(std::ssize(run.samples) == kHeld - 100);
    CHECK(std::ssize(run.older_samples) == kAll - kHeld);
    run.add(at(2001, training::SampleText{901, "In", "again"}));
    CHECK(std::ssize(run.samples) == kHeld - 99);
    training::Started again = started(2000);
    again.step = 500;
    run.add(at(2002, again));
    CHECK(run.samples.empty());
    CHECK(run.older_samples.size() == 500);
    run.add(at(2003, training::SampleText{400, "In", "again"}));
    CHECK(run.samples.size() == 1);
    CHECK(run.older_samples.size() == 399);
}

TEST_CASE("The best snapshot is the last one that was called so", "[workspace][run]") {
    const LiveRun run =
        made({training::Snapshot{2, "step-000002", 1, 0, true}, training::Snapshot{4, "step-000004", 1, 0, true},
              training::Snapshot{6, "step-000006", 1, 0, false}});
    REQUIRE(run.best_snapshot());
    CHECK(run.best_snapshot()->step == 4);
    CHECK(run.snapshot_at(6));
    CHECK_FALSE(run.snapshot_at(5));
    CHECK(LiveRun{}.best_snapshot() == nullptr);
}

TEST_CASE("The time left follows the pace of the last steps", "[workspace][run]") {
    LiveRun run = made({started(30)});
    CHECK_FALSE(run.seconds_left());
    for (int i = 1; i <= 10; ++i) run.add(at(i, step(i)));
    REQUIRE(run.seconds_left());
    CHECK(*run.seconds_left() == Approx(10.0));
    // A job of minutes plans as it goes.
    training::Control plan;
    plan.action = "plan";
    plan.value = "50";
    run.add(at(11, plan));
    CHECK(run.planned_steps() == 50);
    CHECK(run.controls.empty());
    CHECK(*run.seconds_left() == Approx(20.0));
}

TEST_CASE("Thinning keeps both ends and every peak", "[workspace][curves]") {
    std::vector<double> x(10'007), y(x.size(), 1);
    std::iota(x.begin(), x.end(), 0);
    y[4321] = 9;
    y[9000] = -3;
    y[17] = kNone;
    const auto curve = thinned_between(x, y, std::nullopt, 400);
    CHECK(curve.x.size() <= 402);
    CHECK(curve.x.front() == 0);
    CHECK(curve.x.back() == 10'006);
    CHECK(std::is_sorted(curve.x.begin(), curve.x.end()));
    CHECK(std::find(curve.y.begin(), curve.y.end(), 9) != curve.y.end());
    CHECK(std::find(curve.y.begin(), curve.y.end(), -3) != curve.y.end());
    const auto part = thinned_between(x, y, std::pair(100.5, 110.5), 400);
    REQUIRE(part.x.size() == 12);
    CHECK(part.x.front() == 100);
    CHECK(part.x.back() == 111);
    CHECK(thinned_between({}, {}, std::nullopt, 400).x.empty());
    CHECK(thinned_between(x, y, std::pair(-20.0, -10.0), 400).x.size() <= 1);
}

TEST_CASE("Validations are where their step is on each axis", "[workspace][curves]") {
    LiveRun run = made({started(10), step(1), step(2), step(3), step(4), training::Validation{3, 2.5, 10, 0}});
    RunCurveOptions options;
    options.axis = RunAxis::tokens;
    const auto curves = run_curves(run, options);
    REQUIRE(curves.validation.x.size() == 1);
    CHECK(curves.validation.x[0] == 300);
    CHECK(curves.loss.x.back() == 400);
    RunCurveOptions exponential = options;
    exponential.perplexity = true;
    const auto perplexities = run_curves(run, exponential);
    CHECK(perplexities.loss.y.back() == std::exp(curves.loss.y.back()));
    CHECK(perplexities.smooth_loss.y.back() == std::exp(curves.smooth_loss.y.back()));
    CHECK(perplexities.validation.y[0] == std::exp(curves.validation.y[0]));
    CHECK(perplexities.gradient_norm.y == curves.gradient_norm.y);
    CHECK(axis_place(run, RunAxis::seconds, 2) == Approx(1.0));
    CHECK(axis_place(run, RunAxis::seconds, 0.5) == Approx(0.25));
    CHECK(step_at(run, RunAxis::tokens, 251) == 3);
    CHECK(step_at(LiveRun{}, RunAxis::tokens, 7) == 7);
}

TEST_CASE("Accuracies are curves where they were measured", "[workspace][curves]") {
    LiveRun run = made({started(10), step(1), step(2), training::Validation{2, 2.5, 10, 0}});
    CHECK(run_curves(run, {}).accuracy.x.empty());
    CHECK(run_curves(run, {}).validation_accuracy.x.empty());
    training::Step third = step(3);
    third.accuracy = 0.75;
    run.add(at(2000, third));
    run.add(at(2001, training::Validation{3, 2.5, 10, 0, 0.5}));
    const auto curves = run_curves(run, {});
    REQUIRE(curves.accuracy.y.size() == 3);
    CHECK(std::isnan(curves.accuracy.y.front()));
    CHECK(curves.accuracy.y.back() == 0.75);
    CHECK(curves.smooth_accuracy.y.back() == 0.75);
    CHECK(curves.validation_accuracy.x == std::vector<double>{2, 3});
    CHECK(curves.validation_accuracy.y.back() == 0.5);
}

TEST_CASE("Series are means over the heads that are there, or heads", "[workspace][probe]") {
    const LiveRun run = made({started(10), probe(5, 1), probe(10, 2)});
    CHECK(probe_indicators(run) == std::vector<std::string>{"head_diversity", "sink", "local_focus_0", "local_focus_1",
                                                            "local_focus_2", "local_focus_3"});
    const auto layers = probe_series(run, "sink", std::nullopt);
    REQUIRE(layers.lines.size() == 2);
    CHECK(layers.steps == std::vector<double>{5, 10});
    CHECK(layers.lines[0].values == std::vector<double>{2, 3});
    CHECK(layers.lines[1].values == std::vector<double>{5, 6});
    const auto heads = probe_series(run, "sink", 1);
    REQUIRE(heads.lines.size() == 2);
    CHECK(heads.lines[1].head == 1);
    CHECK(heads.lines[1].values == std::vector<double>{6, 7});
    CHECK(probe_series(run, "head_diversity", 1).lines.size() == 2);
    // [n, H, 4]: the second head of the first site at distance 2.
    CHECK(probe_value(*run.probes[0], 2, 3, "local_focus_2", 0, 1) == 6);
    CHECK(std::isnan(probe_value(*run.probes[0], 2, 3, "entropy", 0, -1)));
    CHECK(std::isnan(probe_value(*run.probes[0], 2, 3, "sink", 7, -1)));
    CHECK(std::isnan(probe_value(*run.probes[0], 2, 2, "sink", 0, -1)));  // not of this size
}

TEST_CASE("A night of probes stays within its bytes, from the first to the last, evenly", "[workspace][probe]") {
    LiveRun run;
    run.add(at(0, started(0)));
    const auto add = [&](std::int64_t step) {
        run.add(at(1, probe(step, 1)));
        run.thin_probes(100'000);
    };
    std::size_t most = 0;
    for (std::int64_t step = 10; step <= 50'000; step += 10) {
        add(step);
        REQUIRE(run.probes.back()->step == step);
        most = std::max(most, run.probes.size());
    }
    CHECK(most < 400);
    CHECK(run.probes.size() > most / 3);
    CHECK(run.probes.front()->step == 10);
    CHECK(run.probe_gap >= 100);
    for (std::size_t i = 1; i + 1 < run.probes.size(); ++i) {
        const auto apart = run.probes[i]->step - run.probes[i - 1]->step;
        CHECK(apart >= run.probe_gap);
        CHECK(apart < 2 * run.probe_gap);
    }
    // Back to an earlier step, and on from there.
    run.add(at(2, training::Rewound{20'000, {}}));
    add(20'010);
    CHECK(run.probes.back()->step == 20'010);
    CHECK(run.probes[run.probes.size() - 2]->step <= 20'000);
    // A few are all kept.
    LiveRun few;
    for (std::int64_t step = 1; step <= 100; ++step) few.add(at(1, probe(step, 1)));
    CHECK(few.probes.size() == 100);
    CHECK(few.probe_gap == 0);
}

TEST_CASE("Radars of a step are scaled over the whole run", "[workspace][probe]") {
    const LiveRun run = made({started(10), probe(5, 1), probe(10, 2)});
    const auto figure = probe_radars(run, 1, std::nullopt);
    REQUIRE(figure.panels.size() == 2);
    const auto& first = std::get<figures::Radar>(figure.panels[0].content);
    REQUIRE(first.spokes.size() == 8);
    CHECK(std::isnan(first.series[0].values[0]));                           // no entropy
    CHECK(first.series[0].values[2] == Approx((0.2 - 0.1) / (0.4 - 0.1)));  // head diversity, 0.1 to 0.4 in all
    CHECK(first.series[0].values[7] == Approx(3));                          // sink, absolute
    training::Started begin = started(10);
    begin.sites[0].has_matrix = begin.sites[1].has_matrix = false;
    begin.sites[1].has_implicit = true;
    const auto recurrent = probe_radars(made({begin, probe(5, 1)}), 0, std::nullopt);
    CHECK(std::get<figures::Radar>(recurrent.panels[0].content).nothing == "no attention matrix");
    CHECK(std::get<figures::Radar>(recurrent.panels[1].content).nothing.empty());
    CHECK(probe_at(run, std::nullopt) == 1U);
    CHECK(probe_at(run, 9) == 0U);
    CHECK(probe_at(run, 1) == 0U);
    CHECK_FALSE(probe_at(LiveRun{}, 1));
}

TEST_CASE("A run of which only run.h5 is left looks the same", "[workspace][run]") {
    store::RunRecord record;
    record.state = "interrupted";
    record.planned_steps = 9;
    record.sites = started(1).sites;
    record.training.step = {1, 2};
    record.training.tokens = {10, 20};
    for (auto* column : {&record.training.loss, &record.training.learning_rate, &record.training.gradient_norm,
                         &record.training.tokens_per_second, &record.training.seconds, &record.training.memory})
        *column = {1, 2};
    record.probes.step = {1, 2};
    record.probes.seconds = {0, 0};
    record.probes.indicators = {{"sink", true, 1, {1, 2, 3, 4, 5, kNone, 2, 3, 4, 5, 6, kNone}}};
    const LiveRun run = live_run(record);
    CHECK(run.status() == RunStatus::interrupted);
    CHECK(run.last_step() == 2);
    CHECK(run.planned_steps() == 9);
    REQUIRE(run.probes.size() == 2);
    CHECK(probe_series(run, "sink", std::nullopt).lines[1].values == std::vector<double>{4.5, 5.5});
    record.state = "stopped";
    CHECK(live_run(record).status() == RunStatus::stopped);
}

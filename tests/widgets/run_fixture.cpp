// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/widgets/run_fixture.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QThread>
#include <cmath>
#include <random>

#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/figure_view.h"

namespace headscope::tests {
namespace {

constexpr double kBegin = 1.8e9;  ///< seconds since 1970

training::Started started(const MadeRun& made) {
    training::Started event;
    event.job = "name = \"made\"\n[data]\ncorpus = \"kjv\"\n[optimizer]\nlearning_rate = 4e-4\n";
    event.program_version = "1.0";
    event.model_type = "headscope";
    event.config_json = "{}";
    event.parameters = 1'048'576;
    event.threads = 2;
    event.machine = "a machine of the tests";
    event.steps = made.planned;
    for (std::int64_t layer = 0; layer < made.layers; ++layer) {
        event.mixers.emplace_back(layer % 2 == 1 ? "standard" : "approximate");
        Site site;
        site.layer = static_cast<std::int32_t>(layer);
        site.heads = site.key_value_heads = static_cast<std::int32_t>(made.heads);
        event.sites.push_back(site);
    }
    return event;
}

training::ProbeResult probe(const MadeRun& made, std::int64_t step) {
    training::ProbeResult result;
    result.step = step;
    const double time = static_cast<double>(step) / static_cast<double>(made.planned);
    const auto fill = [&](const char* name, std::int64_t width, auto value) {
        training::ProbeResult::Indicator indicator{name, {}};
        for (std::int64_t l = 0; l < made.layers; ++l)
            for (std::int64_t h = 0; h < made.heads; ++h)
                for (std::int64_t w = 0; w < width; ++w) indicator.values.push_back(value(l, h, w));
        result.indicators.push_back(std::move(indicator));
    };
    const auto share = [&](std::int64_t l) { return static_cast<double>(l + 1) / static_cast<double>(made.layers); };
    fill("entropy", 1,
         [&](auto l, auto h, auto) { return 300 * (1 - time * share(l)) + 4.0 * static_cast<double>(h); });
    fill("concentration", 1,
         [&](auto l, auto h, auto) { return 2 + 6 * time * share(l) + 0.1 * static_cast<double>(h); });
    fill("sink", 1, [&](auto l, auto h, auto) { return 0.05 + 0.5 * time * share(l) / (1 + static_cast<double>(h)); });
    fill("local_focus", 4,
         [&](auto l, auto, auto w) { return (0.1 + 0.3 * time * share(l)) / (1 + static_cast<double>(w)); });
    training::ProbeResult::Indicator diversity{"head_diversity", {}};
    for (std::int64_t l = 0; l < made.layers; ++l) diversity.values.push_back(0.01 + 0.05 * time * share(l));
    result.indicators.push_back(std::move(diversity));
    result.thumbnail_size = made.thumbnails;
    const std::int64_t size = made.thumbnails;
    for (std::int64_t l = 0; l < made.layers; ++l)
        for (std::int64_t h = 0; h < made.heads; ++h)
            for (std::int64_t r = 0; r < size; ++r)
                for (std::int64_t c = 0; c < size; ++c) {
                    const double away = static_cast<double>(r - c - h), sharp = 0.05 + 2 * time * share(l);
                    result.thumbnails.push_back(c > r ? 0 : static_cast<float>(std::exp(-away * away * sharp) / 8));
                }
    return result;
}

}  // namespace

std::vector<training::Event> made_events(const MadeRun& made) {
    std::vector<training::Event> events;
    double time = kBegin;
    const auto add = [&](training::What what) { events.push_back({time, std::move(what)}); };
    add(started(made));
    std::mt19937 random(made.seed);
    std::normal_distribution<double> noise(0, 0.08);
    std::int64_t tokens = 0;
    for (std::int64_t step = 1; step <= made.steps; ++step) {
        time += 0.1;
        tokens += 4096;
        training::Step event;
        event.step = step;
        event.tokens = tokens;
        event.loss = made.level + 4.5 * std::exp(-static_cast<double>(step) / 60) + noise(random);
        event.learning_rate = 4e-4 * std::min(1.0, static_cast<double>(step) / 100);
        event.gradient_norm = 0.6 + 2 * std::exp(-static_cast<double>(step) / 40) + std::abs(noise(random));
        event.tokens_per_second = 41'000 + 9000 * noise(random);
        event.seconds = 0.1 * static_cast<double>(step);
        event.memory = 2.1e8 + 1e5 * static_cast<double>(step);
        add(event);
        if (step % 50 == 0) {
            training::Validation validation;
            validation.step = step;
            validation.loss = made.level + 0.1 + 4.5 * std::exp(-static_cast<double>(step) / 60);
            validation.tokens = 8192;
            add(validation);
        }
        if (made.probe_every > 0 && step % made.probe_every == 0) add(probe(made, step));
        if (step % 100 == 0) {
            training::Snapshot snapshot;
            snapshot.step = step;
            snapshot.name = "step-" + std::string(6 - std::to_string(step).size(), '0') + std::to_string(step);
            snapshot.bytes = 12'600'000;
            snapshot.best = true;
            add(snapshot);
            add(training::SampleText{step, "And the LORD said", " unto the king of the house, Behold, I will."});
        }
    }
    training::Control control;
    control.step = made.steps * 3 / 4;
    control.action = "learning_rate";
    control.value = "2e-4";
    control.outcome = "the peak is 2e-4 from now on";
    add(control);
    add(training::Log{training::LogLevel::warning, made.steps, "something to be read"});
    return events;
}

std::shared_ptr<const workspace::LiveRun> made_run(const MadeRun& made, bool written) {
    auto run = std::make_shared<workspace::LiveRun>();
    for (const auto& event : made_events(made)) run->add(event);
    run->written = written;
    return run;
}

widgets::JobChoices made_choices() {
    widgets::JobChoices choices;
    for (const char* mixer :
         {"standard", "mlp", "approximate", "non_approximate", "rnd_emb_qk", "fixed_seq_qk", "static_emb_qk"})
        choices.mixers.push_back({mixer, mixer, QStringLiteral("a mixer")});
    for (const char* preset : {"nano-100k", "tiny-1m"})
        choices.presets.push_back({{preset, preset, QStringLiteral("a size")}, 64, 4});
    choices.corpora.push_back({QStringLiteral("kjv"), QStringLiteral("kjv"), QStringLiteral("the King James Bible")});
    choices.generators.push_back({QStringLiteral("induction"), QStringLiteral("induction"), {}});
    const auto layout = [&](const char* name, auto is_standard) {
        choices.layouts.push_back({QLatin1String(name), QString(), [is_standard](std::int64_t layers) {
                                       std::vector<bool> standard;
                                       for (std::int64_t l = 1; l <= layers; ++l)
                                           standard.push_back(is_standard(l, layers));
                                       return standard;
                                   }});
    };
    layout("uniform", [](std::int64_t, std::int64_t) { return false; });
    layout("even", [](std::int64_t l, std::int64_t) { return l % 2 == 0; });
    layout("odd", [](std::int64_t l, std::int64_t) { return l % 2 == 1; });
    layout("top", [](std::int64_t l, std::int64_t n) { return l <= n / 2; });
    layout("last", [](std::int64_t l, std::int64_t n) { return l == n; });
    return choices;
}

widgets::JobEstimate made_estimate(std::vector<std::string> layers) {
    widgets::JobEstimate estimate;
    estimate.layers = std::move(layers);
    estimate.hidden = 128;
    estimate.heads = 4;
    estimate.parameters = 1.05e6;
    estimate.memory = 1.2e8;
    estimate.flops_per_token = 6.6e6;
    estimate.steps = 1000;
    estimate.tokens = 4.096e6;
    return estimate;
}

void settle(widgets::RunShelf& shelf, double seconds) {
    QElapsedTimer clock;
    clock.start();
    int quiet = 0;
    while (quiet < 12 && static_cast<double>(clock.elapsed()) < seconds * 1000) {
        const bool busy = !shelf.worker().idle() || widgets::FigureView::any_waits();
        QApplication::processEvents();
        QApplication::sendPostedEvents();
        quiet = busy || !shelf.worker().idle() || widgets::FigureView::any_waits() ? 0 : quiet + 1;
        if (busy) QThread::msleep(2);
    }
}

}  // namespace headscope::tests

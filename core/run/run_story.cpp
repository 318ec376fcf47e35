// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/run_story.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace headscope::training {
namespace {

/// How many of the rising `steps` are at most `last`.
std::size_t kept(const std::vector<std::int64_t>& steps, std::int64_t last) {
    return static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), last) - steps.begin());
}

void cut(store::RunSteps& rows, std::int64_t last) {
    const std::size_t count = kept(rows.step, last);
    for (auto* column : {&rows.step, &rows.tokens}) column->resize(count);
    for (auto* column : {&rows.loss, &rows.learning_rate, &rows.gradient_norm, &rows.tokens_per_second, &rows.seconds,
                         &rows.memory, &rows.accuracy})
        column->resize(count);
}

void cut(store::RunValidations& rows, std::int64_t last) {
    const std::size_t count = kept(rows.step, last);
    for (auto* column : {&rows.step, &rows.tokens}) column->resize(count);
    for (auto* column : {&rows.loss, &rows.seconds, &rows.accuracy}) column->resize(count);
}

template <class Row>
void cut(std::vector<Row>& rows, std::int64_t last) {
    std::erase_if(rows, [&](const Row& row) { return row.step > last; });
}

void cut(std::vector<std::shared_ptr<const ProbeResult>>& rows, std::int64_t last) {
    std::erase_if(rows, [&](const auto& row) { return row->step > last; });
}

/// The best of those that are left, as the trainer chose it: the first with the least validation loss.
void find_best(std::vector<Snapshot>& snapshots, const store::RunValidations& validations) {
    Snapshot* best = nullptr;
    double least = 0;
    for (Snapshot& snapshot : snapshots) {
        const auto at = std::lower_bound(validations.step.begin(), validations.step.end(), snapshot.step);
        if (at == validations.step.end() || *at != snapshot.step) continue;
        const double loss = validations.loss[static_cast<std::size_t>(at - validations.step.begin())];
        if (best == nullptr ? !std::isnan(loss) : loss < least) {
            best = &snapshot;
            least = loss;
        }
    }
    if (best != nullptr) best->best = true;
}

bool same_sites(const std::vector<Site>& a, const std::vector<Site>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Site& x, const Site& y) { return x.layer == y.layer && x.heads == y.heads; });
}

}  // namespace

struct RunStory::Reader {
    RunStory& story;
    double time;

    void operator()(const Started& event) const {
        if (story.started) {
            ++story.resumed;
            story.rewind(event.step);
            if (!same_sites(story.started->sites, event.sites)) story.probes.clear();
        } else {
            story.began = time;
        }
        story.started = event;
        story.state = RunState::running;
        story.state_text.clear();
    }
    void operator()(const Step& event) const {
        auto& rows = story.steps;
        if (!rows.step.empty() && rows.step.back() >= event.step) cut(rows, event.step - 1);
        rows.step.push_back(event.step);
        rows.tokens.push_back(event.tokens);
        rows.loss.push_back(event.loss);
        rows.learning_rate.push_back(event.learning_rate);
        rows.gradient_norm.push_back(event.gradient_norm);
        rows.tokens_per_second.push_back(event.tokens_per_second);
        rows.seconds.push_back(event.seconds);
        rows.memory.push_back(event.memory);
        rows.accuracy.push_back(event.accuracy);
    }
    void operator()(const Validation& event) const {
        auto& rows = story.validations;
        cut(rows, event.step - 1);
        rows.step.push_back(event.step);
        rows.tokens.push_back(event.tokens);
        rows.loss.push_back(event.loss);
        rows.seconds.push_back(event.seconds);
        rows.accuracy.push_back(event.accuracy);
    }
    void operator()(const ProbeResult& event) const {
        cut(story.probes, event.step - 1);
        story.probes.push_back(std::make_shared<const ProbeResult>(event));
    }
    void operator()(const Snapshot& event) const {
        cut(story.snapshots, event.step - 1);
        if (event.best)
            for (Snapshot& old : story.snapshots) old.best = false;
        story.snapshots.push_back(event);
    }
    void operator()(const Control& event) const {
        if (event.action != "plan" || !story.started) return;  // of a job that has minutes
        std::int64_t steps = 0;
        const char* end = event.value.data() + event.value.size();
        const auto [at, error] = std::from_chars(event.value.data(), end, steps);
        if (error == std::errc() && at == end && steps >= 0) story.started->steps = steps;
    }
    void operator()(const SampleText& event) const {
        cut(story.samples, event.step - 1);
        story.samples.push_back(event);
    }
    void operator()(const Log&) const {}
    void operator()(const StateChanged& event) const {
        story.state = event.state;
        story.state_text = event.text;
    }
    void operator()(const Rewound& event) const { story.rewind(event.step); }
};

void RunStory::add(const Event& event) {
    std::visit(Reader{*this, event.time}, event.what);
}

void RunStory::rewind(std::int64_t step) {
    const auto is_best = [](const Snapshot& snapshot) { return snapshot.best; };
    const bool had_best = std::any_of(snapshots.begin(), snapshots.end(), is_best);
    cut(steps, step);
    cut(validations, step);
    cut(probes, step);
    cut(snapshots, step);
    cut(samples, step);
    if (had_best && std::none_of(snapshots.begin(), snapshots.end(), is_best)) find_best(snapshots, validations);
}

}  // namespace headscope::training

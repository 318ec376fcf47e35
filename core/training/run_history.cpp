// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/run_history.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "core/base/input_file.h"
#include "core/base/os_error.h"
#include "core/store/half.h"
#include "core/store/run_file.h"
#include "core/store/run_layout.h"
#include "core/training/journal.h"
#include "core/training/journal_reader.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestThumbnail = 128;

std::string utc_text(double time) {
    const auto seconds = static_cast<std::time_t>(std::clamp(std::isnan(time) ? 0.0 : time, 0.0, 2.5e11));
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text, size};
}

const char* level_name(LogLevel level) {
    return level == LogLevel::note ? "note" : level == LogLevel::warning ? "warning" : "error";
}

/// How many of the rising `steps` are at most `last`.
std::size_t kept(const std::vector<std::int64_t>& steps, std::int64_t last) {
    return static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), last) - steps.begin());
}

template <class Rows>
void drop_after(Rows& rows, std::int64_t last) {
    std::erase_if(rows, [&](const auto& row) { return row.step > last; });
}

void cut(store::RunSteps& training, std::int64_t last) {
    const std::size_t count = kept(training.step, last);
    for (auto* column : {&training.step, &training.tokens}) column->resize(count);
    for (auto* column : {&training.loss, &training.learning_rate, &training.gradient_norm, &training.tokens_per_second,
                         &training.seconds, &training.memory}) {
        column->resize(count);
    }
}

void cut(store::RunValidations& validation, std::int64_t last) {
    const std::size_t count = kept(validation.step, last);
    for (auto* column : {&validation.step, &validation.tokens}) column->resize(count);
    for (auto* column : {&validation.loss, &validation.seconds}) column->resize(count);
}

template <class Row>
void put(std::vector<Row>& rows, Row row) {
    drop_after(rows, row.step - 1);
    rows.push_back(std::move(row));
}

}  // namespace

void RunHistory::add(const Event& event) {
    if (const auto* started = std::get_if<Started>(&event.what)) {
        add(*started, event.time);
    } else if (const auto* step = std::get_if<Step>(&event.what)) {
        add(*step);
    } else if (const auto* validation = std::get_if<Validation>(&event.what)) {
        add(*validation);
    } else if (const auto* probe = std::get_if<ProbeResult>(&event.what)) {
        add(*probe);
    } else if (const auto* snapshot = std::get_if<Snapshot>(&event.what)) {
        put(record_.snapshots,
            store::RunSnapshot{snapshot->step, snapshot->name, static_cast<std::int64_t>(snapshot->bytes),
                               snapshot->seconds, snapshot->best});
    } else if (const auto* control = std::get_if<Control>(&event.what)) {
        record_.controls.push_back({event.time, control->step, control->action, control->value, control->outcome});
    } else if (const auto* sample = std::get_if<SampleText>(&event.what)) {
        put(record_.samples, store::RunSample{sample->step, sample->prompt, sample->text});
    } else if (const auto* log = std::get_if<Log>(&event.what)) {
        record_.log.push_back({event.time, log->step, level_name(log->level), log->text});
    } else if (const auto* state = std::get_if<StateChanged>(&event.what)) {
        record_.state = state_name(state->state);
        record_.state_text = state->text;
    } else if (const auto* rewound = std::get_if<Rewound>(&event.what)) {
        rewind(rewound->step);
        if (!rewound->reason.empty()) {
            record_.log.push_back({event.time, rewound->step, "note",
                                   "back to step " + std::to_string(rewound->step) + ": " + rewound->reason});
        }
    }
}

void RunHistory::add(const Started& started, double time) {
    record_.state = state_name(RunState::running);
    record_.state_text.clear();
    record_.job = started.job;
    record_.program_version = started.program_version;
    record_.model_type = started.model_type;
    record_.config_json = started.config_json;
    record_.machine = started.machine;
    record_.data_hash = started.data_hash;
    record_.parameters = started.parameters;
    record_.threads = started.threads;
    record_.processes = started.processes;
    record_.planned_steps = started.steps;
    record_.mixers = started.mixers;
    if (!started_) {
        record_.created = utc_text(time);
        started_ = true;
    } else {
        ++record_.resumed;
        rewind(started.step);
    }
    const auto alike = [](const Site& a, const Site& b) { return a.layer == b.layer && a.heads == b.heads; };
    if (!std::equal(record_.sites.begin(), record_.sites.end(), started.sites.begin(), started.sites.end(), alike)) {
        record_.probes = {};  // of another stack
    }
    record_.sites = started.sites;
    for (Site& site : record_.sites) {
        site.heads = std::clamp<std::int32_t>(site.heads, 0, 1 << 20);
        site.layer = std::clamp<std::int32_t>(site.layer, 0, 1 << 20);
    }
}

void RunHistory::add(const Step& step) {
    auto& training = record_.training;
    if (!training.step.empty() && training.step.back() >= step.step) cut(training, step.step - 1);
    training.step.push_back(step.step);
    training.tokens.push_back(step.tokens);
    training.loss.push_back(step.loss);
    training.learning_rate.push_back(step.learning_rate);
    training.gradient_norm.push_back(step.gradient_norm);
    training.tokens_per_second.push_back(step.tokens_per_second);
    training.seconds.push_back(step.seconds);
    training.memory.push_back(step.memory);
}

void RunHistory::add(const Validation& validation) {
    auto& all = record_.validation;
    cut(all, validation.step - 1);
    all.step.push_back(validation.step);
    all.tokens.push_back(validation.tokens);
    all.loss.push_back(validation.loss);
    all.seconds.push_back(validation.seconds);
}

void RunHistory::add(const ProbeResult& probe) {
    auto& all = record_.probes;
    cut_probes(probe.step - 1);
    const auto before = static_cast<std::size_t>(all.count());
    const std::size_t sites = record_.sites.size();
    const std::size_t cells = sites * static_cast<std::size_t>(record_.heads());
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    const auto size_of = [&](const store::RunIndicator& indicator) {
        return indicator.per_head ? cells * static_cast<std::size_t>(indicator.width) : sites;
    };
    all.step.push_back(probe.step);
    all.seconds.push_back(probe.seconds);
    for (const ProbeResult::Indicator& indicator : probe.indicators) {
        if (!store::is_indicator_name(indicator.name)) continue;
        const std::int64_t width = store::indicator_width(indicator.name);
        const auto same = [&](const store::RunIndicator& other) { return other.name == indicator.name; };
        auto it = std::find_if(all.indicators.begin(), all.indicators.end(), same);
        store::RunIndicator fresh{indicator.name, width > 0, std::max<std::int64_t>(width, 1), {}};
        if (indicator.values.size() != size_of(fresh)) continue;
        if (it == all.indicators.end()) {
            fresh.values.assign(before * size_of(fresh), none);
            it = all.indicators.insert(all.indicators.end(), std::move(fresh));
        }
        if (it->values.size() != before * size_of(*it)) continue;  // told twice
        it->values.insert(it->values.end(), indicator.values.begin(), indicator.values.end());
    }
    for (store::RunIndicator& indicator : all.indicators)
        indicator.values.resize((before + 1) * size_of(indicator), none);

    if (!thumbnails_) return;
    const std::int64_t size = probe.thumbnail_size;
    const auto tile = static_cast<std::size_t>(size * size);
    const bool usable = size > 0 && size <= kLargestThumbnail && cells > 0 && probe.thumbnails.size() == cells * tile;
    if (all.thumbnail_size == 0 && usable) all.thumbnail_size = size;
    if (all.thumbnail_size == 0) return;
    const std::size_t each = cells * static_cast<std::size_t>(all.thumbnail_size * all.thumbnail_size);
    all.thumbnails.resize(before * each, store::half_from_float(std::numeric_limits<float>::quiet_NaN()));
    if (usable && size == all.thumbnail_size) {
        for (const float value : probe.thumbnails) all.thumbnails.push_back(store::half_from_float(value));
    }
    all.thumbnails.resize((before + 1) * each, store::half_from_float(std::numeric_limits<float>::quiet_NaN()));
}

void RunHistory::cut_probes(std::int64_t last_step) {
    auto& all = record_.probes;
    const std::size_t before = all.step.size(), count = kept(all.step, last_step);
    if (count == before) return;
    all.step.resize(count);
    all.seconds.resize(count);
    for (store::RunIndicator& indicator : all.indicators)
        indicator.values.resize(indicator.values.size() / before * count);
    all.thumbnails.resize(all.thumbnails.size() / before * count);
}

void RunHistory::rewind(std::int64_t step) {
    cut(record_.training, step);
    cut(record_.validation, step);
    cut_probes(step);
    drop_after(record_.snapshots, step);
    drop_after(record_.samples, step);
}

store::RunRecord read_run(const fs::path& folder, bool thumbnails) {
    const fs::path journal = folder / kJournalName;
    std::error_code ignored;
    store::RunRecord record;
    if (!fs::exists(journal, ignored)) {
        if (!fs::exists(folder / "run.h5", ignored)) {
            throw Error(ErrorCode::mismatch, shown(folder), "expected the folder of a run, with events.log or run.h5",
                        "found neither");
        }
        return store::read_run_file(folder / "run.h5");
    }
    const bool written = being_written(journal);
    RunHistory history(thumbnails);
    JournalReader reader(journal);
    for (bool more = true; more;) {
        const auto batch = reader.read();
        if (batch.restarted) history = RunHistory(thumbnails);
        for (const Event& event : batch.events) history.add(event);
        more = batch.more;
    }
    record = history.take();
    if (!written && (record.state == "running" || record.state == "paused")) record.state = "interrupted";
    record.name = fs::absolute(folder, ignored).lexically_normal().filename().string();
    if (record.name.empty()) record.name = fs::absolute(folder, ignored).lexically_normal().parent_path().filename();
    return record;
}

void build_run_file(const fs::path& folder) {
    store::write_run_file(folder / "run.h5", read_run(folder));
}

bool is_run_folder(const fs::path& path) {
    return ends_at_regular_file(path / kJournalName) || ends_at_regular_file(path / "run.h5");
}

}  // namespace headscope::training

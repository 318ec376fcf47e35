// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/finished_run.h"

#include <algorithm>

#include "core/store/hdf5/half.h"

namespace headscope::workspace {
namespace {

std::optional<training::RunState> state_of(const std::string& name) {
    for (const auto state : {training::RunState::paused, training::RunState::stopped, training::RunState::finished,
                             training::RunState::failed})
        if (name == training::state_name(state)) return state;
    return training::RunState::running;  // no process writes it: interrupted
}

}  // namespace

LiveRun live_run(const store::RunRecord& record) {
    LiveRun run;
    training::Started started;
    started.job = record.job;
    started.program_version = record.program_version;
    started.model_type = record.model_type;
    started.config_json = record.config_json;
    started.parameters = record.parameters;
    started.mixers = record.mixers;
    started.sites = record.sites;
    started.threads = record.threads;
    started.processes = record.processes;
    started.machine = record.machine;
    started.data_hash = record.data_hash;
    started.steps = record.planned_steps;
    run.started = std::move(started);
    run.resumed = record.resumed;
    run.steps = record.training;
    run.validations = record.validation;
    const auto& probes = record.probes;
    for (std::int64_t p = 0; p < probes.count(); ++p) {
        auto probe = std::make_shared<training::ProbeResult>();
        const auto at = static_cast<std::size_t>(p), count = static_cast<std::size_t>(probes.count());
        probe->step = probes.step[at];
        probe->seconds = probes.seconds[at];
        for (const auto& indicator : probes.indicators) {
            const std::size_t size = indicator.values.size() / count;
            const auto begin = indicator.values.begin() + static_cast<std::ptrdiff_t>(at * size);
            probe->indicators.push_back({indicator.name, {begin, begin + static_cast<std::ptrdiff_t>(size)}});
        }
        probe->thumbnail_size = probes.thumbnails.empty() ? 0 : probes.thumbnail_size;
        const std::size_t size = probes.thumbnails.size() / count;
        for (std::size_t i = 0; i < size; ++i)
            probe->thumbnails.push_back(store::float_from_half(probes.thumbnails[at * size + i]));
        run.probes.push_back(std::move(probe));
        run.thin_probes();
    }
    for (const auto& one : record.snapshots)
        run.snapshots.push_back({one.step, one.name, static_cast<std::uint64_t>(one.bytes), one.seconds, one.best});
    for (const auto& one : record.samples) run.samples.push_back({one.step, one.prompt, one.text});
    run.limit_samples();
    for (const auto& one : record.controls) {
        training::Control control;
        control.step = one.step;
        control.action = one.action;
        control.value = one.value;
        control.outcome = one.outcome;
        run.controls.push_back({one.time, std::move(control)});
    }
    for (const auto& line : record.log) {
        const auto level = line.level == "error"     ? training::LogLevel::error
                           : line.level == "warning" ? training::LogLevel::warning
                                                     : training::LogLevel::note;
        run.log.push_back({line.time, line.step, level, line.text});
    }
    run.lines = run.log.size();
    run.state = state_of(record.state);
    run.state_text = record.state_text;
    run.events = 1;
    return run;
}

}  // namespace headscope::workspace

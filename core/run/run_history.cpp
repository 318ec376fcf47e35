// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/run_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"
#include "core/store/hdf5/half.h"
#include "core/store/run/run_file.h"
#include "core/store/run/run_layout.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestThumbnail = 128;

const char* level_name(LogLevel level) {
    return level == LogLevel::note ? "note" : level == LogLevel::warning ? "warning" : "error";
}

/// A journal may come from anywhere. Missing values of probes take room in rows too: allow this multiple of the values
/// present, in numbers of eight bytes.
constexpr std::size_t kLeastRoom = std::size_t{1} << 20U, kMostTimes = 16;

std::size_t room_for(const std::vector<std::shared_ptr<const ProbeResult>>& probes) {
    std::size_t told = 0;
    for (const auto& probe : probes) {
        told += probe->thumbnails.size() / 4;
        for (const ProbeResult::Indicator& indicator : probe->indicators) told += indicator.values.size();
    }
    return kMostTimes * told + kLeastRoom;
}

std::size_t room_of(const store::RunProbes& all) {
    std::size_t numbers = all.thumbnails.size() / 4;
    for (const store::RunIndicator& indicator : all.indicators) numbers += indicator.values.size();
    return numbers;
}

/// Adds the rows of one indicator: NaN where a probe lacks it or has another size.
void add_probe(store::RunProbes& all, const ProbeResult& probe, std::size_t sites, std::size_t cells,
               std::size_t room) {
    const auto before = static_cast<std::size_t>(all.count());
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
            if (before * size_of(fresh) > room) continue;
            fresh.values.assign(before * size_of(fresh), none);
            it = all.indicators.insert(all.indicators.end(), std::move(fresh));
        }
        if (it->values.size() != before * size_of(*it)) continue;  // repeated
        it->values.insert(it->values.end(), indicator.values.begin(), indicator.values.end());
    }
    for (store::RunIndicator& indicator : all.indicators)
        indicator.values.resize((before + 1) * size_of(indicator), none);
}

/// After add_probe().
void add_thumbnails(store::RunProbes& all, const ProbeResult& probe, std::size_t cells, std::size_t room) {
    const auto before = static_cast<std::size_t>(all.count()) - 1;
    const std::uint16_t none = store::half_from_float(std::numeric_limits<float>::quiet_NaN());
    const std::int64_t size = probe.thumbnail_size;
    const bool usable = size > 0 && size <= kLargestThumbnail && cells > 0 &&
                        probe.thumbnails.size() == cells * static_cast<std::size_t>(size * size);
    if (all.thumbnail_size == 0 && usable && before * probe.thumbnails.size() / 4 <= room) all.thumbnail_size = size;
    if (all.thumbnail_size == 0) return;
    const std::size_t each = cells * static_cast<std::size_t>(all.thumbnail_size * all.thumbnail_size);
    all.thumbnails.resize(before * each, none);
    if (usable && size == all.thumbnail_size)
        for (const float value : probe.thumbnails) all.thumbnails.push_back(store::half_from_float(value));
    all.thumbnails.resize((before + 1) * each, none);
}

void set_start(store::RunRecord& record, const Started& started) {
    record.job = started.job;
    record.program_version = started.program_version;
    record.model_type = started.model_type;
    record.config_json = started.config_json;
    record.machine = started.machine;
    record.device = started.device;
    record.kernels = started.kernels;
    record.data_hash = started.data_hash;
    record.parameters = started.parameters;
    record.threads = started.threads;
    record.processes = started.processes;
    record.planned_steps = started.steps;
    record.mixers = started.mixers;
    record.sites = started.sites;
    for (Site& site : record.sites) {
        site.heads = std::clamp<std::int32_t>(site.heads, 0, 1 << 20);
        site.layer = std::clamp<std::int32_t>(site.layer, 0, 1 << 20);
    }
}

}  // namespace

void RunHistory::add(const Event& event) {
    if (const auto* probe = std::get_if<ProbeResult>(&event.what); probe != nullptr && !thumbnails_) {
        ProbeResult small = *probe;
        small.thumbnails = {};
        return story_.add({event.time, std::move(small)});
    }
    story_.add(event);
    if (const auto* control = std::get_if<Control>(&event.what)) {
        controls_.push_back({event.time, control->step, control->action, control->value, control->outcome});
    } else if (const auto* log = std::get_if<Log>(&event.what)) {
        log_.push_back({event.time, log->step, level_name(log->level), log->text});
    } else if (const auto* rewound = std::get_if<Rewound>(&event.what); rewound && !rewound->reason.empty()) {
        log_.push_back({event.time, rewound->step, "note",
                        "back to step " + std::to_string(rewound->step) + ": " + rewound->reason});
    }
}

store::RunRecord RunHistory::take() {
    store::RunRecord record;
    if (story_.started) {
        set_start(record, *story_.started);
        record.created = utc_text(story_.began);
    }
    record.resumed = story_.resumed;
    if (story_.state) record.state = state_name(*story_.state);
    record.state_text = std::move(story_.state_text);
    record.training = std::move(story_.steps);
    record.validation = std::move(story_.validations);
    const std::size_t sites = record.sites.size(), cells = sites * static_cast<std::size_t>(record.heads());
    const std::size_t room = room_for(story_.probes);
    for (auto& probe : story_.probes) {
        if (room_of(record.probes) > room) break;
        add_probe(record.probes, *probe, sites, cells, room);
        if (thumbnails_) add_thumbnails(record.probes, *probe, cells, room);
        probe.reset();  // the two together are not held
    }
    for (auto& one : story_.snapshots)
        record.snapshots.push_back(
            {one.step, std::move(one.name), static_cast<std::int64_t>(one.bytes), one.seconds, one.best});
    for (auto& one : story_.samples) record.samples.push_back({one.step, std::move(one.prompt), std::move(one.text)});
    record.controls = std::move(controls_);
    record.log = std::move(log_);
    return record;
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
    const store::RunRecord record = read_run(folder);
    // A link would lead out of the folder, to a file that is no run's.
    remove_link(folder / "run.h5");
    store::write_run_file(folder / "run.h5", record);
}

void mend_run_file(const fs::path& folder) {
    const fs::path journal = folder / kJournalName, file = folder / "run.h5";
    std::error_code error;
    if (!ends_at_regular_file(journal) || being_written(journal)) return;
    const auto told = fs::last_write_time(journal, error);
    if (error || fs::file_size(journal, error) <= kJournalHeaderBytes || error) return;
    const auto there = fs::symlink_status(file, error);
    if (fs::exists(there)) {
        if (!fs::is_regular_file(there)) return;  // nothing of ours
        const auto made = fs::last_write_time(file, error);
        if (error || made >= told) return;
    }
    try {
        build_run_file(folder);
    } catch (const Error&) {  // read-only, full, damaged: what reads the journal says what there is to say
    }
}

bool is_run_folder(const fs::path& path) {
    return ends_at_regular_file(path / kJournalName) || ends_at_regular_file(path / "run.h5");
}

}  // namespace headscope::training

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer_session.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/base/os_error.h"
#include "core/base/output_file.h"
#include "core/base/output_folder.h"
#include "core/base/text.h"
#include "core/data/token_file.h"
#include "core/training/control.h"
#include "core/training/job_model.h"
#include "core/training/journal_reader.h"
#include "core/training/schedule.h"
#include "kernels/parallel.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

void write_job(const RunFolder& run, const JobFile& job) {
    OutputFile file(run.job(), {}, "job");
    file.append(job_text(job));
    file.publish();
}

/// The updates that the job is about; 0 for one of minutes, which is planned when its pace is known.
std::int64_t planned_steps(const JobFile& job) {
    if (job.training.steps) return *job.training.steps;
    if (job.training.tokens) return updates_for_tokens(*job.training.tokens, job.step_tokens());
    return 0;
}

/// What a stack with fixed_seq_qk layers reads as its guide: the begin of the training text. A checkpoint that was
/// trained with one keeps it.
void set_guide(Session& session) {
    model::Trainable& model = session.learner->model();
    const ModelSettings& settings = session.job.model;
    constexpr const char* mixer = "fixed_seq_qk";
    const bool fresh = settings.from.empty() || settings.mixer == mixer ||
                       std::find(settings.layers.begin(), settings.layers.end(), mixer) != settings.layers.end();
    if (!fresh || !model.has_guide_ids()) return;
    const std::int64_t wanted = std::max<std::int64_t>(1, std::as_const(model).model().config().max_positions);
    std::vector<std::int64_t> ids;
    if (const auto& path = session.data->summary().token_file; !path.empty()) {
        const auto file = data::TokenFile::open(path);
        const data::TokenRange range = file->range(data::Split::training);
        ids.resize(static_cast<std::size_t>(std::min(wanted, range.size())));
        file->copy(range.begin, static_cast<std::int64_t>(ids.size()), ids.data());
    } else {
        const std::int64_t count = (wanted + session.source->length() - 1) / session.source->length();
        ids = session.source->read(0, count).ids;
    }
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(ids.size())}, at::kLong);
    std::memcpy(tensor.mutable_data_ptr(), ids.data(), ids.size() * sizeof(std::int64_t));
    const at::NoGradGuard no_gradient;
    model.set_guide_ids(tensor);
}

void open_data(Session& session, Progress& progress, const Cancellation& cancellation) {
    data::DataPlaces places;
    places.base = session.job.base;
    places.run = session.run.path;
    try {
        session.data = data::DataSet::prepare(session.job.data, places, progress, cancellation);
    } catch (const Error& error) {
        throw error_at_key(session.job, "data", error);
    }
    const auto seed = static_cast<std::uint64_t>(session.job.seed);
    session.source = session.data->source(data::Split::training, seed);
    session.held_out = session.data->source(data::Split::validation, seed);
}

void fresh_state(Session& session) {
    session.state = TrainingState();
    session.state.peak_rate = session.job.optimizer.learning_rate;
    session.state.planned_steps = planned_steps(session.job);
}

/// What a state must agree with.
void adopt(Session& session, const TrainingState& state, const fs::path& folder) {
    session.state = state;
    if (state.layout != layout_hash(session.learner->model()))
        throw Error(ErrorCode::mismatch, shown(folder),
                    "expected the optimiser's state of this model; without it: --fresh-optimizer",
                    "found that of one with other tensors");
    session.learner->read_optimizer(*checkpoint::Checkpoint::open(folder / kOptimizerName));
}

void check_data(const Session& session, const std::string& hash, const fs::path& where) {
    if (hash == session.data->hash()) return;
    throw Error(ErrorCode::mismatch, shown(where),
                "expected the data that the run began with; to go on with other data: train --from SNAPSHOT",
                "found other text, tokenizer or settings (SHA-256 " + session.data->hash().substr(0, 12) +
                    "... instead of " + hash.substr(0, 12) + "...)");
}

std::unique_ptr<model::Trainable> open_snapshot(const JobFile& job, const fs::path& folder, Progress& progress,
                                                const Cancellation& cancellation) {
    const auto file = checkpoint::Checkpoint::open(folder);
    return model::Trainable::open(*file, weight_type(job), {}, static_cast<std::uint64_t>(job.seed), &progress,
                                  &cancellation);
}

/// Makes the folder of a new run and takes it.
void create_run(Session& session) {
    OutputFolder::check_target(session.run.path);
    std::error_code error;
    fs::create_directory(session.run.path, error);
    if (error) throw os_error(error.value(), session.run.path, "expected to make this run's folder");
    session.journal = std::make_unique<JournalWriter>(session.run.journal());
    if (session.run.exists())
        throw Error(ErrorCode::usage, shown(session.run.path), "expected a new folder for the run",
                    "found that another process just began one there");
    write_job(session.run, session.job);
    sync_folder(fs::absolute(session.run.path).parent_path());
    session.snapshots = std::make_unique<SnapshotStore>(session.run);
}

void open_fresh(Session& session, Progress& progress, const Cancellation& cancellation) {
    OutputFolder::check_target(session.run.path);
    if (session.job.model.from.empty()) model_config(session.job, 1);  // what is wrong without data is told at once
    open_data(session, progress, cancellation);
    session.learner = std::make_unique<Learner>(
        make_model(session.job, session.data->vocabulary(), progress, cancellation), session.job);
    set_guide(session);
    fresh_state(session);
    create_run(session);
}

void open_fork(Session& session, const TrainRequest& request, Progress& progress, const Cancellation& cancellation) {
    OutputFolder::check_target(session.run.path);
    const TrainingState state = verify_snapshot(request.from, cancellation);
    open_data(session, progress, cancellation);
    session.learner =
        std::make_unique<Learner>(open_snapshot(session.job, request.from, progress, cancellation), session.job);
    const std::int64_t vocabulary = std::as_const(session.learner->model()).model().config().vocabulary;
    if (session.data->vocabulary() > vocabulary)
        throw error_at_key(
            session.job, "data.tokenizer",
            Error(ErrorCode::mismatch, "", "expected at most the snapshot's " + std::to_string(vocabulary) + " tokens",
                  "found " + std::to_string(session.data->vocabulary())));
    fresh_state(session);
    if (request.keep_optimizer) {
        const TrainingState fresh = session.state;
        adopt(session, state, request.from);
        session.state.peak_rate = fresh.peak_rate;
        session.state.planned_steps = fresh.planned_steps;
        session.state.best_step = -1;
        session.state.best_validation = fresh.best_validation;
        if (state.data_hash != session.data->hash()) session.state.position = 0;
        if (fresh.planned_steps > 0 && fresh.planned_steps <= state.step)
            throw error_at_key(session.job, "training.steps",
                               Error(ErrorCode::usage, "",
                                     "expected more steps than the snapshot's " + std::to_string(state.step) +
                                         " (or --fresh-optimizer, which begins at 0)",
                                     "found " + std::to_string(fresh.planned_steps)));
    }
    create_run(session);
}

/// Only what does not change the computation may differ from the run's job.
void check_job(const JobFile& job, const JobFile& was, const fs::path& run) {
    const auto differences = job_differences(job, was, true);
    if (differences.empty()) return;
    std::string found = differences.front();
    if (differences.size() > 1) found += ", and " + std::to_string(differences.size() - 1) + " more";
    throw Error(ErrorCode::mismatch, shown(run),
                "expected the job that the run began with; to go on with another one: train --from SNAPSHOT",
                "found " + found);
}

void open_resumed(Session& session, Progress& progress, const Cancellation& cancellation) {
    const JobFile was = stored_job(session.run.path);
    check_job(session.job, was, session.run.path);
    session.journal = std::make_unique<JournalWriter>(session.run.journal());
    if (session.journal->cut() > 0)
        session.problems.push_back("the journal ended in " + std::to_string(session.journal->cut()) +
                                   " bytes of an event that was never whole; they were cut off");
    session.snapshots = std::make_unique<SnapshotStore>(session.run);
    session.snapshots->clean();
    clear_control(session.run);
    const std::vector<Event> events = read_journal(session.run.journal());
    TrainingState state;
    const std::int64_t step = session.snapshots->newest_whole(state, session.problems, cancellation);
    const Started* began = nullptr;
    std::int64_t last = 0;
    for (const Event& event : events) {
        if (began == nullptr) began = std::get_if<Started>(&event.what);
        if (const auto* done = std::get_if<Step>(&event.what)) last = std::max(last, done->step);
        if (const auto* one = std::get_if<Validation>(&event.what)) session.validated_first |= one->step == 0;
        if (const auto* one = std::get_if<ProbeResult>(&event.what)) session.probed_first |= one->step == 0;
    }
    open_data(session, progress, cancellation);
    if (step >= 0) {
        const fs::path folder = session.snapshots->folder(step);
        check_job(read_job(state.job, "snapshot"), was, folder);
        check_data(session, state.data_hash, folder);
        session.learner =
            std::make_unique<Learner>(open_snapshot(session.job, folder, progress, cancellation), session.job);
        adopt(session, state, folder);
        // The best may have been damaged: then the next one is.
        if (state.best_step >= 0 && !fs::exists(session.snapshots->folder(state.best_step))) {
            session.state.best_step = -1;
            session.state.best_validation = TrainingState().best_validation;
        }
    } else {
        if (began != nullptr) check_data(session, began->data_hash, session.run.journal());
        if (began != nullptr && began->step > 0)
            throw Error(ErrorCode::mismatch, shown(session.run.snapshots()),
                        "expected the snapshot that this run began from", "found none that is whole");
        session.learner = std::make_unique<Learner>(
            make_model(session.job, session.data->vocabulary(), progress, cancellation), session.job);
        set_guide(session);
        fresh_state(session);
    }
    session.resumed = began != nullptr;
    session.rewound = last > session.state.step;
    session.replays = replays_of(events, session.state.step);
    if (!job_differences(session.job, was, false).empty()) write_job(session.run, session.job);
}

}  // namespace

std::vector<Replay> replays_of(const std::vector<Event>& journal, std::int64_t from) {
    std::vector<Replay> all;
    for (const Event& event : journal) {
        const auto* control = std::get_if<Control>(&event.what);
        if (control == nullptr || control->step < from) continue;
        const Replay replay{control->step, control->action, control->value, control->id};
        if (std::find(all.begin(), all.end(), replay) != all.end()) continue;  // done again after a resume
        if (replay.action == "learning_rate" || replay.action == "plan") {
            std::erase_if(
                all, [&](const Replay& other) { return other.action == replay.action && other.step > replay.step; });
        }
        all.push_back(replay);
    }
    std::stable_sort(all.begin(), all.end(), [](const Replay& a, const Replay& b) { return a.step < b.step; });
    return all;
}

Session open_session(const TrainRequest& request, Progress& progress, const Cancellation& cancellation) {
    Session session;
    session.job = request.job;
    session.run.path = request.run;
    switch (request.start) {
        case TrainRequest::Start::fresh:
            open_fresh(session, progress, cancellation);
            break;
        case TrainRequest::Start::fork:
            open_fork(session, request, progress, cancellation);
            break;
        case TrainRequest::Start::resume:
            open_resumed(session, progress, cancellation);
            break;
    }
    session.state.job = job_text(session.job);
    session.state.data_hash = session.data->hash();
    session.state.layout = layout_hash(session.learner->model());
    session.state.program_version = request.program_version;
    return session;
}

Started started_event(const Session& session, const std::string& program_version) {
    const model::Trainable& trained = session.learner->model();
    const model::Model& model = trained.model();
    Started started;
    started.step = session.state.step;
    started.job = session.state.job;
    started.program_version = program_version;
    started.model_type = model.config().family;
    started.config_json = trained.config_json();
    for (const auto& parameter : trained.parameters())
        if (parameter.trained) started.parameters += parameter.value.numel();
    started.mixers = model.mixers();
    started.sites = model.sites();
    started.threads = kernels::threads();
    started.machine = processor_name();
    started.data_hash = session.data->hash();
    started.steps = session.state.planned_steps;
    return started;
}

JobFile stored_job(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / kStateName, error)) {
        const auto state =
            read_state(read_json_file(folder / kStateName, 64'000'000, "training state"), shown(folder / kStateName));
        return read_job(state.job, shown(folder / kStateName) + ": job");
    }
    if (!RunFolder{folder}.exists())
        throw Error(ErrorCode::usage, shown(folder), "expected the folder of a run (with a job.toml) or of a snapshot",
                    "found none");
    JobFile job = read_job_file(RunFolder{folder}.job());
    job.base.clear();
    return job;
}

}  // namespace headscope::training

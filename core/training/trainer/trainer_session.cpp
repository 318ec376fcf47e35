// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/trainer_session.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/io/output_folder.h"
#include "core/base/json/json.h"
#include "core/base/process/machine.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/run/journal_reader.h"
#include "core/training/trainer/job_model.h"
#include "core/training/trainer/session_parts.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"

namespace headscope::training {
namespace {

namespace fs = std::filesystem;

/// A new or an empty folder, or one that a kill left before it was a run.
void check_folder(const RunFolder& run) {
    if (!run.never_began()) OutputFolder::check_target(run.path);
}

/// Makes the folder of a new run and takes it.
void create_run(Session& session) {
    check_folder(session.run);
    std::error_code error;
    fs::create_directory(session.run.path, error);
    if (error) throw os_error(error.value(), session.run.path, "expected to make this run's folder");
    session.journal = std::make_unique<JournalWriter>(session.run.journal());
    session.run.remove_partials();
    if (session.run.exists())
        throw Error(ErrorCode::usage, shown(session.run.path), "expected a new folder for the run",
                    "found that another process just began one there");
    write_job(session.run, session.job);
    sync_folder(fs::absolute(session.run.path).parent_path());
    session.snapshots = std::make_unique<SnapshotStore>(session.run);
}

void open_fresh(Session& session, Progress& progress, const Cancellation& cancellation) {
    check_folder(session.run);
    // Errors that need no data come first.
    if (session.job.model.from.empty())
        model_config(session.job, 1);
    else
        check_from(session.job);
    open_data(session, {}, progress, cancellation);
    begin_model(session, progress, cancellation);
    create_run(session);
}

/// A fork's model is its snapshot's: a job that says nothing of a model takes it, one that says another is refused.
void take_model(JobFile& job, const TrainingState& state) {
    const JobFile was = read_job(state.job, "snapshot");
    const auto differences = [&](const JobFile& other) {
        std::vector<std::string> all = job_differences(job, other, true);
        std::erase_if(all, [](const std::string& line) { return !line.starts_with("model."); });
        return all;
    };
    const auto of_model = [](const auto& place) { return place.first.starts_with("/model"); };
    if (std::none_of(job.places.begin(), job.places.end(), of_model) && differences(JobFile()).empty())
        job.model = was.model;
    const auto found = differences(was);
    if (found.empty()) return;
    throw error_at_key(
        job, found.front().substr(0, found.front().find(':')),
        Error(ErrorCode::mismatch, "", "expected the snapshot's model; to change its mixers: a new job with model.from",
              "found " + found.front()));
}

/// Nor does a job that names no other tokenizer get another than the snapshot's. One that was made of other text is
/// taken from the snapshot's folder.
void take_tokenizer(JobFile& job, const TrainingState& state, const fs::path& snapshot) {
    const data::DataSettings was = read_job(state.job, "snapshot").data;
    if ((job.tokenizer_given && job.data.tokenizer != was.tokenizer) || job.data.generator || was.generator) return;
    const bool made_of_text = was.tokenizer.starts_with("train:");
    const bool same_text = job.data.text == was.text && job.data.corpus == was.corpus;
    job.data.tokenizer = made_of_text && !same_text ? fs::absolute(snapshot).string() : was.tokenizer;
    job.tokenizer_given = true;
}

void open_fork(Session& session, const TrainRequest& request, Progress& progress, const Cancellation& cancellation) {
    check_folder(session.run);
    if (RunFolder{request.from}.exists())
        throw Error(ErrorCode::usage, shown(request.from),
                    "expected the folder of a snapshot, such as " + shown(RunFolder{request.from}.snapshots() / "last"),
                    "found that of a run");
    const TrainingState state = verify_snapshot(request.from, cancellation);
    take_model(session.job, state);
    take_tokenizer(session.job, state, request.from);
    open_data(session, request.from, progress, cancellation);
    open_snapshot(session, request.from, progress, cancellation);
    const std::int64_t vocabulary = std::as_const(session.learner->model()).model().config().ids();
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
        session.state.least_validation = fresh.least_validation;
        session.state.waited = 0;
        // Another metric is measured again.
        if (read_job(state.job, "snapshot").evaluation.metric != session.job.evaluation.metric)
            session.state.validation = session.state.score = fresh.validation;
        session.state.begin_step = state.step;
        session.state.begin_seconds = state.seconds;
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

}  // namespace

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
            if (session.run.never_began())  // with the job at hand it can begin
                open_fresh(session, progress, cancellation);
            else
                open_resumed(session, request.processes == nullptr ? 1 : request.processes->size(), progress,
                             cancellation);
            break;
    }
    const auto undropped =
        mixers_without_weights(session.job, std::as_const(session.learner->model()).model().config());
    if (!undropped.empty() && request.start != TrainRequest::Start::resume)
        session.problems.push_back("training.attention_dropout leaves layers of " + list_text(undropped, 40) +
                                   " alone, which have no attention weights");
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
    started.config_json = trained.config_json();
    // As snapshots have it: a stack of ours may be one that others know.
    const nlohmann::json config = parse_json(started.config_json, "config.json");
    started.model_type = JsonView(config, "config.json").string_or("model_type", "");
    for (const auto& parameter : trained.parameters())
        if (parameter.trained) started.parameters += parameter.value.numel();
    started.mixers = model.mixers();
    started.sites = model.sites();
    started.threads = kernels::threads();
    started.machine = processor_name();
    started.device = kernels::chosen_device();
    started.kernels = kernels::chosen_kernels(session.job.training.precision);
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
    const RunFolder run{folder};
    if (run.exists()) {
        JobFile job = read_job_file(run.job());
        job.base.clear();
        return job;
    }
    // Without the file the journal has the job.
    std::string text;
    for (const Event& event : read_journal(run.journal()))
        if (const auto* started = std::get_if<Started>(&event.what)) text = started->job;
    if (text.empty() && run.never_began())
        throw Error(ErrorCode::usage, shown(folder),
                    "expected a run that began; with its job it can: headscope train JOB.toml -o ...",
                    "found one that was killed before that");
    if (text.empty())
        throw Error(ErrorCode::usage, shown(folder), "expected the folder of a run (with a job.toml) or of a snapshot",
                    "found none");
    return read_job(text, shown(run.journal()) + ": job");
}

}  // namespace headscope::training

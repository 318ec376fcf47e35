// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/session_parts.h"

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/model/load/generation_settings.h"
#include "core/model/trainable.h"
#include "core/tokenizer/hashed/word_tokenizer.h"
#include "core/training/trainer/guide_text.h"
#include "core/training/trainer/job_model.h"

namespace headscope::training {

namespace fs = std::filesystem;

void write_job(const RunFolder& run, const JobFile& job) {
    // A link would lead out of the folder: to the file, say, that the job was written in.
    remove_link(run.job());
    write_whole_file(run.job(), job_text(job), "job");
}

void open_data(Session& session, const fs::path& folder, Progress& progress, const Cancellation& cancellation) {
    data::DataPlaces places;
    places.base = session.job.base;
    places.run = session.run.path;
    check_tokenizer(session.job);
    try {
        session.words = hashed_words(session.job, folder, places, progress, cancellation);
        session.data = data::DataSet::prepare(session.job.data, places, progress, cancellation,
                                              session.words ? &*session.words : nullptr);
    } catch (const Error& error) {
        throw error_in_data(session.job, error);
    }
    const auto seed = static_cast<std::uint64_t>(session.job.seed);
    session.source = session.data->source(data::Split::training, seed);
    session.held_out = session.data->source(data::Split::validation, seed);
    check_epochs(session.job, session.source->epoch());
    session.lengths = run_lengths(session.job, session.source->epoch());
}

void fresh_state(Session& session) {
    session.state = TrainingState();
    session.state.peak_rate = session.job.optimizer.learning_rate;
    session.state.planned_steps = session.lengths.updates;
}

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
                "expected the data that the run began with; train --from SNAPSHOT starts a run on other data",
                "found other text, tokenizer or settings (SHA-256 " + session.data->hash().substr(0, 12) +
                    "... instead of " + hash.substr(0, 12) + "...)");
}

void begin_model(Session& session, Progress& progress, const Cancellation& cancellation) {
    OfData data = session.data->vocabulary();
    if (session.words)
        if (const auto* ngrams = session.words->tokenizer->word_hash()->ngrams()) data.ngrams = ngrams->size();
    if (data::kind_of(session.job.data.objective).translates)
        data.decoder_start = session.source->read(0, 1).target_ids.at(0);
    session.learner = std::make_unique<Learner>(
        model::on_model_device(make_model(session.job, data, progress, cancellation)), session.job);
    if (!session.job.model.from.empty())
        session.generation =
            model::generation_keys_of(*checkpoint::Checkpoint::open(session.job.base / session.job.model.from)).keys;
    set_guide(session, progress, cancellation);
    fresh_state(session);
}

void open_snapshot(Session& session, const fs::path& folder, Progress& progress, const Cancellation& cancellation) {
    const auto file = checkpoint::Checkpoint::open(folder);
    expect_free_memory(session.job, model::inspect(*file));
    session.learner =
        std::make_unique<Learner>(model::on_model_device(model::Trainable::open(
                                      *file, weight_type(session.job), {}, static_cast<std::uint64_t>(session.job.seed),
                                      &progress, &cancellation)),
                                  session.job);
    mixers_without_weights(session.job, std::as_const(session.learner->model()).model().config());
    session.generation = model::generation_keys_of(*file).keys;
}

}  // namespace headscope::training

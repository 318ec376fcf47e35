// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/describe.h"

#include <algorithm>

#include "core/base/io/sha256.h"
#include "core/checkpoint/adapter.h"
#include "core/mixers/types/standard.h"
#include "core/model/load/presets.h"
#include "core/run/run_folder.h"
#include "core/store/evaluation/evaluation_texts.h"

namespace headscope::evaluation {

namespace fs = std::filesystem;

namespace {

template <class List>
std::string joined(const List& list) {
    std::string text;
    for (const auto& item : list) {
        if (!text.empty()) text += ",";
        if constexpr (std::is_same_v<std::decay_t<decltype(item)>, int>)
            text += std::to_string(item);
        else
            text += item;
    }
    return text;
}

}  // namespace

std::string mixer_of(const std::vector<std::string>& layer_mixers) {
    std::string other = mixers::kStandard.name;
    for (const std::string& mixer : layer_mixers) {
        if (mixers::is_standard(mixer) || mixer == other) continue;
        if (!mixers::is_standard(other)) return "several";
        other = mixer;
    }
    return other;
}

std::set<int> other_layers(const std::vector<std::string>& layer_mixers) {
    std::set<int> layers;
    for (std::size_t i = 0; i < layer_mixers.size(); ++i)
        if (!mixers::is_standard(layer_mixers[i])) layers.insert(static_cast<int>(i));
    return layers;
}

store::EvaluatedModel describe(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                               const std::set<int>& skipped, const training::JobFile* job,
                               const Cancellation& cancellation) {
    const std::vector<std::string> mixers = model.mixers();
    store::EvaluatedModel entry;
    entry.name = checkpoint.display_name();
    entry.path = checkpoint.path().string();
    entry.sha256 = checkpoint.fingerprint(cancellation);
    entry.mixer = mixer_of(mixers);
    entry.layout = model::layout_of(mixers);
    entry.layer_mixers = joined(mixers);
    entry.skipped = joined(skipped);
    entry.parameters = model.parameters();
    entry.attention_parameters = model.attention_parameters();
    entry.embedding_parameters = model.embedding_parameters();
    entry.layers = static_cast<std::int64_t>(mixers.size());
    entry.training_length = training_length(job, model.config().max_positions);
    entry.seed = job != nullptr ? job->seed : -1;
    if (job != nullptr) {
        entry.job = sha256_hex(training::text_but_for_seed(*job));
        entry.variant = store::short_word(job->benchmark.variant);
        entry.benchmark_task = store::short_word(job->benchmark.task);
    }
    if (entry.variant.empty()) entry.variant = store::short_word(store::default_variant(entry));
    return entry;
}

std::string evaluated_name(const checkpoint::Checkpoint& checkpoint) {
    const fs::path folder = checkpoint.path();
    const bool snapshot = folder.parent_path().filename() == "snapshots";
    if (!snapshot) return checkpoint.display_name();
    // The folder of a run from the window ends in a time stamp; the job's name is the model's.
    const auto job = job_of(folder);
    const std::string run =
        job && !job->name.empty() ? job->name : fs::absolute(folder).parent_path().parent_path().filename().string();
    return checkpoint.adapter() ? run + " + " + checkpoint.adapter()->display_name() : run;
}

std::int64_t training_length(const training::JobFile* job, std::int64_t positions) {
    if (job == nullptr) return positions;
    return positions > 0 ? std::min(positions, job->data.sequence_length) : job->data.sequence_length;
}

std::optional<training::JobFile> job_of(const fs::path& checkpoint) {
    std::error_code ignored;
    fs::path folder = fs::weakly_canonical(checkpoint, ignored);
    if (ignored || !fs::is_directory(folder, ignored)) folder = folder.parent_path();
    // A snapshot lies in RUN/snapshots/step-N.
    for (const fs::path& place : {folder, folder.parent_path().parent_path()}) {
        const fs::path file = place / "job.toml";
        if (fs::is_regular_file(file, ignored)) return training::read_job_file(file);
    }
    return std::nullopt;
}

fs::path checkpoint_in(const fs::path& path) {
    std::error_code ignored;
    const training::RunFolder run{path};
    if (fs::exists(path / "config.json", ignored) || !fs::is_directory(run.snapshots(), ignored)) return path;
    for (const char* name : {"best", "last"})
        if (fs::exists(run.snapshots() / name / "config.json", ignored)) return run.snapshots() / name;
    // Not every file system has links.
    std::int64_t newest = -1;
    for (fs::directory_iterator at(run.snapshots(), ignored), end; !ignored && at != end; at.increment(ignored))
        newest = std::max(newest, training::snapshot_step(at->path().filename().string()));
    return newest < 0 ? path : run.snapshots() / training::snapshot_name(newest);
}

}  // namespace headscope::evaluation

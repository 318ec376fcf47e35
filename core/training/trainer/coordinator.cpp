// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/coordinator.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/data/tokenizer_choice.h"
#include "core/model/device.h"
#include "core/training/trainer/job_model.h"
#include "core/training/trainer/session_parts.h"

namespace headscope::training {
namespace {

struct Command {
    std::int64_t step = 0;  ///< 0: the end
    std::int64_t optimizer_step = 0;
    double rate = 0;
};

void broadcast_state(Processes& processes, Learner& learner) {
    const at::NoGradGuard no_gradient;
    for (const at::Tensor& tensor : learner.state_tensors()) {
        const at::Tensor here = model::on_processor(tensor);
        processes.broadcast(here.mutable_data_ptr(), here.nbytes());
        model::give_back(tensor, here);
    }
}

/// Numbers of model.hash_normal; none without an LSH.
std::vector<float> hash_normal(const model::Trainable& model) {
    for (const auto& parameter : model.parameters()) {
        if (!parameter.name.ends_with("hash_normal")) continue;
        const at::Tensor plain = model::on_processor(parameter.value).to(at::kFloat).contiguous();
        const float* numbers = plain.const_data_ptr<float>();
        return {numbers, numbers + plain.numel()};
    }
    return {};
}

/// The configuration with the number of n-grams of its LSH, which no file has.
std::string with_ngrams(const std::string& config, std::size_t count) {
    nlohmann::json changed = parse_json(config, "config.json");
    changed["embedding"]["ngrams"] = count;
    return changed.dump();
}

/// A worker that has the job: computes until the command to end.
void train_along(Processes& processes, const JobFile& job, Progress& progress) {
    const Cancellation never;
    std::string config, hash, layout, ngrams;
    std::int64_t position = 0;
    for (std::string* one : {&config, &hash, &layout, &ngrams}) processes.broadcast_text(*one);
    processes.broadcast(&position, sizeof position);

    // The model first: what hashes words is among its tensors.
    Learner learner(model::on_model_device(
                        model::Trainable::create(config, static_cast<std::uint64_t>(job.seed), weight_type(job))),
                    job);
    if (layout_hash(learner.model()) != layout)
        throw Error(ErrorCode::internal, "model", "expected the layout of process 0", "found another");
    broadcast_state(processes, learner);
    learner.join(processes);
    std::optional<data::HashedWords> words;
    if (const auto& hashed = std::as_const(learner.model()).model().config().hashed; !hashed.is_table()) {
        const auto pieces = hashed.tokenizer_pieces ? data::tokenizer_at(job.data.tokenizer).tokenizer : nullptr;
        words = hashed_words(hashed, ngrams, hash_normal(learner.model()), pieces);
    }
    const auto data = data::DataSet::prepare(job.data, {}, progress, never, words ? &*words : nullptr);
    if (data->hash() != hash)
        throw Error(ErrorCode::mismatch, "data", "expected the data that process 0 has", "found others");
    const auto source = data->source(data::Split::training, static_cast<std::uint64_t>(job.seed));

    data::Prefetcher reader(*source, read_plan(job, position, processes.rank(), processes.size()),
                            static_cast<int>(job.data_workers));
    while (true) {
        Command command;
        processes.broadcast(&command, sizeof command);
        if (command.step == 0) return;
        std::vector<data::DataBatch> parts;
        for (std::int64_t i = 0; i < job.training.accumulate; ++i) parts.push_back(reader.next());
        for (int attempt = 0; attempt < 2; ++attempt) {
            const double loss = learner.gradients(parts, command.step).mean();
            const double norm = learner.gradient_norm();
            if (!std::isfinite(loss) || !std::isfinite(norm)) continue;
            learner.update(command.rate, norm, command.optimizer_step);
            break;
        }
    }
}

}  // namespace

data::ReadPlan read_plan(const JobFile& job, std::int64_t position, int rank, int processes) {
    const std::int64_t share = job.training.batch / processes;
    return {position + rank * share, share, job.training.batch};
}

Coordinator::~Coordinator() {
    stop_workers();
}

void Coordinator::check(const JobFile& job) const {
    if (job.training.batch % size() == 0) return;
    throw error_at_key(
        job, "training.batch",
        Error(ErrorCode::usage, "", "expected a multiple of the " + std::to_string(size()) + " processes",
              "found " + std::to_string(job.training.batch)));
}

void Coordinator::start_workers(Session& session) {
    if (processes_ == nullptr) return;
    started_ = true;
    std::string job = job_text(session.job), config = session.learner->model().config_json(),
                hash = session.data->hash(), layout = layout_hash(session.learner->model()), ngrams;
    if (session.words) {
        for (const auto& file : session.words->files)
            if (file.name == "ngrams.json") ngrams = file.content;
        if (!ngrams.empty()) config = with_ngrams(config, hash_normal(session.learner->model()).size());
    }
    std::int64_t position = session.state.position;
    for (std::string* text : {&job, &config, &hash, &layout, &ngrams}) processes_->broadcast_text(*text);
    processes_->broadcast(&position, sizeof position);
    broadcast_state(*processes_, *session.learner);
    session.learner->join(*processes_);
}

void Coordinator::command(std::int64_t step, std::int64_t optimizer_step, double rate) {
    if (processes_ == nullptr) return;
    Command command{step, optimizer_step, rate};
    processes_->broadcast(&command, sizeof command);
}

void Coordinator::stop_workers() noexcept {
    if (processes_ == nullptr || stopped_) return;
    stopped_ = true;
    try {
        if (started_) {
            command(0, 0, 0);
        } else {
            std::string nothing;
            processes_->broadcast_text(nothing);
        }
    } catch (...) {
        processes_->abort();
    }
}

void run_worker(Processes& processes, Progress& progress) {
    const Cancellation never;
    const CancellationScope scope(never);
    std::string text;
    processes.broadcast_text(text);
    if (text.empty()) throw Stopped();  // the coordinator reports the reason
    try {
        train_along(processes, read_job(text, "job"), progress);
    } catch (const Stopped&) {
        // A failure of all processes, which the coordinator reports; then it stops the workers.
        Command command;
        do processes.broadcast(&command, sizeof command);
        while (command.step != 0);
        throw;
    }
}

}  // namespace headscope::training

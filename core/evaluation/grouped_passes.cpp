// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/grouped_passes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/evaluation/score.h"
#include "core/model/load/memory.h"

namespace headscope::evaluation {
namespace {

/// Bytes of hidden states that may wait: in memory, and in half of the disk's free space.
double most_waiting_bytes(const model::WaitingPlace& place) {
    if (place.folder.empty()) return place.memory_bytes;
    std::error_code failed;
    const std::filesystem::space_info space = std::filesystem::space(place.folder, failed);
    return place.memory_bytes + (failed ? 0 : static_cast<double>(space.available) / 2);
}

double read_tokens(const model::Batch& batch) {
    std::int64_t tokens = 0;
    for (const at::Tensor* ids : {&batch.ids, &batch.target})
        if (ids->defined()) tokens += ids->numel();
    return static_cast<double>(tokens);
}

model::ForwardOptions options_of_pass(const ScoreOptions& options, model::Cache* cache) {
    model::ForwardOptions forward = forward_options(options);
    forward.cache = cache;
    return forward;
}

}  // namespace

GroupedPasses::GroupedPasses(model::Model& model, const ScoreOptions& options, Share progress)
    : model_(model),
      options_(options),
      progress_(std::move(progress)),
      groups_(model.residence() == model::Residence::stream) {
    if (groups_) most_bytes_ = most_waiting_bytes(options.waiting);
}

bool GroupedPasses::is_full(double tokens, double bytes) const {
    return !waiting_.empty() &&
           (tokens_ + tokens > static_cast<double>(options_.group_tokens) || bytes_ + bytes > most_bytes_);
}

void GroupedPasses::add(model::Batch batch, Take take, model::Cache* cache) {
    try {
        if (!groups_) {
            const c10::InferenceMode inference;
            take(model_.forward(batch, options_of_pass(options_, cache)), batch);
            return;
        }
        const double tokens = read_tokens(batch), bytes = model::waiting_bytes(model_.config(), tokens);
        if (is_full(tokens, bytes)) run();
        waiting_.push_back({std::move(batch), std::move(take), cache, tokens});
        tokens_ += tokens;
        bytes_ += bytes;
    } catch (...) {
        throw current_error("evaluation");
    }
}

void GroupedPasses::report(double share) {
    with_ = share;
    if (!waiting_.empty()) return;
    before_ = share;
    if (progress_) progress_(share);
}

void GroupedPasses::finish() {
    if (waiting_.empty()) return;
    with_ = 1;
    try {
        run();
    } catch (...) {
        throw current_error("evaluation");
    }
}

void GroupedPasses::run() {
    const c10::InferenceMode inference;
    std::vector<Waiting> group = std::exchange(waiting_, {});
    // The head counts as a layer.
    const double steps =
        std::max(1.0, std::exchange(tokens_, 0.0) * static_cast<double>(model_.config().all_layers() + 1));
    bytes_ = 0;
    double done = 0;
    const auto advance = [&](double tokens) {
        done = std::min(done + tokens, steps);
        if (progress_) progress_(before_ + (with_ - before_) * done / steps);
    };
    std::vector<model::Model::Pass> passes;
    for (const Waiting& one : group) {
        model::ForwardOptions forward = options_of_pass(options_, one.cache);
        if (progress_) forward.after_layer = [&advance, tokens = one.tokens](int) { advance(tokens); };
        passes.push_back({&one.batch, std::move(forward)});
    }
    // Without a folder all of them wait in memory.
    const model::WaitingPlace place = options_.waiting.folder.empty() ? model::WaitingPlace() : options_.waiting;
    model_.forward_each(passes, place, [&](std::size_t i, const at::Tensor& hidden) {
        if (options_.cancellation) options_.cancellation->check();
        const Waiting one = std::move(group[i]);  // with all that it holds, which goes with it
        one.take(hidden, one.batch);
        advance(one.tokens);
    });
    before_ = with_;
    if (progress_) progress_(before_);
}

}  // namespace headscope::evaluation

// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/evaluation/harness/harness_passes.h"
#include "core/model/embedding/rotary.h"
#include "core/model/towers/cache.h"

namespace headscope::evaluation {
namespace {

using Ids = std::vector<std::int64_t>;

at::Tensor tensor_of(const Ids& values) {
    return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong);
}

void check(const model::Model& model, std::span<const HarnessRequest> requests) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "evaluate", "expected " + expected, "found " + found);
    };
    const model::ModelConfig& config = model.config();
    if (!config.encoder) check_scorable(model);
    if (!model.has_head()) refuse("a model with a head for the vocabulary", "none in the file");
    if (config.encoder && config.decoder_start < 0)
        refuse("a model that names the token its decoder starts with (decoder_start_token_id)", "none");
    for (const HarnessRequest& request : requests) {
        if (request.source.empty() == (config.encoder != nullptr))
            refuse(config.encoder ? "requests with a source" : "requests without a source", "others");
        // The last one is not read, and the model cannot refuse it.
        if (request.ids.back() < 0 || request.ids.back() >= config.vocabulary)
            throw Error(ErrorCode::limit, "continuation",
                        "expected ids from 0 to " + std::to_string(config.vocabulary - 1),
                        "found " + std::to_string(request.ids.back()));
    }
}

bool turns_by_length(const model::ModelConfig& config) {
    const auto turns = [&](const model::RopeConfig& rope) {
        return model::Rotary(rope, config.head_size, config.max_positions).depends_on_length();
    };
    return turns(config.rope) || (config.window_rope && turns(*config.window_rope)) ||
           (config.encoder && turns_by_length(*config.encoder));
}

/// Batching rules under which the model's arithmetic gives the values of each request alone.
PassRules rules_of(const model::Model& model, std::int64_t batch_tokens) {
    PassRules rules;
    rules.batch_tokens = batch_tokens;
    const auto names = model.mixers();
    const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    // The first is computed by pairs or by a state, as the length makes cheaper, and its quotients may be near 0 / 0.
    rules.equal_lengths = has("approximate") || turns_by_length(model.config());
    // Positions that leave tokens out are counted in one text; NAtS-L goes on from a cache head by head, slowly.
    rules.reads_ahead = model.config().position_padding < 0 && !has("natsl") && model.new_cache() != nullptr;
    return rules;
}

/// Contexts that are read ahead.
struct Ahead {
    std::unique_ptr<model::Cache> cache;
    at::Tensor hidden;  ///< rows side by side
};

/// A row of logits, what is asked of it and where the answer goes.
struct Asked {
    std::int64_t row = 0, target = 0;
    std::size_t request = 0, place = 0;
};

class Scorer {
public:
    Scorer(model::Model& model, std::span<const HarnessRequest> requests, const ScoreOptions& options)
        : model_(model), requests_(requests), options_(options), scores_(requests.size()) {
        for (std::size_t i = 0; i < requests.size(); ++i)
            scores_[i].each.resize(static_cast<std::size_t>(requests[i].scored));
    }

    std::vector<RequestScore> run(const std::function<void(std::int64_t done)>& progress) {
        plan_ = plan_passes(requests_, rules_of(model_, options_.batch_tokens));
        const auto all = static_cast<double>(requests_.size());
        GroupedPasses passes(model_, options_, [&progress, all](double share) {
            if (progress) progress(std::llround(share * all));
        });
        std::int64_t done = 0;
        for (const PassBatch& batch : plan_.batches) {
            std::vector<std::shared_ptr<model::Cache>> caches(batch.passes.size());
            const auto ahead = std::make_shared<Ahead>();
            if (batch.shared > 0) read_ahead(passes, batch, ahead, caches);
            for (std::size_t i = 0; i < batch.passes.size(); ++i) {
                if (options_.cancellation) options_.cancellation->check();
                add(passes, batch, batch.passes[i], ahead, caches[i]);
                for (const std::size_t one : batch.passes[i].readings) done += std::ssize(plan_.readings[one].requests);
                passes.report(static_cast<double>(done) / all);
            }
        }
        passes.finish();
        for (RequestScore& score : scores_)
            score.loglikelihood = std::accumulate(score.each.begin(), score.each.end(), 0.0);  // in float64
        return std::move(scores_);
    }

private:
    /// Tokens [first, last) of readings, those of shorter ones padded, with any token: no earlier one sees it.
    at::Tensor target_ids(const std::vector<std::size_t>& readings, std::int64_t first, std::int64_t last) const {
        const std::int64_t width = last - first;
        Ids ids(readings.size() * static_cast<std::size_t>(width));
        auto into = ids.begin();
        for (const std::size_t one : readings) {
            const Reading& reading = plan_.readings[one];
            const HarnessRequest& request = requests_[reading.requests.front()];
            const std::int64_t start = reading.source > 0 ? 1 : 0;
            for (std::int64_t i = first; i < std::min(last, reading.length); ++i)
                into[i - first] =
                    i < start ? model_.config().decoder_start : request.ids[static_cast<std::size_t>(i - start)];
            into += width;
        }
        return tensor_of(ids).view({-1, width});
    }

    void add_sources(model::Batch& batch, const std::vector<std::size_t>& readings) const {
        std::int64_t width = 0;
        for (const std::size_t one : readings) width = std::max(width, plan_.readings[one].source);
        Ids ids(readings.size() * static_cast<std::size_t>(width));
        auto into = ids.begin();
        for (const std::size_t one : readings) {
            const HarnessRequest& request = requests_[plan_.readings[one].requests.front()];
            std::copy(request.source.begin(), request.source.end(), into);
            batch.lengths.push_back(std::ssize(request.source));
            into += width;
        }
        batch.ids = tensor_of(ids).view({-1, width});
        if (!batch.padded()) batch.lengths.clear();  // which a cache does not take
    }

    /// Tokens [first, last) of readings.
    model::Batch batch_of(const std::vector<std::size_t>& readings, std::int64_t first, std::int64_t last,
                          bool is_cached) const {
        model::Batch batch;
        const bool two_towers = model_.config().encoder != nullptr;
        (two_towers ? batch.target : batch.ids) = target_ids(readings, first, last);
        if (two_towers && first == 0) add_sources(batch, readings);
        if (!is_cached) {  // the same without lengths, but for time
            Ids& lengths = two_towers ? batch.target_lengths : batch.lengths;
            for (const std::size_t one : readings) lengths.push_back(plan_.readings[one].length);
        }
        return batch;
    }

    /// Adds a pass of the contexts; `caches` go on from it, one for each pass of the batch.
    void read_ahead(GroupedPasses& passes, const PassBatch& batch, const std::shared_ptr<Ahead>& ahead,
                    std::vector<std::shared_ptr<model::Cache>>& caches) const {
        ahead->cache = model_.new_cache();
        for (std::size_t i = 0; i < caches.size(); ++i) {
            const std::vector<std::size_t>& contexts = batch.passes[i].contexts;
            caches[i] = ahead->cache->chosen_in_turn(tensor_of(Ids(contexts.begin(), contexts.end())), batch.shared);
        }
        passes.add(
            batch_of(batch.contexts, 0, batch.shared, true),
            [ahead](const at::Tensor& hidden, const model::Batch&) { ahead->hidden = hidden.flatten(0, 1); },
            ahead->cache.get());
    }

    /// Adds a pass, behind `ahead` where it has a cache.
    void add(GroupedPasses& passes, const PassBatch& batch, const Pass& pass, const std::shared_ptr<Ahead>& ahead,
             const std::shared_ptr<model::Cache>& cache) {
        std::int64_t last = 0;
        for (const std::size_t one : pass.readings) last = std::max(last, plan_.readings[one].length);
        passes.add(
            batch_of(pass.readings, batch.shared, last, cache != nullptr),
            [this, &batch, &pass, last, ahead, cache](const at::Tensor& hidden, const model::Batch&) {
                score(batch, pass, last, ahead->hidden, hidden.flatten(0, 1));
            },
            cache.get());
    }

    /// `ahead`: hidden states of the contexts, or undefined; `hidden`: those of tokens [batch.shared, last) of the
    /// readings; rows side by side.
    void score(const PassBatch& batch, const Pass& pass, std::int64_t last, const at::Tensor& ahead,
               at::Tensor hidden) {
        const std::int64_t before = ahead.defined() ? ahead.size(0) : 0, width = last - batch.shared;
        if (ahead.defined()) hidden = at::cat({ahead, hidden}, 0);

        Ids rows;
        std::vector<Asked> asked;
        for (std::size_t i = 0; i < pass.readings.size(); ++i) {
            const Reading& reading = plan_.readings[pass.readings[i]];
            const std::int64_t end = std::ssize(rows) + reading.wanted;
            for (std::int64_t t = reading.length - reading.wanted; t < reading.length; ++t)
                rows.push_back(t < batch.shared ? static_cast<std::int64_t>(pass.contexts[i]) * batch.shared + t
                                                : before + static_cast<std::int64_t>(i) * width + t - batch.shared);
            for (const std::size_t one : reading.requests) {
                const HarnessRequest& request = requests_[one];
                for (std::int64_t k = 0; k < request.scored; ++k)
                    asked.push_back({end - request.scored + k, *(request.ids.end() - request.scored + k), one,
                                     static_cast<std::size_t>(k)});
            }
        }
        std::stable_sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) { return a.row < b.row; });
        answer(hidden, rows, asked);
    }

    /// In chunks of rows: the logarithms lie beside the logits.
    void answer(const at::Tensor& hidden, const Ids& rows, const std::vector<Asked>& asked) {
        const std::int64_t step = std::max<std::int64_t>(1, model_.logit_rows() / 2);
        auto next = asked.begin();
        for (std::int64_t first = 0; first < std::ssize(rows); first += step) {
            if (options_.cancellation) options_.cancellation->check();
            const std::int64_t end = std::min(first + step, std::ssize(rows));
            const at::Tensor chunk = hidden.index_select(0, tensor_of({rows.begin() + first, rows.begin() + end}));
            const at::Tensor said = at::log_softmax(model_.logits(chunk).to(at::kFloat), 1).contiguous();
            const at::Tensor largest = said.amax(1).contiguous();
            const float* values = said.const_data_ptr<float>();
            const float* most = largest.const_data_ptr<float>();
            for (; next != asked.end() && next->row < end; ++next) {
                const std::int64_t row = next->row - first;
                const float* const begin = values + row * said.size(1);
                const float value = begin[next->target];
                RequestScore& score = scores_[next->request];
                score.each[next->place] = value;
                // Not so if it is no number; of equal ones the first is the largest.
                score.greedy = score.greedy && value >= most[row] &&
                               std::find(begin, begin + next->target, value) == begin + next->target;
            }
        }
    }

    model::Model& model_;
    std::span<const HarnessRequest> requests_;
    const ScoreOptions& options_;
    PassPlan plan_;
    std::vector<RequestScore> scores_;
};

}  // namespace

std::vector<RequestScore> score_requests(model::Model& model, std::span<const HarnessRequest> requests,
                                         const ScoreOptions& options,
                                         const std::function<void(std::int64_t done)>& progress) {
    check(model, requests);
    try {
        const c10::InferenceMode inference;
        return Scorer(model, requests, options).run(progress);
    } catch (...) {
        throw current_error("evaluation");
    }
}

}  // namespace headscope::evaluation

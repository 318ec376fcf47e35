// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/beam_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include <ATen/core/Tensor.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/generate.h"
#include "core/model/model.h"
#include "core/model/towers/cache.h"

namespace headscope::model {
namespace {

struct Beam {
    std::vector<std::int64_t> tokens;
    double sum = 0;  ///< of log-probabilities
};

struct Continuation {
    std::size_t beam = 0;
    std::int64_t token = 0;
    double sum = 0;
};

void check(const Model& model, std::span<const std::int64_t> source, const BeamOptions& options) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "beam search", "expected " + expected, "found " + found);
    };
    if (!model.config().encoder) refuse("a model with an encoder and a decoder", model.config().family);
    if (options.width < 1) refuse("at least one beam", std::to_string(options.width));
    if (!std::isfinite(options.length_penalty))
        refuse("a finite length penalty", std::to_string(options.length_penalty));
    check_prompt(model, source, {});
}

double penalty_of(const BeamOptions& options, std::int64_t length) {
    const auto tokens = static_cast<double>(length);
    return std::pow(options.plain_power ? tokens : (5 + tokens) / 6, options.length_penalty);
}

/// The `count` best of all tokens behind all beams, best first, by log-probabilities [beams, V] of float64.
std::vector<Continuation> continuations(const std::vector<Beam>& beams, const at::Tensor& log_probabilities,
                                        std::size_t count) {
    const double* values = log_probabilities.const_data_ptr<double>();
    const auto vocabulary = static_cast<std::size_t>(log_probabilities.size(1));
    const auto better = [](const Continuation& a, const Continuation& b) {
        return a.sum != b.sum ? a.sum > b.sum : a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
    };
    std::vector<Continuation> best;  // a heap, the worst of them first
    for (std::size_t beam = 0; beam < beams.size(); ++beam) {
        for (std::size_t token = 0; token < vocabulary; ++token) {
            const double value = values[beam * vocabulary + token];
            if (std::isnan(value))
                throw Error(ErrorCode::limit, "logits", "expected numbers for every entry of the vocabulary",
                            "found NaN for token " + std::to_string(beams[beam].tokens.size()) + " of the answer");
            const Continuation one{beam, static_cast<std::int64_t>(token), beams[beam].sum + value};
            if (std::isinf(one.sum)) continue;  // it cannot be said
            if (best.size() == count) {
                if (!better(one, best.front())) continue;
                std::pop_heap(best.begin(), best.end(), better);
                best.pop_back();
            }
            best.push_back(one);
            std::push_heap(best.begin(), best.end(), better);
        }
    }
    std::sort_heap(best.begin(), best.end(), better);
    return best;
}

at::Tensor column(const std::vector<std::int64_t>& ids) {
    return at::tensor(ids, at::kLong).unsqueeze(1);
}

}  // namespace

BeamResult beam_search(Model& model, std::span<const std::int64_t> source, const BeamOptions& options) {
    check(model, source, options);
    const c10::InferenceMode inference;
    const std::set<std::int64_t> ends(options.end_tokens.begin(), options.end_tokens.end());
    const std::int64_t limit = std::min(options.tokens, room_for_tokens(model.config(), 1, false));
    const auto width = static_cast<std::size_t>(options.width);
    std::unique_ptr<Cache> cache = model.new_cache();
    Batch batch;
    batch.ids = at::tensor(at::ArrayRef<std::int64_t>(source.data(), source.size()), at::kLong).unsqueeze(0);
    batch.target = column({model.config().decoder_start});
    std::vector<Beam> beams(1);
    std::optional<BeamResult> best;
    for (std::int64_t length = 1; length <= limit; ++length) {
        if (options.cancellation) options.cancellation->check();
        ForwardOptions forward;
        forward.cache = cache.get();
        forward.cancellation = options.cancellation;
        const at::Tensor logits = model.logits(model.forward(batch, forward).select(1, 0));
        const at::Tensor said = at::log_softmax(logits, 1, at::kDouble).contiguous();
        const auto found = continuations(beams, said, width * (1 + ends.size()));

        std::vector<Beam> next;
        std::vector<std::int64_t> from, read;
        for (std::size_t rank = 0; rank < found.size(); ++rank) {
            const Continuation& one = found[rank];
            const bool ended = length == limit || ends.contains(one.token);
            if (ended ? rank >= width : next.size() >= width) continue;
            std::vector<std::int64_t> tokens = beams[one.beam].tokens;
            tokens.push_back(one.token);
            if (!ended) {
                next.push_back({std::move(tokens), one.sum});
                from.push_back(static_cast<std::int64_t>(one.beam));
                read.push_back(one.token);
                continue;
            }
            const double score = one.sum / penalty_of(options, length);
            if (!best || score > best->score) best = BeamResult{std::move(tokens), score};
        }
        if (next.empty()) break;
        // Sums only fall: a beam is at best what it is now at the length that divides it by most.
        const double divisor = std::max(penalty_of(options, length + 1), penalty_of(options, limit));
        if (best && (width == 1 || best->score >= next.front().sum / divisor)) break;
        beams = std::move(next);
        cache = cache->chosen(at::tensor(from, at::kLong));
        batch = {};
        batch.target = column(read);
    }
    return best.value_or(BeamResult{});
}

}  // namespace headscope::model

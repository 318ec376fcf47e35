// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/generate/beam_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <ATen/core/Tensor.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/generate/generate.h"
#include "core/model/generate/processors.h"
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
    if (options.width < 1) refuse("at least one beam", std::to_string(options.width));
    if (!std::isfinite(options.length_penalty))
        refuse("a finite length penalty", std::to_string(options.length_penalty));
    GenerateOptions prompt;
    prompt.beyond_positions = options.beyond_positions;
    check_prompt(model, source, prompt);
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

/// Log-probabilities [beams, V] of float64 behind all beams, as the settings change them; of a greedy answer, those of
/// the changed logits.
at::Tensor scores_of(const at::Tensor& logits, const LogitsProcessors& processors, std::span<const std::int64_t> begun,
                     const std::vector<Beam>& beams, bool greedy) {
    const auto log_probabilities = [](const at::Tensor& rows) {
        return at::log_softmax(rows, 1, at::kDouble).contiguous();
    };
    if (processors.empty()) return log_probabilities(logits);
    const at::Tensor scores = greedy ? logits.to(at::kDouble).contiguous() : log_probabilities(logits);
    const auto vocabulary = static_cast<std::size_t>(scores.size(1));
    double* row = scores.mutable_data_ptr<double>();
    for (const Beam& beam : beams) {
        std::vector<std::int64_t> text(begun.begin(), begun.end());
        text.insert(text.end(), beam.tokens.begin(), beam.tokens.end());
        processors.apply(text, {row, vocabulary});
        row += vocabulary;
    }
    return greedy ? log_probabilities(scores) : scores;
}

/// The hypotheses so far: the `width` best, best first.
class Hypotheses {
public:
    Hypotheses(const BeamOptions& options, std::int64_t limit, bool sums_fall)
        : options_(options), limit_(limit), sums_fall_(sums_fall) {}

    void add(std::vector<std::int64_t> tokens, double sum, std::int64_t length) {
        const double score = sum / penalty_of(options_, length);
        const auto place = std::find_if(best_.begin(), best_.end(), [&](const auto& one) { return score > one.score; });
        best_.insert(place, BeamResult{std::move(tokens), score});
        if (best_.size() > width()) best_.pop_back();
    }

    /// True if a continuation of the best beam, of `length` tokens and this sum, may beat a kept hypothesis.
    bool can_improve(double sum, std::int64_t length) const {
        if (best_.empty()) return true;
        if (options_.width == 1) return false;
        const bool never = options_.early_stopping == EarlyStopping::never;
        if (never && sums_fall_) {
            // A beam is at best what it is now at the length that divides it by most.
            const double divisor = std::max(penalty_of(options_, length + 1), penalty_of(options_, limit_));
            return best_.front().score < sum / divisor;
        }
        if (best_.size() < width()) return true;
        if (options_.early_stopping == EarlyStopping::full) return false;
        const std::int64_t hoped = never && options_.length_penalty > 0 ? limit_ : length;
        return sum / penalty_of(options_, hoped) > best_.back().score;
    }

    BeamResult best() const { return best_.empty() ? BeamResult{} : best_.front(); }

private:
    std::size_t width() const { return static_cast<std::size_t>(options_.width); }

    const BeamOptions& options_;
    std::int64_t limit_;
    bool sums_fall_;
    std::vector<BeamResult> best_;
};

}  // namespace

void use_beams_of_files(const GenerationSettings& settings, BeamOptions& options) {
    options.plain_power = true;
    options.length_penalty = settings.length_penalty.value_or(1);
    options.early_stopping = settings.early_stopping.value_or(EarlyStopping::heuristic);
}

BeamResult beam_search(Model& model, std::span<const std::int64_t> source, const BeamOptions& options) {
    check(model, source, options);
    const c10::InferenceMode inference;
    const ModelConfig& config = model.config();
    const bool answers = config.encoder != nullptr, greedy = options.width == 1;
    const std::set<std::int64_t> ends(options.end_tokens.begin(), options.end_tokens.end());
    const std::vector<std::int64_t> begun =
        answers ? std::vector{config.decoder_start} : std::vector(source.begin(), source.end());
    const std::int64_t limit =
        std::min(options.tokens, room_for_tokens(config, std::ssize(begun), options.beyond_positions));
    const LogitsProcessors processors(options.settings, {source, options.end_tokens, std::ssize(begun),
                                                         std::ssize(begun) + limit, config.vocabulary});
    const auto width = static_cast<std::size_t>(options.width);
    std::unique_ptr<Cache> cache = model.new_cache();
    Batch batch;
    batch.ids = at::tensor(at::ArrayRef<std::int64_t>(source.data(), source.size()), at::kLong).unsqueeze(0);
    if (answers) batch.target = column(begun);
    std::vector<Beam> beams(1);
    Hypotheses hypotheses(options, limit, processors.empty());
    for (std::int64_t length = 1; length <= limit; ++length) {
        if (options.cancellation) options.cancellation->check();
        ForwardOptions forward;
        forward.cache = cache.get();
        forward.beyond_positions = options.beyond_positions;
        forward.skip_layers = options.skip_layers;
        forward.editor = options.editor;
        forward.cancellation = options.cancellation;
        const at::Tensor hidden = model.forward(batch, forward);
        const at::Tensor logits = model.logits(hidden.select(1, hidden.size(1) - 1).contiguous());
        const auto found = continuations(beams, scores_of(logits, processors, begun, beams, greedy),
                                         width * std::max<std::size_t>(2, 1 + ends.size()));

        std::vector<Beam> next;
        std::vector<std::int64_t> from, read;
        for (std::size_t rank = 0; rank < found.size(); ++rank) {
            const Continuation& one = found[rank];
            const bool ended = length == limit || ends.contains(one.token);
            if (ended ? rank >= width : next.size() >= width) continue;
            std::vector<std::int64_t> tokens = beams[one.beam].tokens;
            tokens.push_back(one.token);
            if (ended) {
                hypotheses.add(std::move(tokens), one.sum, length);
                continue;
            }
            next.push_back({std::move(tokens), one.sum});
            from.push_back(static_cast<std::int64_t>(one.beam));
            read.push_back(one.token);
        }
        if (next.empty() || !hypotheses.can_improve(next.front().sum, length)) break;
        beams = std::move(next);
        cache = cache->chosen(at::tensor(from, at::kLong));
        batch = {};
        (answers ? batch.target : batch.ids) = column(read);
    }
    return hypotheses.best();
}

}  // namespace headscope::model

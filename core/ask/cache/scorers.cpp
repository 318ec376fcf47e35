// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/cache/scorers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include "core/base/error.h"

namespace headscope::ask::cache {
namespace {

constexpr std::array<std::string_view, kScorers> kScorerNames{
    "h2o", "snapkv", "tova", "streaming_llm", "key_norm", "key_difference", "expected_attention"};

constexpr double kKeptAlways = std::numeric_limits<double>::infinity();

/// [H, n] -> [G, n]: mean over the query heads of a group.
at::Tensor mean_of_groups(const at::Tensor& scores, std::int64_t groups) {
    return scores.view({groups, scores.size(0) / groups, scores.size(1)}).mean(1);
}

at::Tensor always(std::int64_t groups, std::int64_t keys) {
    return at::full({groups, keys}, kKeptAlways, at::kDouble);
}

at::Tensor snapkv(const ScoredSite& site, const ScorerOptions& options, std::int64_t groups) {
    const at::Tensor earlier = site.window_rows.narrow(2, 0, options.context - options.window).mean(1);
    const at::Tensor pooled =
        at::avg_pool1d(earlier.unsqueeze(0), {options.kernel}, {1}, {options.kernel / 2}).squeeze(0);
    return at::cat({mean_of_groups(pooled, groups), always(groups, options.window)}, 1);
}

at::Tensor tova(const ScoredSite& site, const ScorerOptions& options, std::int64_t groups) {
    const at::Tensor mean = site.last_row.narrow(1, 0, options.context - 1).mean(0, true);
    return at::cat({mean.expand({groups, options.context - 1}), always(groups, 1)}, 1);
}

at::Tensor streaming_llm(const ScorerOptions& options, double ratio, std::int64_t groups) {
    const auto kept = static_cast<std::int64_t>(static_cast<double>(options.context) * (1 - ratio));
    const std::int64_t pruned = std::min(options.context - kept, options.context - options.sink);
    at::Tensor scores = at::ones({groups, options.context}, at::kDouble);
    scores.narrow(1, options.sink, pruned).zero_();
    return scores;
}

at::Tensor key_difference(const at::Tensor& key) {
    const at::Tensor norms = key.norm(2, -1, true).clamp_min(1e-12);
    const at::Tensor anchor = (key / norms).mean(1, true);
    const at::Tensor both = norms * anchor.norm(2, -1, true).clamp_min(1e-8);
    return -((key * anchor).sum(-1) / both.squeeze(-1));
}

/// Queries of later positions as Gaussian ones: those of the context from the sinks on, turned by the mean rotation.
at::Tensor expected_attention(const ScoredSite& site, const ScorerOptions& options, std::int64_t groups) {
    const std::int64_t rest = options.context - options.sink, heads = site.query.size(0);
    const at::Tensor queries = site.query.narrow(1, options.sink, rest);
    const at::Tensor mean = queries.mean(1, true), centred = queries - mean;
    const at::Tensor covariance = at::matmul(centred.transpose(1, 2), centred) / static_cast<double>(rest);
    const at::Tensor turned_mean = at::matmul(mean, site.rotation);  // [H, 1, dk]
    const at::Tensor turned = at::matmul(at::matmul(site.rotation.t(), covariance), site.rotation);
    const at::Tensor key = site.key.narrow(1, options.sink, rest);
    const at::Tensor of_heads = key.repeat_interleave(heads / groups, 0);  // [H, n, dk]
    const auto size = static_cast<double>(key.size(2));
    const at::Tensor linear = at::matmul(of_heads, turned_mean.transpose(1, 2)).squeeze(2) / std::sqrt(size);
    const at::Tensor square = (at::matmul(of_heads, turned) * of_heads).sum(-1) / (2 * size);
    const at::Tensor weights = mean_of_groups(at::softmax(linear + square, -1), groups);
    const at::Tensor norms = site.value.narrow(1, options.sink, rest).norm(2, -1);
    return at::cat({always(groups, options.sink), weights * norms}, 1);
}

[[noreturn]] void refuse_scorer(Scorer scorer, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::usage, "ask cache, " + std::string(name(scorer)), "expected " + expected, "found " + found);
}

}  // namespace

std::string_view name(Scorer scorer) {
    return kScorerNames.at(static_cast<std::size_t>(scorer));
}

at::Tensor scores_of(Scorer scorer, const ScoredSite& site, const ScorerOptions& options, double ratio) {
    const std::int64_t groups = site.key.size(0);
    const at::Tensor key = site.key.narrow(1, 0, options.context);
    switch (scorer) {
        case Scorer::h2o:
            return mean_of_groups(site.column_sums / at::arange(options.context, 0, -1, at::kDouble), groups);
        case Scorer::snapkv:
            return snapkv(site, options, groups);
        case Scorer::tova:
            return tova(site, options, groups);
        case Scorer::streaming_llm:
            return streaming_llm(options, ratio, groups);
        case Scorer::key_norm:
            return -key.norm(2, -1);
        case Scorer::key_difference:
            return key_difference(key);
        case Scorer::expected_attention:
            return expected_attention(site, options, groups);
    }
    throw Error(ErrorCode::internal, "ask cache", "expected a scorer", "found another one");
}

std::int64_t kept_keys(std::int64_t context, double ratio) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(context) * (1 - ratio)));
}

std::vector<std::int64_t> best_keys(const at::Tensor& scores, std::int64_t count) {
    const at::Tensor row = scores.to(at::kDouble).contiguous();
    const double* const values = row.const_data_ptr<double>();
    std::vector<std::int64_t> order(static_cast<std::size_t>(row.numel()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return values[a] > values[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
    std::sort(order.begin(), order.end());
    return order;
}

void check_scorer(Scorer scorer, const ScorerOptions& options, const std::vector<double>& ratios) {
    std::int64_t always_kept = 0;
    if (scorer == Scorer::snapkv) always_kept = options.window;
    if (scorer == Scorer::streaming_llm || scorer == Scorer::expected_attention) always_kept = options.sink;
    if (options.context <= std::max<std::int64_t>(1, always_kept))
        refuse_scorer(scorer,
                      "a context of more than " + std::to_string(std::max<std::int64_t>(1, always_kept)) + " tokens",
                      std::to_string(options.context));
    for (const double ratio : ratios) {
        const std::int64_t kept = kept_keys(options.context, ratio);
        if (kept < always_kept)
            refuse_scorer(scorer, "ratios that keep " + std::to_string(always_kept) + " keys or more",
                          std::to_string(kept) + " of " + std::to_string(options.context));
    }
}

}  // namespace headscope::ask::cache

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/evaluation/generated_answers.h"
#include "core/evaluation/harness/longbench.h"
#include "core/evaluation/harness/python_random.h"
#include "core/evaluation/metrics/python_text.h"
#include "kernels/parallel.h"

namespace headscope::evaluation {
namespace {

constexpr double kNoHarnessError = std::numeric_limits<double>::quiet_NaN();

std::int64_t first_of_largest(const std::vector<double>& values) {
    return std::max_element(values.begin(), values.end()) - values.begin();
}

std::vector<double> loglikelihoods(const ItemScore& score) {
    std::vector<double> values;
    for (const RequestScore& request : score.requests) values.push_back(request.loglikelihood);
    return values;
}

std::int64_t chosen_by_length(const HarnessItem& item, const ItemScore& score) {
    std::vector<double> values = loglikelihoods(score);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto length = static_cast<double>(item.characters[i]);
        values[i] = length > 0 ? values[i] / length : -std::numeric_limits<double>::infinity();
    }
    return first_of_largest(values);
}

/// Divisor and unit of a page metric.
struct PageMetric {
    std::int64_t HarnessItem::*size;
    bool bits;

    double value(double nats) const { return bits ? nats / std::numbers::ln2 : std::exp(nats); }
    /// The error of `value` where that of `nats` is `of_nats`.
    double error(double nats, double of_nats) const {
        return bits ? of_nats / std::numbers::ln2 : value(nats) * of_nats;
    }
};

PageMetric page_metric(const std::string& name) {
    return {name == "word_perplexity" ? &HarnessItem::words : &HarnessItem::bytes, name == "bits_per_byte"};
}

double item_value(const HarnessTask& task, const HarnessItem& item, const ItemScore& score, const std::string& metric) {
    switch (task.kind) {
        case HarnessKind::choices:
        case HarnessKind::partial:
            return (metric == "acc_norm" ? chosen_by_length(item, score) : score.chosen) == item.gold ? 1 : 0;
        case HarnessKind::last_word:
            if (metric == "perplexity") return score.requests.front().loglikelihood;
            return score.requests.front().greedy ? 1 : 0;
        case HarnessKind::page: {
            const PageMetric page = page_metric(metric);
            return page.value(-score.requests.front().loglikelihood / static_cast<double>(item.*page.size));
        }
        case HarnessKind::said:
            if (is_longbench(task)) return longbench_score(task, item, score.generated);
            break;
    }
    return std::any_of(item.answers.begin(), item.answers.end(),
                       [&](const std::string& answer) { return contains_any_case(score.generated, trimmed(answer)); })
               ? 1
               : 0;
}

/// A ratio of sums over pages; its error takes pages as independent (TokenScores has the same one, but takes none of
/// no size: a page without text may have a first token that is scored).
HarnessValue page_value(const std::string& name, std::span<const HarnessItem> items,
                        std::span<const ItemScore> scores) {
    const PageMetric page = page_metric(name);
    double nats = 0, size = 0, deviations = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        nats -= scores[i].requests.front().loglikelihood;
        size += static_cast<double>(items[i].*page.size);
    }
    const double mean = nats / size;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const double deviation =
            scores[i].requests.front().loglikelihood + mean * static_cast<double>(items[i].*page.size);
        deviations += deviation * deviation;
    }
    const auto n = static_cast<double>(items.size());
    const double error = items.size() > 1 ? std::sqrt(deviations * n / (n - 1)) / size : kNoHarnessError;
    return {name, page.value(mean), page.error(mean, error), std::ssize(items)};
}

/// lm_eval/api/metrics.py, bootstrap_stderr: chunk i draws its resamples with random.Random(i).
double bootstrap_error(const std::vector<double>& loglikelihoods, std::int64_t resamples,
                       const Cancellation* cancellation) {
    const std::size_t n = loglikelihoods.size();
    if (n < 2 || resamples < 2) return kNoHarnessError;
    const std::int64_t chunk = std::min<std::int64_t>(1000, resamples), chunks = resamples / chunk;
    std::vector<double> perplexities(static_cast<std::size_t>(chunk * chunks));
    kernels::parallel_for(chunks, [&](std::int64_t i, int) {
        PythonRandom random(static_cast<std::uint64_t>(i));
        for (std::int64_t j = i * chunk; j < (i + 1) * chunk; ++j) {
            if (cancellation) cancellation->check();
            double sum = 0;
            for (const std::size_t item : random.choices(n, n)) sum += loglikelihoods[item];
            perplexities[static_cast<std::size_t>(j)] = std::exp(-sum / static_cast<double>(n));
        }
    });
    return mean_score(perplexities).error * std::sqrt(static_cast<double>(perplexities.size()));
}

std::vector<double> metric_values(std::span<const ItemScore> scores, std::size_t metric) {
    std::vector<double> values;
    for (const ItemScore& score : scores) values.push_back(score.metrics[metric].second);
    return values;
}

}  // namespace

void judge(const HarnessTask& task, const HarnessItem& item, ItemScore& score) {
    score.chosen = has_options(task.kind) ? first_of_largest(loglikelihoods(score)) : -1;
    score.metrics.clear();
    score.right = false;
    for (const std::string& metric : task.metrics) {
        const double value = item_value(task, item, score, metric);
        score.metrics.emplace_back(metric, value);
        if (metric == "acc" || metric == "contains" || metric == "score") score.right = value == 1;
    }
}

std::vector<HarnessValue> values_of(const HarnessTask& task, std::span<const HarnessItem> items,
                                    std::span<const ItemScore> scores, std::int64_t resamples,
                                    const Cancellation* cancellation) {
    std::vector<HarnessValue> values;
    for (std::size_t i = 0; i < task.metrics.size(); ++i) {
        const std::string& metric = task.metrics[i];
        if (task.kind == HarnessKind::page) {
            values.push_back(page_value(metric, items, scores));
            continue;
        }
        const std::vector<double> of_items = metric_values(scores, i);
        const AnswerScore mean = mean_score(of_items);
        if (metric == "perplexity")
            values.push_back(
                {metric, std::exp(-mean.mean), bootstrap_error(of_items, resamples, cancellation), mean.items});
        else
            values.push_back({metric, mean.mean, mean.error, mean.items});
    }
    return values;
}

std::vector<HarnessValue> baselines_of(const HarnessTask& task, std::span<const HarnessItem> items) {
    if (!has_options(task.kind)) return {};
    std::map<std::int64_t, std::int64_t> golds;
    std::vector<double> chances;
    for (const HarnessItem& item : items) {
        ++golds[item.gold];
        chances.push_back(1 / static_cast<double>(item.requests.size()));
    }
    std::int64_t most = 0;
    for (const auto& [gold, count] : golds) most = std::max(most, count);
    const auto n = static_cast<double>(items.size());
    // The error that lm-eval's formula gives answers of which this share is right.
    const auto accuracy = [&](const std::string& name, double share) {
        const double error = items.size() > 1 ? std::sqrt(share * (1 - share) / (n - 1)) : kNoHarnessError;
        return HarnessValue{name, share, error, std::ssize(items)};
    };
    return {accuracy("chance", mean_score(chances).mean), accuracy("majority", static_cast<double>(most) / n)};
}

std::vector<HarnessValue> guesses_of(const HarnessTask& task, std::span<const HarnessItem> items,
                                     std::span<const ItemScore> scores, std::int64_t vocabulary) {
    const bool word = task.kind == HarnessKind::last_word;
    if ((!word && task.kind != HarnessKind::page) || items.empty() || vocabulary < 1) return {};
    const double nats = std::log(static_cast<double>(vocabulary));
    std::vector<ItemScore> guessed(items.size());
    std::vector<double> loglikelihoods, right;
    std::map<std::string, std::int64_t> words;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto tokens = static_cast<double>(scores[i].requests.front().each.size());
        guessed[i].requests.resize(1);
        guessed[i].requests.front().loglikelihood = -tokens * nats;
        loglikelihoods.push_back(-tokens * nats);
        right.push_back(std::exp(-tokens * nats));
        if (word) most = std::max(most, ++words[items[i].requests.front().continuation]);
    }
    std::vector<HarnessValue> values;
    if (word) {
        const auto n = static_cast<double>(items.size());
        values.push_back({"chance", mean_score(right).mean, kNoHarnessError, std::ssize(items)});
        values.push_back({"majority", static_cast<double>(most) / n, kNoHarnessError, std::ssize(items)});
        values.push_back(
            {"chance_perplexity", std::exp(-mean_score(loglikelihoods).mean), kNoHarnessError, std::ssize(items)});
        return values;
    }
    for (const std::string& metric : task.metrics) {
        HarnessValue value = page_value(metric, items, guessed);
        value.metric = "chance_" + metric;
        value.error = kNoHarnessError;
        values.push_back(value);
    }
    return values;
}

std::optional<HarnessValue> chance_adjusted(std::span<const HarnessValue> values,
                                            std::span<const HarnessValue> guesses) {
    const auto find = [](std::span<const HarnessValue> all, const char* metric) {
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const HarnessValue& one) { return one.metric == metric; });
        return found == all.end() ? nullptr : &*found;
    };
    const HarnessValue* const accuracy = find(values, "acc");
    const HarnessValue* const chance = find(guesses, "chance");
    const HarnessValue* const majority = find(guesses, "majority");
    if (accuracy == nullptr || chance == nullptr || majority == nullptr) return std::nullopt;
    const double c = std::max(chance->value, majority->value);
    if (!(c < 1)) return std::nullopt;
    return HarnessValue{"acc_chance", (accuracy->value - c) / (1 - c), accuracy->error / (1 - c), accuracy->count};
}

}  // namespace headscope::evaluation

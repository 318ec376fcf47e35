// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/benchmark/benchmark_results.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::figures {
namespace {

enum class Match { none, tuned, matched, exact };

/// How surely a result is one of the task.
Match match(const store::EvaluatedModel& model, const store::EvaluationResult& result, const BenchmarkTask& task) {
    if (result.metric != task.metric || !result.subset.empty()) return Match::none;
    const bool tuned = model.benchmark_task == task.name;
    if (!model.benchmark_task.empty() && !tuned) return Match::none;
    if (result.task == task.name) return Match::exact;
    if (task.name == "mnli") {
        if (result.task == "mnli_matched") return Match::matched;
        if (result.task == "mnli_mismatched") return Match::none;
    }
    return tuned ? Match::tuned : Match::none;
}

std::string variant_of(const store::EvaluatedModel& model) {
    const std::string name = model.variant.empty() ? store::default_variant(model) : model.variant;
    return model.skipped.empty() ? name : name + " without " + model.skipped;
}

struct Candidate {
    BenchmarkResult found;
    Match match = Match::none;
};

bool better(const Candidate& a, const Candidate& b) {
    if (a.match != b.match) return a.match > b.match;
    if (a.found.result->length != b.found.result->length) return a.found.result->length > b.found.result->length;
    return a.found.result->count > b.found.result->count;
}

/// The same weights on the same items, however often they were evaluated.
bool same(const Candidate& a, const Candidate& b) {
    const auto &one = *a.found.result, &other = *b.found.result;
    return a.found.model().sha256 == b.found.model().sha256 && one.task == other.task && one.text == other.text &&
           one.data_sha256 == other.data_sha256;
}

class Collector {
public:
    explicit Collector(std::string where) : where_(std::move(where)) {}

    void add(Candidate candidate) {
        const store::EvaluatedModel& model = candidate.found.model();
        if (model.seed >= 0) {
            place(by_seed_[model.seed], std::move(candidate), "seed " + std::to_string(model.seed));
            return;
        }
        const auto known = std::find_if(unknown_.begin(), unknown_.end(), [&](const Candidate& one) {
            return one.found.model().sha256 == model.sha256 && !model.sha256.empty();
        });
        if (known == unknown_.end())
            unknown_.push_back(std::move(candidate));
        else
            merge(*known, std::move(candidate), "one model");
    }

    BySeed results() const {
        BySeed all;
        for (const auto& [seed, candidate] : by_seed_) all.emplace(seed, candidate->found);
        for (std::size_t i = 0; i < unknown_.size(); ++i)
            all.emplace(unknown_.size() == 1 ? -1 : -2 - static_cast<std::int64_t>(i), unknown_[i].found);
        return all;
    }

private:
    void place(std::optional<Candidate>& kept, Candidate candidate, const std::string& of) {
        if (kept)
            merge(*kept, std::move(candidate), of);
        else
            kept = std::move(candidate);
    }

    void merge(Candidate& kept, Candidate candidate, const std::string& of) {
        const bool same_weights = kept.found.model().sha256 == candidate.found.model().sha256;
        if (!same(kept, candidate) && (!same_weights || kept.match == candidate.match))
            throw Error(ErrorCode::usage, where_, "expected one result of " + of,
                        "found those of " + words(kept) + " and " + words(candidate));
        if (better(candidate, kept)) kept = std::move(candidate);
    }

    static std::string words(const Candidate& candidate) {
        return escaped(candidate.found.model().name) + " on " + escaped(candidate.found.result->task);
    }

    std::string where_;
    std::map<std::int64_t, std::optional<Candidate>> by_seed_;
    std::vector<Candidate> unknown_;
};

}  // namespace

std::vector<VariantResults> benchmark_results(Evaluations evaluations, const BenchmarkSet& set,
                                              std::optional<std::int64_t> length) {
    std::vector<VariantResults> variants;
    std::vector<std::vector<Collector>> collectors;
    const auto variant = [&](const store::EvaluatedModel& model) {
        const std::string name = variant_of(model);
        const auto found =
            std::find_if(variants.begin(), variants.end(), [&](const VariantResults& one) { return one.name == name; });
        const auto index = static_cast<std::size_t>(found - variants.begin());
        if (found == variants.end()) {
            variants.push_back({name, model.mixer, -1, {}});
            collectors.emplace_back();
            for (const BenchmarkTask& task : set.tasks)
                collectors.back().emplace_back(escaped(name) + " on " + std::string(task.name));
        }
        if (variants[index].attention_parameters < 0) variants[index].attention_parameters = model.attention_parameters;
        return index;
    };
    for (const auto& evaluation : evaluations) {
        for (const store::EvaluationResult& result : evaluation->results) {
            if (length && result.length != *length) continue;
            const BenchmarkResult found{{evaluation, result.model}, &result};
            for (std::size_t t = 0; t < set.tasks.size(); ++t) {
                const Match sure = match(found.model(), result, set.tasks[t]);
                if (sure == Match::none) continue;
                const std::size_t index = variant(found.model());
                collectors[index][t].add({found, sure});
            }
        }
    }
    for (std::size_t v = 0; v < variants.size(); ++v)
        for (const Collector& collector : collectors[v]) variants[v].tasks.push_back(collector.results());
    return variants;
}

}  // namespace headscope::figures

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Results of evaluation files by variant, task and seed. Threads: any.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/benchmark/benchmark_sets.h"
#include "core/figures/evaluation_groups.h"

namespace headscope::figures {

/// A model's result on a task of a benchmark.
struct BenchmarkResult {
    EvaluationMember member;
    const store::EvaluationResult* result = nullptr;  ///< of the member's evaluation

    const store::EvaluatedModel& model() const {
        return member.evaluation->models[static_cast<std::size_t>(member.model)];
    }
};

/// Seeds that are not known have keys below 0: -1 for a single one, else -2 and below, which are of one task alone.
using BySeed = std::map<std::int64_t, BenchmarkResult>;

struct VariantResults {
    std::string name, mixer;
    std::int64_t attention_parameters = -1;
    std::vector<BySeed> tasks;  ///< in the set's order
};

/// Variants in the order of the files. A result counts for the task that its model's job was tuned for, else for that
/// of its name; mnli_matched is mnli. `length`: results at that one; else each model's longest. Throws Error (usage)
/// for two results of one variant, task and seed.
std::vector<VariantResults> benchmark_results(Evaluations evaluations, const BenchmarkSet& set,
                                              std::optional<std::int64_t> length);

}  // namespace headscope::figures

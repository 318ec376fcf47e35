// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Results of tuned models as the thesis prints them (Tables 3.1, 3.7): a row a variant, a column a task of a benchmark
// and their average, with performance retention and elasticity. Models of one variant and task are its seeds.
// Threads: any.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/benchmark/benchmark_sets.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/figure_options.h"
#include "core/figures/task_table.h"

namespace headscope::figures {

/// A variant's result on a task, or the average over tasks. NaN: not defined.
struct BenchmarkValue {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double deviation = mean;  ///< over seeds (divisor n - 1)
    double prr = mean, peop = mean;
    double p = mean;  ///< of options.significance
    Rank rank = Rank::none;
    std::vector<double> each{};  ///< one a seed
};

struct BenchmarkVariant {
    std::string name, mixer;
    std::int64_t attention_parameters = -1;  ///< -1: not known
    std::vector<BenchmarkValue> values;      ///< of each task, and the average
};

class BenchmarkTable {
public:
    /// options.set, baseline, smallest, significance, length (else the longest). Throws Error (usage) for an unknown
    /// set or variant, for files without a result of the set, and for two results of one variant, task and seed.
    BenchmarkTable(Evaluations evaluations, const FigureOptions& options);

    const BenchmarkSet& set() const noexcept { return set_; }
    const std::vector<BenchmarkVariant>& variants() const noexcept { return variants_; }
    const BenchmarkVariant& baseline() const { return variants_[baseline_]; }
    const BenchmarkVariant* smallest() const { return smallest_ ? &variants_[*smallest_] : nullptr; }
    /// "rte", or "average" behind the last task.
    std::string column(std::size_t index) const;
    std::size_t columns() const { return set_.tasks.size() + 1; }
    /// "MHE on rte: ..." of each variant and task whose jobs differ in more than their seeds.
    const std::vector<std::string>& notes() const noexcept { return notes_; }

    /// variant, task, metric, mean, sd, seeds, prr, peop, and with a tested variant p. Shares of 1.
    Table numbers() const;
    /// A tabular of the package booktabs in per cent: results with the deviation in brackets, PRR, and PEoP.
    std::string latex() const;

private:
    const BenchmarkSet& set_;
    std::vector<BenchmarkVariant> variants_;
    std::size_t baseline_ = 0;
    std::optional<std::size_t> smallest_;
    bool tested_ = false;
    std::vector<std::string> notes_;
};

}  // namespace headscope::figures

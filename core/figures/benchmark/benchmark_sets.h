// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tasks of the benchmarks of tuned models, and the metric by which each is reported (the thesis, Tables 2.2, 3.1, 3.7).

#include <string_view>
#include <vector>

namespace headscope::figures {

struct BenchmarkTask {
    std::string_view name, metric;  ///< metric as `evaluate --task classify` and `squad` store it
    bool operator==(const BenchmarkTask&) const = default;
};

struct BenchmarkSet {
    std::string_view name, title;  ///< "glue", "GLUE"
    std::vector<BenchmarkTask> tasks;
};

/// glue (without WNLI), superglue (without ReCoRD), squad, and all of them, each task once.
const std::vector<BenchmarkSet>& benchmark_sets();
/// Throws Error (usage) that lists the names.
const BenchmarkSet& benchmark_set(std::string_view name);

}  // namespace headscope::figures

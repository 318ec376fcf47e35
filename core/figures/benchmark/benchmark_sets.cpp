// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/benchmark/benchmark_sets.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/text/text.h"

namespace headscope::figures {
namespace {

std::vector<BenchmarkSet> make_sets() {
    std::vector<BenchmarkSet> sets{{"glue",
                                    "GLUE",
                                    {{"cola", "matthews"},
                                     {"sst2", "accuracy"},
                                     {"mrpc", "accuracy"},
                                     {"stsb", "spearman"},
                                     {"qqp", "f1"},
                                     {"mnli", "accuracy"},
                                     {"qnli", "accuracy"},
                                     {"rte", "accuracy"}}},
                                   {"superglue",
                                    "SuperGLUE",
                                    {{"boolq", "accuracy"},
                                     {"cb", "f1"},
                                     {"copa", "accuracy"},
                                     {"multirc", "f1"},
                                     {"rte", "accuracy"},
                                     {"wic", "accuracy"},
                                     {"wsc", "accuracy"}}},
                                   {"squad", "SQuAD", {{"squad", "f1"}, {"squad_v2", "f1"}}}};
    BenchmarkSet all{"all", "GLUE, SuperGLUE and SQuAD", {}};
    for (const BenchmarkSet& set : sets)
        for (const BenchmarkTask& task : set.tasks)
            if (std::find(all.tasks.begin(), all.tasks.end(), task) == all.tasks.end()) all.tasks.push_back(task);
    sets.push_back(std::move(all));
    return sets;
}

}  // namespace

const std::vector<BenchmarkSet>& benchmark_sets() {
    static const std::vector<BenchmarkSet> sets = make_sets();
    return sets;
}

const BenchmarkSet& benchmark_set(std::string_view name) {
    std::vector<std::string> names;
    for (const BenchmarkSet& set : benchmark_sets()) {
        if (set.name == name) return set;
        names.emplace_back(set.name);
    }
    throw Error(ErrorCode::usage, "--set", "expected one of " + list_text(names, names.size()),
                "found " + (name.empty() ? std::string("none") : escaped(name)));
}

}  // namespace headscope::figures

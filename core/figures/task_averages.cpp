// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/task_averages.h"

#include <algorithm>

namespace headscope::figures {

const std::vector<TaskAverage>& task_averages() {
    // NAtS-L and Lazy Attention print acc_norm as acc of hellaswag, openbookqa and arc_challenge.
    static const std::vector<TaskAverage> all{
        {"deconattn",
         "Deconstructing Attention",
         {{"arc_easy", "acc"},
          {"boolq", "acc"},
          {"copa", "acc"},
          {"piqa", "acc"},
          {"sciq", "acc"},
          {"rte", "acc"},
          {"hellaswag", "acc"}},
         {"wikitext", "lambada_openai"}},
        {"natsl",
         "NAtS-L",
         {{"lambada_openai", "acc"},
          {"piqa", "acc"},
          {"hellaswag", "acc_norm"},
          {"winogrande", "acc"},
          {"openbookqa", "acc_norm"},
          {"arc_challenge", "acc_norm"},
          {"arc_easy", "acc"}},
         {"wikitext", "swde", "squad_completion", "fda", "based_triviaqa", "based_nq", "based_drop"}},
        {"natsl_retrieval",
         "NAtS-L, retrieval",
         {{"swde", "contains"},
          {"squad_completion", "contains"},
          {"fda", "contains"},
          {"based_triviaqa", "contains"},
          {"based_nq", "contains"},
          {"based_drop", "contains"}},
         {}},
        {"lazy",
         "Lazy Attention",
         {{"lambada_openai", "acc"},
          {"piqa", "acc"},
          {"hellaswag", "acc_norm"},
          {"winogrande", "acc"},
          {"arc_easy", "acc"},
          {"arc_challenge", "acc_norm"},
          {"social_iqa", "acc"},
          {"boolq", "acc"}},
         {"wikitext"}}};
    return all;
}

const TaskAverage* find_task_average(std::string_view name) {
    const auto& all = task_averages();
    const auto found = std::find_if(all.begin(), all.end(), [&](const TaskAverage& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

const TaskAverage* average_of(const std::vector<std::string>& tasks) {
    const auto shown = [&](const AverageEntry& entry) {
        return std::find(tasks.begin(), tasks.end(), entry.task) != tasks.end();
    };
    for (const TaskAverage& one : task_averages()) {
        const auto printed = [&](const std::string& task) {
            return std::any_of(one.entries.begin(), one.entries.end(),
                               [&](const AverageEntry& entry) { return entry.task == task; }) ||
                   std::find(one.printed.begin(), one.printed.end(), task) != one.printed.end();
        };
        if (std::all_of(one.entries.begin(), one.entries.end(), shown) &&
            std::all_of(tasks.begin(), tasks.end(), printed))
            return &one;
    }
    return nullptr;
}

}  // namespace headscope::figures

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// LongBench's eleven English tasks of "NAtS-L" (Tables 3, 6, 8, 9) with the prompts and scores of lm-eval 0.4.13 or of
// THUDM/LongBench (2e00731), whole and in the length-balanced part ("_e"). Threads: any.

#include <string>
#include <string_view>
#include <vector>

#include "core/base/json/json.h"
#include "core/evaluation/harness/harness_items.h"

namespace headscope::evaluation {

inline constexpr const char* kLongBench = "LongBench";       ///< HarnessTask::data_set
inline constexpr const char* kLongBenchSet = "longbench_e";  ///< the set, and the task of its means

/// longbench_NAME and longbench_NAME_e, whose metrics are "score" and the task's own name of it.
std::vector<HarnessTask> longbench_tasks();
/// The set's tasks, in the order of the paper's tables.
std::vector<std::string> longbench_set();

bool is_longbench(const HarnessTask& task);
/// The task by THUDM's rules: blank lines before the input of triviaqa and samsum and a line's end behind code, no
/// stops; scores of texts as they are, of trec, triviaqa and samsum of the first line.
HarnessTask with_thudm_rules(HarnessTask task);
/// By THUDM's rules the last token of a line's end also ends a summary of samsum, and its first token is no end.
bool ends_at_line(const HarnessTask& task);
HarnessItem longbench_item(const HarnessTask& task, const JsonView& record);
/// The best score over the item's answers; 0 without any.
double longbench_score(const HarnessTask& task, const HarnessItem& item, std::string_view said);

/// Length classes, by words of the context: "0-4k", "4-8k", "8k+".
const std::vector<std::string>& length_classes();

}  // namespace headscope::evaluation

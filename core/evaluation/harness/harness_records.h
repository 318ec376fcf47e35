// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One record of a data set as the texts that lm-eval asks of it, without examples before it. Source: lm-eval 0.4.13,
// lm_eval/tasks; of based_* HazyResearch's fork. Threads: any. Errors: format with the record's place and its column.

#include <string>

#include "core/base/json/json.h"
#include "core/evaluation/harness/harness_items.h"
#include "core/evaluation/harness/harness_tasks.h"

namespace headscope::evaluation {

HarnessItem read_record(const HarnessTask& task, const JsonView& record);

/// An item with its right answer and what stands behind it, as it precedes another: of choices and partial only.
std::string example_text(const HarnessTask& task, const HarnessItem& item);

}  // namespace headscope::evaluation

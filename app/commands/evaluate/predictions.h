// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/commands/evaluate/evaluation_options.h"
#include "core/base/progress.h"

namespace headscope::app {

/// `evaluate --predictions`: scores stored answers to one of lm-eval's tasks, or those of a folder to several, without
/// a model. Errors: UsageError for models or other tasks with it; Error for a wrong number of answers, or what reading
/// the files throws.
void evaluate_predictions(const EvaluationOptions& options, const Cancellation& cancellation);

}  // namespace headscope::app

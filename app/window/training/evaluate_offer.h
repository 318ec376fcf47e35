// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What the dialog of evaluations offers: tasks by name, models with why they cannot be evaluated.

#include "app/window/training/evaluation_service.h"
#include "widgets/panels/evaluate_choice.h"
#include "widgets/panels/text_choice.h"

namespace headscope::app {

/// Every task that reads text, and the sets; no models.
widgets::EvaluateOffer offered_tasks();
/// An open checkpoint.
widgets::EvaluateOffer::Model offered_model(const widgets::ModelCard& card);
/// The best snapshot of an open run. Reads files; never throws.
widgets::EvaluateOffer::Model offered_run(const EvaluatedRun& run);

}  // namespace headscope::app

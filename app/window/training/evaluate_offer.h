// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The offer of the dialog of evaluations: tasks, models with the reason where they cannot be evaluated, texts.

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

/// The texts of the text panel, bundled ones, and corpora with the reason where they are not installed.
std::vector<widgets::EvaluateOffer::Text> offered_texts(const std::filesystem::path& resources,
                                                        const std::vector<widgets::TextExample>& examples,
                                                        const std::vector<widgets::TextSource>& sources);
/// Writes a text to a file of `folder` and returns its path. Not on the window's thread. Throws Error (io).
QString write_text(const std::filesystem::path& folder, const QString& content);

}  // namespace headscope::app

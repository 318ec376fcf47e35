// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From the text panel's choice to tokens, costs and an analysis request.

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/analysis/estimate.h"
#include "core/analysis/input.h"
#include "core/analysis/request.h"
#include "core/ask/edits/intervention_file.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/tokenizer.h"
#include "widgets/panels/text_choice.h"

namespace headscope::app {

/// An open checkpoint. Everything but `weights` is fixed when it is made and may be read by any thread.
struct OpenModel {
    widgets::ModelCard card;
    std::shared_ptr<const checkpoint::Checkpoint> file;
    model::Inspection inspection;
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  ///< null: none
    std::string tokenizer_problem;                          ///< why there is none although there are files of one
    std::optional<tokenizer::ChatTemplate> chat;
    std::shared_ptr<model::Model> weights;  ///< the compute thread's, null until they are needed
    std::atomic<model::Residence> residence{model::Residence::float32};  ///< of `weights`
};

/// Opens and checks a checkpoint; reads no weights. What cannot be run (no configuration, an unknown family, missing
/// tensors) is opened as tensors only, and its card's note says why. Throws Error, Stopped. `place`:
/// ModelPlace::text().
std::shared_ptr<OpenModel> open_checkpoint(const QString& place);

/// A token of the vocabulary as lists of words show it: white space visible, long ones cut.
QString listed_word(const tokenizer::Tokenizer& tokenizer, std::int32_t token);

/// The choice's texts as tokens. Throws Error: usage for nothing to do, and what the model refuses.
analysis::Input read_choice(const OpenModel& model, const widgets::TextChoice& choice,
                            const std::filesystem::path& resources, const Cancellation& cancellation);

/// The request for read_choice()'s tokens, with the settings that are stored with the results.
analysis::AnalysisRequest make_request(const OpenModel& model, const widgets::TextChoice& choice,
                                       analysis::Input& input, const Cancellation& cancellation);

/// Sets the choices that an analysis stores in its settings, texts and what it records aside. Throws Error
/// (unsupported) for one without some blocks or in bfloat16, which no choice has.
void take_settings(const std::string& settings_json, widgets::TextChoice& choice);

/// The choice's interventions, checked against the model; without values of other runs. Reads their vectors. Throws
/// Error.
ask::InterventionPlan read_interventions(const OpenModel& model, const widgets::TextChoice& choice);

/// Tokens of the longest text that was cut because the model has no positions for more; 0: none was. Reads the texts
/// again. Throws Stopped.
std::int64_t uncut_tokens(const OpenModel& model, const widgets::TextChoice& choice,
                          const analysis::AnalysisRequest& request, const std::filesystem::path& resources,
                          const Cancellation& cancellation);

/// The preview of the text panel. `rate` is this machine's; `loaded`: the weights are in memory.
widgets::TokenPreview make_preview(const OpenModel& model, const widgets::TextChoice& choice,
                                   const analysis::AnalysisRequest& request, const std::string& first_token,
                                   const analysis::Rate& rate, bool loaded);

}  // namespace headscope::app

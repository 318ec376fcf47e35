// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts of a generation step by step: its text, command and memory, and the tokens after a text that is steered.
// Threads: the compute thread; keep_first_text() any. Errors: headscope::Error.

#include <cstdint>
#include <string>
#include <vector>

#include "core/ask/settings.h"
#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/model/load/residence.h"

namespace headscope::model {
class Model;
struct Inspection;
}  // namespace headscope::model
namespace headscope::store {
struct AskRecord;
}
namespace headscope::widgets {
struct TextChoice;
}

namespace headscope::app {

/// Leaves out all texts but the first one that is used.
void keep_first_text(widgets::TextChoice& choice);

/// The command line that reads the same text: with it, --resume takes the file. The text panel alone has chat templates
/// and heads that are switched off; they stay in the settings, so no command has these.
ask::AskOptions step_command(const widgets::TextChoice& choice, const std::string& settings);

/// Bytes of weights and of `made` tokens after a text, at most. `maps`: rows are kept; `again`: the text is read once
/// more.
double step_bytes(const model::Inspection& inspection, const store::SequenceTokens& text, double made, bool maps,
                  bool again, model::Residence residence);

/// Adds factor times the vectors of a file of `ask steer` to the output of a layer; -1: of each that has one. Throws
/// usage for vectors that do not fit the model and for a layer without one.
model::Intervention steering_edit(const store::AskRecord& file, int layer, double factor,
                                  const model::ModelConfig& config);

/// The distribution of the token after a text, at temperature 1.
struct NextToken {
    std::vector<std::int64_t> ids;      ///< the vocabulary, likeliest first
    std::vector<double> probabilities;  ///< by id
};
/// `target`: of an encoder-decoder, whose encoder reads the text, the decoder's input. `editor` may be null.
NextToken read_next_token(model::Model& model, model::Editor* editor, const std::vector<std::int64_t>& text,
                          const std::vector<std::int64_t>& target, const Cancellation& cancellation);

}  // namespace headscope::app

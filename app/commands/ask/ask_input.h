// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of options that tools of `headscope ask` share.

#include <string>
#include <vector>

#include "app/commands/ask/ask_tool.h"
#include "app/commands/option_use.h"
#include "core/ask/metric.h"
#include "core/ask/token_list.h"
#include "core/model/edits/editor.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {

/// Names of the options that give a tool its texts, and its metric.
const std::vector<std::string>& ask_text_options();
const std::vector<std::string>& ask_metric_options();

using ask::parse_tokens;

ask::Metric metric_of(const AskOptions& options, const tokenizer::Tokenizer* tokenizer);
std::vector<model::Point> points_of(const std::string& option, const std::string& list);

/// Bytes of runs side by side whose scores or weights are edited, of a text of `tokens` tokens each.
double matrix_edit_bytes(const model::ModelConfig& config, std::int64_t tokens);

/// Index of a value among the choices of an option that CLI11 has checked.
std::size_t choice_of(const std::vector<std::string>& choices, const std::string& value);

/// Adds an option that may repeat, each time with one value.
void add_list(CLI::App& command, const char* name, std::vector<std::string>& values, const char* help);

}  // namespace headscope::app

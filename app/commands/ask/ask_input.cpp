// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/ask/ask_input.h"

#include <algorithm>
#include <sstream>
#include <variant>

#include "core/ask/cells.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/model/load/memory.h"

namespace headscope::app {

ask::Metric metric_of(const AskOptions& options, const tokenizer::Tokenizer* tokenizer) {
    ask::Metric metric;
    for (std::int64_t k = 0; k < ask::kMetricKinds; ++k)
        if (ask::name(static_cast<ask::MetricKind>(k)) == options.metric) metric.kind = static_cast<ask::MetricKind>(k);
    metric.answer = parse_tokens("--answer", options.answer, ask::writer_of(tokenizer));
    metric.against = parse_tokens("--against", options.against, ask::writer_of(tokenizer));
    metric.all_positions = options.position == "all";
    if (!metric.all_positions) metric.position = ask::whole_number("--position", options.position);
    return metric;
}

std::vector<model::Point> points_of(const std::string& option, const std::string& list) {
    std::vector<std::string> names;
    for (std::int64_t p = 0; p < model::kPoints; ++p) names.emplace_back(model::name(static_cast<model::Point>(p)));
    std::vector<model::Point> points;
    for (std::size_t at = 0; at < list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        const std::string one = list.substr(at, end - at);
        const auto found = std::find(names.begin(), names.end(), one);
        if (found == names.end())
            throw Error(ErrorCode::usage, option, "expected points: " + list_text(names, names.size()),
                        "found " + escaped(one));
        points.push_back(static_cast<model::Point>(found - names.begin()));
        at = end + 1;
    }
    return points;
}

double matrix_edit_bytes(const model::ModelConfig& config, std::int64_t tokens) {
    const std::int64_t rows = std::max<std::int64_t>(1, ask::kCellTokens / std::max<std::int64_t>(1, tokens));
    return model::edited_matrix_bytes(config, static_cast<double>(rows), static_cast<double>(tokens));
}

std::size_t choice_of(const std::string& option, const std::string& value) {
    const std::vector<std::string>& choices = ask::tool_option(option).choices;
    return static_cast<std::size_t>(std::find(choices.begin(), choices.end(), value) - choices.begin());
}

void take_standard(const ask::ToolOption& option, std::string& value) {
    if (const std::string text = ask::standard_text(option); !text.empty()) value = text;
}

void take_standard(const ask::ToolOption& option, std::int64_t& value) {
    if (const auto* standard = std::get_if<std::int64_t>(&option.standard)) value = *standard;
}

void take_standard(const ask::ToolOption& option, double& value) {
    if (const auto* standard = std::get_if<double>(&option.standard)) value = *standard;
}

void take_standard(const ask::ToolOption& option, std::vector<std::string>& values) {
    std::istringstream list(ask::standard_text(option));
    for (std::string one; std::getline(list, one, ',');) values.push_back(one);
}

void take_standard(const ask::ToolOption& option, std::vector<double>& values) {
    std::istringstream list(ask::standard_text(option));
    for (std::string one; std::getline(list, one, ',');) values.push_back(std::stod(one));
}

CLI::Option* checked(CLI::Option* made, const ask::ToolOption& option) {
    if (!option.choices.empty()) made->check(one_of(option.choices));
    if (option.kind == OptionKind::choices) made->delimiter(',');
    if (option.kind == OptionKind::whole)
        made->check(in_range(static_cast<std::int64_t>(option.lowest), static_cast<std::int64_t>(option.highest)));
    if (option.kind == OptionKind::number) made->check(in_range(option.lowest, option.highest));
    return made;
}

CLI::Option* add_tool_flag(CLI::App& command, const std::string& name, bool& value) {
    return add_flag(command, name, value, ask::command_help(ask::tool_option(name)));
}

void add_list(CLI::App& command, const std::string& name, std::vector<std::string>& values) {
    add_option(command, name, values, ask::command_help(ask::tool_option(name)))
        ->expected(1)
        ->take_all()
        ->group("Input");
}

}  // namespace headscope::app

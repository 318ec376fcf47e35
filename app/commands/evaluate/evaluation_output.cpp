// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/evaluation_output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/json/json.h"

namespace headscope::app {

using nlohmann::json;

namespace {

std::string ending(const std::filesystem::path& path) {
    return path.extension().string();
}

json number(double value) {
    return std::isfinite(value) ? json(value) : json();
}

std::string significant(double value) {
    if (!std::isfinite(value)) return "";
    char text[40];
    std::snprintf(text, sizeof text, "%.5g", value);
    return text;
}

}  // namespace

void check_evaluation_name(const std::string& output) {
    const std::string end = ending(output);
    if (end == ".h5" || end == ".csv" || end == ".json") return;
    throw UsageError("-o: a name that ends in .evaluation.h5, .csv or .json is expected; found " + escaped(output));
}

json evaluation_json(const store::Evaluation& evaluation) {
    json models = json::array(), results = json::array();
    for (const auto& model : evaluation.models) {
        models.push_back({{"name", model.name},
                          {"path", model.path},
                          {"sha256", model.sha256},
                          {"mixer", model.mixer},
                          {"layout", model.layout},
                          {"layer_mixers", model.layer_mixers},
                          {"skipped", model.skipped},
                          {"parameters", model.parameters},
                          {"layers", model.layers},
                          {"training_length", model.training_length},
                          {"seed", model.seed},
                          {"job", model.job},
                          {"attention_parameters", model.attention_parameters},
                          {"embedding_parameters", model.embedding_parameters},
                          {"variant", model.variant},
                          {"benchmark_task", model.benchmark_task}});
    }
    for (const auto& result : evaluation.results) {
        results.push_back({{"model", result.model},
                           {"task", result.task},
                           {"metric", result.metric},
                           {"length", result.length},
                           {"value", number(result.value)},
                           {"error", number(result.error)},
                           {"count", result.count},
                           {"shots", result.shots},
                           {"text", result.text},
                           {"subset", result.subset},
                           {"data_sha256", result.data_sha256},
                           {"cut", result.cut}});
    }
    return {{"models", models}, {"results", results}, {"settings", json::parse(evaluation.settings_json)}};
}

void print_evaluation(const store::Evaluation& evaluation) {
    const auto& results = evaluation.results;
    const bool texts = std::any_of(results.begin(), results.end(), [](const auto& one) { return !one.text.empty(); });
    std::vector<std::vector<std::string>> rows;
    for (const auto& result : results) {
        const auto& model = evaluation.models[static_cast<std::size_t>(result.model)];
        rows.push_back({escaped(model.name) + (model.skipped.empty() ? "" : " without " + model.skipped), result.task,
                        result.metric, std::to_string(result.length), significant(result.value),
                        significant(result.error), std::to_string(result.count), std::to_string(result.shots),
                        std::to_string(result.cut)});
        if (texts) rows.back().push_back(escaped(result.text));
    }
    std::vector<std::string> header{"model", "task", "metric", "length", "value", "error", "count", "shots", "cut"};
    if (texts) header.emplace_back("text");
    print(format_table(header, rows));
}

void write_evaluation_as(const std::filesystem::path& path, const store::Evaluation& evaluation,
                         const std::vector<std::filesystem::path>& inputs) {
    if (ending(path) == ".h5") {
        store::write_evaluation(path, evaluation, inputs);
        return;
    }
    write_whole_file(
        path, ending(path) == ".csv" ? store::evaluation_csv(evaluation) : json_text(evaluation_json(evaluation)),
        "evaluation", inputs);
}

}  // namespace headscope::app

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/analyze/run_description.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/json/json.h"

namespace headscope::app {
namespace {

using nlohmann::json;

/// JSON has no NaN.
json number(double value) {
    return std::isfinite(value) ? json(value) : json();
}

}  // namespace

json describe_run(const store::RunRecord& run) {
    json document = {{"kind", "run"},
                     {"name", run.name},
                     {"state", run.state},
                     {"family", run.model_type},
                     {"created", run.created},
                     {"program_version", run.program_version},
                     {"step", run.last_step()},
                     {"planned_steps", run.planned_steps},
                     {"parameters", run.parameters},
                     {"layers", run.mixers.size()},
                     {"mixers", run.mixers},
                     {"heads", run.heads()},
                     {"threads", run.threads},
                     {"processes", run.processes},
                     {"machine", run.machine},
                     {"device", run.device},
                     {"kernels", run.kernels},
                     {"resumed", run.resumed},
                     {"probes", run.probes.count()},
                     {"job", run.job}};
    if (!run.state_text.empty()) document["state_text"] = run.state_text;
    if (!run.training.step.empty()) {
        document["tokens"] = run.training.tokens.back();
        document["seconds"] = number(run.training.seconds.back());
        document["loss"] = number(run.training.loss.back());
        document["tokens_per_second"] = number(run.training.tokens_per_second.back());
    }
    json indicators = json::array(), snapshots = json::array(), problems = json::array();
    for (const auto& indicator : run.probes.indicators) indicators.push_back(indicator.name);
    for (const auto& snapshot : run.snapshots) snapshots.push_back(snapshot.name);
    document["indicators"] = std::move(indicators);
    document["snapshots"] = std::move(snapshots);
    const auto& held_out = run.validation.loss;
    const auto least = std::min_element(held_out.begin(), held_out.end(),
                                        [](double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); });
    if (least != held_out.end()) {
        document["validation_loss"] = number(*least);
        document["validation_step"] = run.validation.step[static_cast<std::size_t>(least - held_out.begin())];
    }
    if (run.state == "failed") problems.push_back(run.state_text.empty() ? "the run failed" : run.state_text);
    if (run.state == "interrupted")
        problems.push_back("the process died; train --resume goes on from the last snapshot");
    document["problems"] = std::move(problems);
    return document;
}

void describe_device(json& document, const json& settings) {
    for (const char* name : {"device", "kernels", "on_device", "device_requested", "kernels_requested"})
        if (settings.is_object() && settings.contains(name)) document[name] = settings[name];
}

json describe_evaluation(const store::Evaluation& evaluation, const std::string& name) {
    std::set<std::string> tasks, metrics;
    std::set<std::int64_t> lengths;
    for (const auto& result : evaluation.results) {
        tasks.insert(result.task);
        metrics.insert(result.metric);
        lengths.insert(result.length);
    }
    json models = json::array();
    for (const auto& model : evaluation.models) models.push_back(model.name);
    json document = {{"kind", "evaluation"},
                     {"name", name},
                     {"created", evaluation.created},
                     {"program_version", evaluation.program_version},
                     {"models", models},
                     {"tasks", tasks},
                     {"metrics", metrics},
                     {"lengths", lengths},
                     {"results", evaluation.results.size()},
                     {"items", evaluation.item_count},
                     {"problems", json::array()}};
    describe_device(document, parse_json(evaluation.settings_json, name + ": settings"));
    return document;
}

json describe_ask(const store::AskRecord& record, const std::string& name) {
    json lengths = json::array(), tables = json::array();
    for (const auto& text : record.sequences) lengths.push_back(text.ids.size());
    for (const auto& table : record.tables) tables.push_back(table.path);
    json document = {{"kind", "ask"},
                     {"name", name},
                     {"tool", record.tool},
                     {"model", record.model_name},
                     {"family", record.model_type},
                     {"created", record.created},
                     {"program_version", record.program_version},
                     {"complete", record.complete},
                     {"layers", record.mixers.size()},
                     {"sites", record.sites.size()},
                     {"sequence_lengths", lengths},
                     {"tables", tables},
                     {"interventions", !record.interventions.empty()},
                     {"model_sha256", record.model_sha256},
                     {"problems", json::array()}};
    describe_device(document, parse_json(record.settings_json, name + ": settings"));
    return document;
}

}  // namespace headscope::app

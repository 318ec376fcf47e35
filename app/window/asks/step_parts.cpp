// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/asks/step_parts.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/ask/generation_session.h"
#include "core/ask/steer.h"
#include "core/base/error.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "widgets/panels/text_choice.h"

namespace headscope::app {
namespace {

/// Caches that a session holds at most, in caches of the text: buffers double when full, or states are kept.
constexpr double kCaches = 4;
constexpr double kCachesAgain = 2;  // of a session that reads the text once more

}  // namespace

void keep_first_text(widgets::TextChoice& choice) {
    using widgets::TextSource;
    const auto first = std::find_if(choice.sources.begin(), choice.sources.end(), [](const TextSource& one) {
        return one.used && (one.kind != TextSource::Kind::text || !one.value.isEmpty());
    });
    if (first == choice.sources.end()) return choice.sources.clear();
    const TextSource kept = *first;
    choice.sources = {kept};
}

ask::AskOptions step_command(const widgets::TextChoice& choice, const std::string& settings) {
    ask::AskOptions command;
    command.tool = "generate";
    command.job = analysis::job_of(nlohmann::json::parse(settings));
    analysis::AnalysisJob& job = command.job;
    command.models = {job.model};
    command.interventions = std::exchange(job.interventions, {});
    job.record.clear();
    job.examples.clear();                             // --text has them
    if (job.files.empty()) job.texts.emplace_back();  // settings have the number of texts, and of targets
    if (!choice.target.isEmpty()) job.targets.emplace_back();
    job.length = choice.length;  // the command does not cut texts to the model's positions
    job.threads = 0;             // as a command without --threads
    return command;
}

double step_bytes(const model::Inspection& inspection, const store::SequenceTokens& text, double made, bool maps,
                  bool again, model::Residence residence) {
    const auto source = static_cast<double>(text.ids.size());
    const auto begun = static_cast<double>(text.predicted().ids.size());
    double all = begun + made;  // tokens of the stack that continues
    if (const std::int64_t most = inspection.config.max_positions; most > 0)
        all = std::min(all, static_cast<double>(most));
    double weights = 0;  // of all rows that lead to a token
    for (const Site& site : inspection.sites)
        if (site.stack != "encoder") weights += static_cast<double>(site.heads) * (site.is_cross() ? source : all);
    // Rows are held by the session and by the window.
    const double rows = maps ? 2 * sizeof(float) * std::min(made, all) * weights : 0;
    const double read = std::max(source, again ? all : begun);
    const double cached = all + (text.target ? source : 0);  // cross-attention keeps keys and values of the source
    return rows + model::reading_bytes(inspection, read, (kCaches + (again ? kCachesAgain : 0)) * cached,
                                       checkpoint::LoadAs::float32, residence);
}

model::Intervention steering_edit(const store::AskRecord& file, int layer, double factor,
                                  const model::ModelConfig& config) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "steer file", "expected " + expected, "found " + found);
    };
    if (file.table("/steer/vector").dimensions != std::vector<std::string>{"/layer", "/channel"})
        refuse("vectors by layer and channel", "other dimensions");
    const std::int64_t layers = file.size_of("/layer"), channels = file.size_of("/channel");
    if (layers != config.all_layers() || channels != config.hidden)
        refuse("vectors of " + std::to_string(config.hidden) + " numbers for " + std::to_string(config.all_layers()) +
                   " layers, as the model has",
               std::to_string(channels) + " numbers for " + std::to_string(layers) + " layers");
    model::Intervention edit;
    edit.point = model::Point::hidden;
    edit.action = model::Action::add;
    edit.factor = factor;
    for (const auto& [own, vector] : ask::steering_vectors(file)) {
        if (layer >= 0 && own != layer) continue;
        edit.layers.push_back(own);
        edit.values[{model::Point::hidden, own, -1}] = vector;
    }
    if (edit.layers.empty()) refuse(layer < 0 ? "a vector" : "a vector for layer " + std::to_string(layer), "none");
    return edit;
}

NextToken read_next_token(model::Model& model, model::Editor* editor, const std::vector<std::int64_t>& text,
                          const std::vector<std::int64_t>& target, const Cancellation& cancellation) {
    ask::SessionOptions options;
    options.top = std::numeric_limits<std::int64_t>::max();
    options.editor = editor;
    ask::GenerationSession session(model, options, text, target);
    const ask::GeneratedStep& step = session.step(cancellation);
    NextToken next;
    next.ids = step.top_id;
    next.probabilities.resize(step.top_id.size());
    for (std::size_t k = 0; k < step.top_id.size(); ++k)
        next.probabilities.at(static_cast<std::size_t>(step.top_id[k])) = step.top_probability[k];
    return next;
}

}  // namespace headscope::app

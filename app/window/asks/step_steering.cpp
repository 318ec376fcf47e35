// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/asks/step_steering.h"

#include <cstddef>
#include <limits>
#include <string>

#include "core/ask/generation_session.h"
#include "core/ask/steer.h"
#include "core/base/error.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"

namespace headscope::app {

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
                          const Cancellation& cancellation) {
    ask::SessionOptions options;
    options.top = std::numeric_limits<std::int64_t>::max();
    options.editor = editor;
    ask::GenerationSession session(model, options, text);
    const ask::GeneratedStep& step = session.step(cancellation);
    NextToken next;
    next.ids = step.top_id;
    next.probabilities.resize(step.top_id.size());
    for (std::size_t k = 0; k < step.top_id.size(); ++k)
        next.probabilities.at(static_cast<std::size_t>(step.top_id[k])) = step.top_probability[k];
    return next;
}

}  // namespace headscope::app

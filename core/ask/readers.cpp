// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/readers.h"

#include "core/ask/cells.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {

kernels::StatisticsRequest weights_request(const std::vector<std::int32_t>& ids) {
    kernels::StatisticsRequest request;
    request.histogram = request.head_diversity = request.column_mass = request.thumbnails = false;
    request.tokens = ids;
    return request;
}

void read_run(model::Model& model, const std::vector<std::int32_t>& ids, SiteReader& sites, ValueReader* values,
              model::Editor* around, const Cancellation& cancellation) {
    model::EditorChain chain({around, values});
    model::Batch batch;
    batch.ids = text_ids(ids).unsqueeze(0);
    model::ForwardOptions options;
    options.probe = &sites;
    if (around != nullptr || values != nullptr) options.editor = &chain;
    options.cancellation = &cancellation;
    model.forward(batch, options);
}

void check_decoder(const model::Model& model, const char* tool) {
    if (model.causal() && !model.config().encoder) return;
    throw Error(ErrorCode::usage, std::string("ask ") + tool, "expected a decoder",
                model.config().encoder ? "found an encoder-decoder" : "found an encoder");
}

void check_scores(const model::Model& model, const model::Editor* around, const char* tool) {
    if (around == nullptr) return;
    for (const model::PointKey& key : model::places_of(model::Point::scores, model.config(), model.sites()))
        if (around->edits(key))
            throw Error(ErrorCode::unsupported, std::string("ask ") + tool,
                        "expected no interventions at scores, without which weights are measured",
                        "found one in layer " + std::to_string(key.layer));
}

}  // namespace headscope::ask

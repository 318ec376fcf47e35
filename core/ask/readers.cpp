// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/readers.h"

#include <utility>

#include "core/ask/cells.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::ask {

SiteReader::SiteReader(const std::vector<Site>& sites, const store::SequenceTokens& text, Take take)
    : sites_(&sites), request_(weights_request(text.ids)), take_(std::move(take)) {
    if (!text.target) return;
    of_target_ = weights_request(text.target->ids);
    of_cross_ = weights_request({});
    of_cross_.cross = true;
}

const kernels::StatisticsRequest* SiteReader::request(SiteIndex site) {
    const Site& own = (*sites_)[static_cast<std::size_t>(site.value)];
    if (!own.has_matrix) return nullptr;
    if (own.is_cross()) return &of_cross_;
    return own.stack == "decoder" ? &of_target_ : &request_;
}

kernels::StatisticsRequest weights_request(const std::vector<std::int32_t>& ids) {
    kernels::StatisticsRequest request;
    request.histogram = request.head_diversity = request.column_mass = request.thumbnails = false;
    request.tokens = ids;
    return request;
}

void read_run(model::Model& model, const TextInput& text, SiteReader& sites, ValueReader* values, model::Editor* around,
              const Cancellation& cancellation) {
    model::EditorChain chain({around, values});
    const model::Batch batch = text.batch();
    model::ForwardOptions options;
    options.probe = &sites;
    if (around != nullptr || values != nullptr) options.editor = &chain;
    options.cancellation = &cancellation;
    model.forward(batch, options);
}

void read_run(model::Model& model, const std::vector<std::int32_t>& ids, SiteReader& sites, ValueReader* values,
              model::Editor* around, const Cancellation& cancellation) {
    read_run(model, TextInput{text_ids(ids)}, sites, values, around, cancellation);
}

bool attends_predicted(const Site& site) {
    return site.is_self() && site.stack != "encoder";
}

void check_decoder(const model::Model& model, const char* tool, bool with_encoder) {
    if (model.causal() && (with_encoder || !model.config().encoder)) return;
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

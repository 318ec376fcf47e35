// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Values of a pass, handed on as they are computed, so that memory holds one site's at a time. Threads: the compute
// thread.

#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/model/edits/editor.h"
#include "core/model/probe.h"

namespace headscope::model {
class Model;
}
namespace headscope::store {
struct SequenceTokens;
}

namespace headscope::ask {

struct TextInput;

/// Measures the sites that have a matrix.
class SiteReader final : public model::Probe {
public:
    using Take = std::function<void(const model::AttentionRecord& record)>;
    SiteReader(const std::vector<Site>& sites, kernels::StatisticsRequest request, Take take)
        : sites_(&sites), request_(std::move(request)), take_(std::move(take)) {}
    /// weights_request() of each stream's own tokens: of a text, and of the decoder's input where it has one.
    SiteReader(const std::vector<Site>& sites, const store::SequenceTokens& text, Take take);

    bool wants(std::string_view, LayerIndex) const override { return false; }
    void announce(std::string_view, LayerIndex, const at::Tensor&) override {}
    const kernels::StatisticsRequest* request(SiteIndex site) override;
    void measured(const model::AttentionRecord& record) override { take_(record); }

private:
    const std::vector<Site>* sites_;
    kernels::StatisticsRequest request_;
    kernels::StatisticsRequest of_target_, of_cross_;  ///< of a decoder behind an encoder
    Take take_;
};

/// Values after the edits of a pass: the last of its chain.
class ValueReader final : public model::Editor {
public:
    using Take = std::function<void(const model::PointKey& key, const at::Tensor& value)>;
    ValueReader(const std::vector<model::PointKey>& wanted, Take take)
        : wanted_(wanted.begin(), wanted.end()), take_(std::move(take)) {}

    bool edits(const model::PointKey& key) const override { return wanted_.contains(key); }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        take_(place.key, value);
        return value;
    }

private:
    std::set<model::PointKey> wanted_;
    Take take_;
};

/// Indicators of weights of a text of these ids; neither histograms nor thumbnails.
kernels::StatisticsRequest weights_request(const std::vector<std::int32_t>& ids);

/// One pass of a text. `values` and `around`, the edits of the pass, may be null.
void read_run(model::Model& model, const TextInput& text, SiteReader& sites, ValueReader* values, model::Editor* around,
              const Cancellation& cancellation);
/// The same of a text that a model of one stack reads.
void read_run(model::Model& model, const std::vector<std::int32_t>& ids, SiteReader& sites, ValueReader* values,
              model::Editor* around, const Cancellation& cancellation);

/// True for self-attention of the stack that the head reads, whose tokens are those of SequenceTokens::predicted(): not
/// for an encoder that a decoder reads, nor for cross-attention.
bool attends_predicted(const Site& site);

/// Throws usage for models other than decoders, and unless `with_encoder` for decoders that read an encoder's output.
void check_decoder(const model::Model& model, const char* tool, bool with_encoder = false);

/// Throws unsupported for edits of scores: a SiteReader measures weights without them.
void check_scores(const model::Model& model, const model::Editor* around, const char* tool);

}  // namespace headscope::ask

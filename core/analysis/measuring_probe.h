// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/analysis/problems.h"
#include "core/analysis/request.h"
#include "core/analysis/tensor_values.h"
#include "core/base/progress.h"
#include "core/model/probe.h"
#include "core/store/analysis/analysis_header.h"
#include "core/store/analysis/analysis_writer.h"

namespace headscope::analysis {

/// Asks for the statistics of the measured sites and hands everything to the writer as it comes, so that memory holds
/// one site at a time. One probe a batch.
class MeasuringProbe final : public model::Probe {
public:
    /// `sequences`: which sequence each batch row is. Of the request it calls site_done.
    MeasuringProbe(store::AnalysisWriter& writer, Problems& problems, const store::AnalysisHeader& header,
                   const AnalysisRequest& request, const std::vector<std::int64_t>& sequences,
                   const Cancellation& cancellation);

    bool wants(std::string_view name, LayerIndex layer) const override;
    void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) override;
    const kernels::StatisticsRequest* request(SiteIndex site) override;
    void measured(const model::AttentionRecord& record) override;
    Implicit implicit_request(SiteIndex site) override;
    void implicit(const model::ImplicitRecord& record) override;

private:
    bool layer_measured(std::int64_t layer) const;
    bool recorded(std::string_view name, LayerIndex layer) const;
    void write_hidden(std::int64_t boundary, const at::Tensor& value);
    void write_experts(std::int64_t layer, const at::Tensor& weight);
    void write_token_types(LayerIndex layer, const at::Tensor& types);
    void write_branch_weights(LayerIndex layer, const at::Tensor& weights);
    void write_states(const model::AttentionRecord& record);
    void write_parameters(const model::AttentionRecord& record);
    void write_map(const model::AttentionRecord& record, std::int64_t b);
    void write_products(const model::AttentionRecord& record, std::int64_t b);

    store::AnalysisWriter& writer_;
    Problems& problems_;
    const store::AnalysisHeader& header_;
    const AnalysisRequest& request_;
    const std::vector<std::int64_t>& sequences_;
    const Cancellation& cancellation_;
    std::map<std::string, kernels::StatisticsRequest> self_;  ///< by stream: duplicate and induction scores need tokens
    kernels::StatisticsRequest cross_;
    std::string first_boundary_;                                   ///< what announces what the first layer reads
    at::Tensor experts_;                                           ///< "expert_index" of the layer that is computed
    at::Tensor head_embeddings_;                                   ///< of the site that comes next
    std::vector<float> slopes_;                                    ///< "slopes" of the site that comes next
    std::map<std::string, VectorStatistics, std::less<>> states_;  ///< "query", ...: of the site that comes next
};

}  // namespace headscope::analysis

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mixers/mixer.h"
#include "core/model/blocks.h"
#include "core/model/model.h"
#include "core/model/rotary.h"

namespace headscope::model {

/// One block: a mixer with its output projection, and a feed-forward; each with its norm before it (pre-norm) or after
/// the residual sum (post-norm).
struct Layer {
    Norm input_norm;
    std::unique_ptr<mixers::Mixer> mixer;
    Linear output;
    Norm feed_forward_norm;
    FeedForward feed_forward;
    std::int64_t first_site = 0;
};

/// The one stack that every family is computed by: embedding, layers, final norm, head.
class Stack final : public Model {
public:
    /// Checks the whole file against the family's recipe, then reads it; without a precision it reads no weight, and
    /// only the description can be asked for.
    Stack(const checkpoint::Checkpoint& file, std::optional<checkpoint::LoadAs> precision, Progress* progress,
          const Cancellation* cancellation);

    const ModelConfig& config() const override { return config_; }
    const std::vector<Site>& sites() const override { return sites_; }
    std::vector<std::string> mixers() const override;
    const LoadReport& report() const override { return report_; }
    std::int64_t parameters() const override { return parameters_; }
    bool causal() const override { return config_.causal; }
    bool has_head() const override { return head_.there; }
    at::Tensor forward(const Batch& batch, const ForwardOptions& options) override;
    at::Tensor logits(const at::Tensor& hidden_rows, Probe* probe) override;
    std::unique_ptr<Cache> new_cache() const override;

private:
    void assemble(class TensorPlan& plan, TensorNames& names);
    at::Tensor run(const Batch& batch, const ForwardOptions& options);
    at::Tensor run_layer(const Layer& layer, const at::Tensor& hidden, const mixers::StackContext& context,
                         mixers::MixerCache* cache) const;

    ModelConfig config_;
    Embedding embedding_;
    std::optional<Rotary> rotary_;
    std::vector<Layer> layers_;
    Norm final_norm_;
    Head head_;
    std::vector<Site> sites_;
    LoadReport report_;
    std::int64_t parameters_ = 0;
};

}  // namespace headscope::model

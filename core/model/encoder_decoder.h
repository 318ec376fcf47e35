// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/blocks.h"
#include "core/model/build.h"
#include "core/model/model.h"
#include "core/model/tower.h"

namespace headscope::model {

/// A tower that reads the source, and one that reads the target and looks at what the first returned (T5, BART).
/// config() is the decoder's, with the encoder's inside. Layers are numbered through, the encoder's first.
///
/// With a cache, the first batch has `ids` and `target`, those that follow a further piece of `target` alone.
class EncoderDecoder final : public Model {
public:
    /// As Stack's.
    EncoderDecoder(Blueprint blueprint, const checkpoint::Checkpoint& file, std::optional<checkpoint::LoadAs> precision,
                   Progress* progress, const Cancellation* cancellation);

    const ModelConfig& config() const override { return config_; }
    const std::vector<Site>& sites() const override { return sites_; }
    std::vector<std::string> mixers() const override;
    const LoadReport& report() const override { return report_; }
    std::int64_t parameters() const override { return parameters_; }
    bool causal() const override { return true; }
    bool has_head() const override { return head_.there; }
    at::Tensor forward(const Batch& batch, const ForwardOptions& options) override;
    at::Tensor logits(const at::Tensor& hidden_rows, Probe* probe) override;
    std::unique_ptr<Cache> new_cache() const override;

private:
    at::Tensor run(const Batch& batch, const ForwardOptions& options);

    ModelConfig config_;
    Tower encoder_, decoder_;
    Head head_;
    std::vector<Site> sites_;
    LoadReport report_;
    std::int64_t parameters_ = 0;
};

}  // namespace headscope::model

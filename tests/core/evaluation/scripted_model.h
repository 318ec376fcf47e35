// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model whose logits after a token depend on that token alone, by a table: what is expected of a score can be written
// down by hand.

#include "tests/catch_with_torch.h"

#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "core/model/model.h"
#include "core/model/towers/cache.h"

namespace headscope::test {

class ScriptedModel final : public model::Model {
public:
    /// logits [V, V] float32: row i follows token i.
    explicit ScriptedModel(at::Tensor logits, std::int64_t max_positions = 0) : logits_(std::move(logits)) {
        config_.family = "scripted";
        config_.vocabulary = logits_.size(0);
        config_.hidden = 1;
        config_.max_positions = max_positions;
    }
    const model::ModelConfig& config() const override { return config_; }
    const std::vector<Site>& sites() const override { return sites_; }
    std::vector<std::string> mixers() const override { return {}; }
    const model::LoadReport& report() const override { return report_; }
    std::int64_t parameters() const override { return 0; }
    model::Residence residence() const override { return stays; }
    bool causal() const override { return true; }
    bool has_head() const override { return true; }
    at::Tensor forward(const model::Batch& batch, const model::ForwardOptions&) override {
        longest = std::max(longest, batch.ids.size(1));
        ++passes;
        tokens += batch.ids.numel();
        return batch.ids.unsqueeze(2).to(at::kFloat);
    }
    at::Tensor logits(const at::Tensor& rows, model::Probe*) override {
        return logits_.index_select(0, rows.select(1, 0).to(at::kLong)).clone();
    }
    std::unique_ptr<model::Cache> new_cache() const override { return nullptr; }

    void forward_each(const std::vector<Pass>& together, const model::WaitingPlace& place,
                      const Finished& finished) override {
        groups.push_back(together.size());
        Model::forward_each(together, place, finished);
    }

    std::int64_t longest = 0, passes = 0, tokens = 0;
    model::Residence stays = model::Residence::float32;
    std::vector<std::size_t> groups;  ///< passes of each forward_each()

private:
    at::Tensor logits_;
    model::ModelConfig config_;
    std::vector<Site> sites_;
    model::LoadReport report_;
};

}  // namespace headscope::test

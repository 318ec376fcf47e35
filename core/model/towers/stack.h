// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/blocks.h"
#include "core/model/device.h"
#include "core/model/load/build.h"
#include "core/model/load/layer_weights.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/model.h"
#include "core/model/towers/tower.h"
#include "core/model/towers/waiting_tensors.h"

namespace headscope::model {

/// Computes every family: one tower, or one that reads the source and one that reads the target and attends to the
/// first's output (T5, BART); and a head on the last. config() is the last tower's, with the encoder's inside. Layers
/// are numbered through, the encoder's first.
///
/// With two towers and a cache, the first batch has `ids` and `target`, later ones a further piece of `target` alone.
class Stack final : public Model {
public:
    /// Checks the whole file against the blueprint, then reads it; without a precision it reads no weight, and only the
    /// description can be asked for.
    Stack(Blueprint blueprint, const checkpoint::Checkpoint& file, std::optional<checkpoint::LoadAs> precision,
          Residence residence, Progress* progress, const Cancellation* cancellation);
    /// `fill` gives every tensor of the plan, which has been checked, its value.
    Stack(Blueprint blueprint, TensorPlan plan, const std::function<void(TensorPlan&)>& fill);

    const ModelConfig& config() const override { return config_; }
    const std::vector<Site>& sites() const override { return sites_; }
    std::vector<std::string> mixers() const override;
    const LoadReport& report() const override { return report_; }
    std::int64_t parameters() const override { return parameters_; }
    Residence residence() const override { return weights_ ? weights_->residence() : Residence::float32; }
    std::int64_t attention_parameters() const override { return attention_parameters_; }
    std::int64_t embedding_parameters() const override { return embedding_parameters_; }
    bool causal() const override { return config_.causal || encoder_; }
    bool has_head() const override { return head_.there && config_.head == HeadKind::vocabulary; }
    bool has_classes() const override { return head_.there && config_.has_classes(); }
    at::Tensor forward(const Batch& batch, const ForwardOptions& options) override;
    void forward_each(const std::vector<Pass>& passes, const WaitingPlace& place, const Finished& finished) override;
    /// forward() with hidden states on device(): what a loss is made from.
    at::Tensor forward_on_device(const Batch& batch, const ForwardOptions& options);
    at::Tensor logits(const at::Tensor& hidden_rows, Probe* probe) override;
    void to(const at::Device& device) override;
    at::Device device() const override { return device_; }
    /// The same by a function that gives each tensor's counterpart on `device`.
    void to(const at::Device& device, const std::function<at::Tensor(const at::Tensor&)>& counterpart);
    std::unique_ptr<Cache> new_cache() const override;
    /// Drops values computed from the weights.
    void forget() { last_.forget(); }
    /// Tower::expect().
    void expect(std::int64_t tokens) { last_.expect(tokens); }
    /// Loss of the head's logits for hidden rows [N, d]; recorded by autograd if the rows are.
    LossSum loss(const at::Tensor& hidden_rows, const at::Tensor& targets, const HeadLossOptions& options) const {
        return head_.loss(on_device(hidden_rows, device_), targets, options);
    }
    at::Tensor class_logits(const at::Tensor& hidden_rows) const {
        return head_.class_logits(on_device(hidden_rows, device_));
    }
    Inspection inspection() const { return {config_, sites_, report_, parameters_, has_head(), has_classes(), sizes_}; }
    const at::Tensor& head_weight() const { return head_.vocabulary.weight; }
    const Head& head() const { return head_; }
    const Tower& tower() const { return last_; }                              ///< of an encoder-decoder the decoder's
    const Tower* encoder() const { return encoder_ ? &*encoder_ : nullptr; }  ///< null: one tower

protected:
    at::Tensor logits_on_device(const at::Tensor& hidden_rows, Probe* probe) override;

private:
    /// Final hidden states.
    std::vector<WaitingTensors::Slot> run(const std::vector<Pass>& given, WaitingTensors& waiting);
    std::vector<WaitingTensors::Slot> run_towers(const std::vector<Pass>& given, WaitingTensors& waiting);
    void tie_head();

    ModelConfig config_;
    std::optional<Tower> encoder_;
    Tower last_;
    Head head_;
    std::unique_ptr<LayerWeights> weights_;  ///< null: Residence::float32
    std::vector<at::Tensor*> tensors_;       ///< wanted from the file, each once
    bool has_tied_head_ = false;
    at::Device device_ = at::kCPU;
    std::vector<Site> sites_;
    LoadReport report_;
    WeightSizes sizes_;
    std::int64_t parameters_ = 0, attention_parameters_ = 0, embedding_parameters_ = 0;
};

}  // namespace headscope::model

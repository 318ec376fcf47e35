// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// All that is trained of a model in one vector, and the gradients in a second one of the same layout. Fills the places
// that a TensorPlan's parts declared with leaves of autograd that are views into the first, and whose gradients are
// views into the second. Threads: the compute thread.

#include <cstdint>
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/load/tensor_plan.h"
#include "core/model/trainable.h"

namespace headscope::model {

class FlatWeights {
public:
    /// Lays out and fills every tensor of a plan that has been checked: those that are fresh at random from `seed`, the
    /// others from `file`. Heads that a file keeps together are regrouped, packed numbers unpacked; parameters() are as
    /// they are written. A whole tensor that is wanted twice (the table of two towers) is one leaf; errors: unsupported
    /// for a part of one.
    FlatWeights(const TensorPlan& plan, const checkpoint::Checkpoint* file, at::ScalarType type, std::uint64_t seed,
                Progress* progress, const Cancellation* cancellation);

    const at::Tensor& weights() const { return weights_; }
    const at::Tensor& gradients() const { return gradients_; }
    std::int64_t decayed() const { return decayed_; }
    const std::vector<Parameter>& parameters() const { return parameters_; }
    const std::vector<at::Tensor>& leaves() const { return leaves_; }

    /// Moves all. Returns the counterpart of each tensor that a place of the plan had.
    std::map<const c10::TensorImpl*, at::Tensor> to(const at::Device& device);

private:
    /// One tensor of the model: one of the file, or several as rows of one.
    struct Destination {
        std::vector<const TensorPlan::Want*> wants;
        std::vector<at::Tensor*> others;  ///< who else wants it
        std::vector<std::int64_t> shape;
        bool trained = true, decays = true;
        std::int64_t offset = 0;
    };
    static std::vector<Destination> destinations(const TensorPlan& plan);
    void lay_out(std::vector<Destination>& all, at::ScalarType type);
    void place(const Destination& destination, at::ScalarType type);
    at::Tensor stored(const TensorPlan::Want& want, const checkpoint::Checkpoint& file,
                      const Cancellation* cancellation) const;
    void fill(const TensorPlan& plan, const checkpoint::Checkpoint* file, std::uint64_t seed, Progress* progress,
              const Cancellation* cancellation) const;

    at::Tensor weights_, gradients_;
    std::int64_t decayed_ = 0;
    std::vector<Parameter> parameters_;  ///< in the order of the plan's wants
    std::vector<at::Tensor> leaves_;     ///< what autograd records: fused matrices are one
    std::vector<at::Tensor> given_;      ///< the places' other tensors, which are not trained
};

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/gradients.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"
#include "core/model/training_forward.h"

namespace headscope::ask {
namespace {

/// Adds zeros that autograd records.
class GradientTap final : public model::Editor {
public:
    GradientTap(const std::vector<model::PointKey>& places, const RunValues& moved) : places_(places), moved_(moved) {}
    bool edits(const model::PointKey& key) const override {
        return std::find(places_.begin(), places_.end(), key) != places_.end();
    }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        const auto own = moved_.find(place.key);
        const at::Tensor& now = own != moved_.end() ? own->second : value;
        leaves[place.key] = at::zeros_like(now).requires_grad_(true);
        values[place.key] = now.detach();
        return now + leaves[place.key];
    }
    RunValues values, leaves;

private:
    const std::vector<model::PointKey>& places_;
    const RunValues& moved_;
};

}  // namespace

void check_gradients(const model::Model& model) {
    if (model.residence() != model::Residence::float32)
        throw Error(ErrorCode::unsupported, "--weights", "expected float32 for gradients",
                    "found " + std::string(model::name(model.residence())));
}

RunGradients gradients_of(model::Model& model, const TextInput& text, const std::vector<model::PointKey>& places,
                          const Measure& measure, model::Editor* around, const Cancellation& cancellation,
                          const RunValues& moved) {
    check_gradients(model);
    GradientTap tap(places, moved);
    model::EditorChain both({around, &tap});
    const model::TrainingForward training;
    const model::Batch batch = text.batch();
    model::ForwardOptions options;
    options.training = &training;
    options.editor = &both;
    options.cancellation = &cancellation;
    const at::AutoGradMode recording(true);
    const at::Tensor metric = measure.recorded(batch.predicted(), model.forward(batch, options));
    std::vector<model::PointKey> reached;
    std::vector<at::Tensor> leaves;
    for (const auto& [key, leaf] : tap.leaves) {
        reached.push_back(key);
        leaves.push_back(leaf);
    }
    RunGradients found;
    found.metric = metric.item<double>();
    const auto gradients =
        torch::autograd::grad({metric}, leaves, {}, /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                              /*allow_unused=*/true);
    for (std::size_t i = 0; i < reached.size(); ++i)
        found.gradients[reached[i]] = gradients[i].defined() ? gradients[i] : at::zeros_like(leaves[i]).detach();
    found.values = std::move(tap.values);
    return found;
}

}  // namespace headscope::ask

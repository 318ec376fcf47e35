// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/objectives/objective.h"

#include <ATen/core/grad_mode.h>

#include "core/base/error.h"

namespace headscope::model {
namespace {

class TokenLabels : public Objective {
public:
    void check(const ModelConfig&) const override {}

    std::vector<std::string> names() const override { return {"loss"}; }

    std::vector<NamedLoss> losses(Trainable& model, const Batch& batch, const HeadLossOptions& options,
                                  const TrainingForward* training) const override {
        const at::Tensor& read = batch.predicted();
        if (!batch.labels.defined() || batch.labels.sizes() != read.sizes()) {
            throw Error(ErrorCode::usage, "labels", "expected one for each token that the head is asked about",
                        "found " + std::string(batch.labels.defined() ? "another shape" : "none"));
        }
        const at::AutoGradMode recording(training != nullptr);
        const at::Tensor hidden = training ? model.forward(batch, *training) : model.model().forward(batch);
        return {{"loss", model.loss(hidden.flatten(0, 1), batch.labels.flatten(), options)}};
    }
};

class NextToken final : public TokenLabels {
public:
    void check(const ModelConfig& config) const override {
        const auto refuse = [&](const char* found) {
            throw Error(ErrorCode::unsupported, escaped(config.name),
                        "expected a plain decoder to train on the next token (headscope, Llama, Qwen and their kin)",
                        found);
        };
        if (config.encoder) refuse("found an encoder-decoder");
        if (!config.causal) refuse("found an encoder");
    }
};

}  // namespace

std::unique_ptr<Objective> token_labels() {
    return std::make_unique<TokenLabels>();
}

std::unique_ptr<Objective> next_token() {
    return std::make_unique<NextToken>();
}

}  // namespace headscope::model

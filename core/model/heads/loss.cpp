// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/model.h"

namespace headscope::model {
namespace {

constexpr std::int64_t kScoredLogitBytes = 64 << 20;

/// -log softmax of the target in each row; the logits are overwritten, so that no second matrix of that size is made.
at::Tensor cross_entropy(at::Tensor logits, const at::Tensor& targets) {
    const at::Tensor largest = logits.amax(1, true);
    logits.sub_(largest);
    const at::Tensor chosen = logits.gather(1, targets.unsqueeze(1)).squeeze(1);
    return logits.exp_().sum(1).log() - chosen;
}

}  // namespace

void Model::forward_each(const std::vector<Pass>& passes, const WaitingPlace&, const Finished& finished) {
    for (std::size_t i = 0; i < passes.size(); ++i) finished(i, forward(*passes[i].batch, passes[i].options));
}

void Model::to(const at::Device& to) {
    if (to == device()) return;
    throw Error(ErrorCode::unsupported, "device", "expected a model that can be moved", "found one that cannot");
}

std::int64_t Model::logit_rows() const {
    const std::int64_t row = config().head_columns() * static_cast<std::int64_t>(sizeof(float));
    return std::max<std::int64_t>(1, kScoredLogitBytes / row);
}

at::Tensor Model::next_token_loss(const Batch& batch, const at::Tensor& hidden, const LogitRows& rows,
                                  const Cancellation* cancellation) {
    try {
        const c10::InferenceMode inference;
        const at::Tensor& ids = batch.predicted();
        const std::vector<std::int64_t>& lengths = batch.predicted_lengths();
        const std::int64_t sequences = ids.size(0), length = ids.size(1), step = logit_rows();
        at::Tensor loss = at::full({sequences, length}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
        for (std::int64_t s = 0; s < sequences; ++s) {
            const std::int64_t real = lengths.empty() ? length : lengths.at(static_cast<std::size_t>(s));
            for (std::int64_t first = 0; first < real; first += step) {
                if (cancellation) cancellation->check();
                const std::int64_t count = std::min(step, real - first);
                const at::Tensor chunk = logits_on_device(hidden.select(0, s).narrow(0, first, count), nullptr);
                if (rows) rows(s, first, on_processor(chunk));
                const std::int64_t followed = std::min(count, real - 1 - first);
                if (followed <= 0) continue;
                const at::Tensor targets = on_device(ids.select(0, s).narrow(0, first + 1, followed), chunk.device());
                loss.select(0, s)
                    .narrow(0, first, followed)
                    .copy_(cross_entropy(chunk.narrow(0, 0, followed), targets));
            }
        }
        return loss;
    } catch (...) {
        throw current_error("loss");
    }
}

}  // namespace headscope::model

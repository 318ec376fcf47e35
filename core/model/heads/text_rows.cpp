// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/heads/text_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "core/base/error.h"

namespace headscope::model {

at::Tensor mean_over(const at::Tensor& x, const std::vector<std::int64_t>& lengths) {
    if (lengths.empty()) return x.mean(1);
    const at::TensorOptions integers = x.options().dtype(at::kLong);
    const at::Tensor counts = at::tensor(lengths, integers).unsqueeze(1);
    const at::Tensor counted = at::arange(x.size(1), integers).unsqueeze(0).lt(counts).to(x.scalar_type());
    return (x * counted.unsqueeze(2)).sum(1) / counts.to(x.scalar_type());
}

namespace {

/// x [B, L, d] at the last of the first lengths[b] of L.
at::Tensor last_of(const at::Tensor& x, const std::vector<std::int64_t>& lengths) {
    if (lengths.empty()) return x.select(1, x.size(1) - 1);
    const at::TensorOptions integers = x.options().dtype(at::kLong);
    const at::Tensor last = at::tensor(lengths, integers) - 1;
    return x.flatten(0, 1).index_select(0, last + at::arange(x.size(0), integers) * x.size(1));
}

}  // namespace

at::Tensor text_rows(const ModelConfig& config, const at::Tensor& hidden, const std::vector<std::int64_t>& lengths) {
    if (config.text_pooling == TextPooling::first) return hidden.select(1, 0).contiguous();
    if (config.text_pooling == TextPooling::mean) return mean_over(hidden, lengths).contiguous();
    if (config.text_pooling == TextPooling::last) return last_of(hidden, lengths).contiguous();
    throw Error(ErrorCode::unsupported, escaped(config.name),
                "expected a head that reads one state of each text (classifier_pooling bos, cls or mean)",
                "found one whose logits are averaged (late)");
}

at::Tensor text_logits(Model& model, const at::Tensor& hidden, const Batch& batch) {
    const ModelConfig& config = model.config();
    if (config.text_pooling != TextPooling::logits)
        return model.logits(text_rows(config, hidden, batch.lengths)).contiguous();
    const at::Tensor each = model.logits(hidden.flatten(0, 1));
    return mean_over(each.unflatten(0, {hidden.size(0), hidden.size(1)}), batch.lengths).contiguous();
}

}  // namespace headscope::model

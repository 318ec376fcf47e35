// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/head_loss.h"

#include <algorithm>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/base/error.h"

namespace headscope::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kLogitBytes = 16 << 20;

/// The sum with gradients that were made already: backward scales them.
class MadeGradients : public torch::autograd::Function<MadeGradients> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head_weight,
                              const at::Tensor& sum, const at::Tensor& hidden_gradient,
                              const at::Tensor& weight_gradient) {
        static_cast<void>(hidden);
        static_cast<void>(head_weight);
        context->save_for_backward({hidden_gradient, weight_gradient});
        return sum.clone();
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list made = context->get_saved_variables();
        const double factor = outer.at(0).item<double>();
        const auto scaled = [factor](const at::Tensor& gradient) {
            at::Tensor mine = gradient;  // nobody else has it: it may be scaled where it is
            return !mine.defined() || factor == 1.0 ? mine : mine.mul_(factor);
        };
        return {scaled(made.at(0)), scaled(made.at(1)), {}, {}, {}};
    }
};

void check(const at::Tensor& hidden, const at::Tensor& head_weight, const at::Tensor& targets) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "head_loss", "expected " + expected, "found " + found);
    };
    const auto shape = [](const at::Tensor& t) {
        std::string text;
        for (const std::int64_t size : t.sizes()) text += (text.empty() ? "[" : ", ") + std::to_string(size);
        return text.empty() ? std::string("a scalar") : text + "]";
    };
    if (hidden.dim() != 2) refuse("hidden rows [N, d]", shape(hidden));
    if (head_weight.dim() != 2 || head_weight.size(1) != hidden.size(1) || head_weight.size(0) < 1)
        refuse("head weights [V, " + std::to_string(hidden.size(1)) + "]", shape(head_weight));
    if (head_weight.scalar_type() != hidden.scalar_type())
        refuse("one type",
               std::string(at::toString(hidden.scalar_type())) + " and " + at::toString(head_weight.scalar_type()));
    if (targets.dim() != 1 || targets.size(0) != hidden.size(0) || targets.scalar_type() != at::kLong)
        refuse("int64 targets [" + std::to_string(hidden.size(0)) + "]", shape(targets));
    if (targets.numel() == 0) return;
    const std::int64_t low = targets.min().item<std::int64_t>(), high = targets.max().item<std::int64_t>();
    if (low < -1 || high >= head_weight.size(0))
        refuse("targets from -1 to " + std::to_string(head_weight.size(0) - 1), std::to_string(low < -1 ? low : high));
}

/// One pass over the rows in chunks; gradients where they are wanted.
class Chunks {
public:
    Chunks(const at::Tensor& hidden, const at::Tensor& head_weight, const at::Tensor& targets,
           const HeadLossOptions& options)
        : hidden_(hidden.detach()), weight_(head_weight.detach()), targets_(targets), z_loss_(options.z_loss) {
        const std::int64_t row = weight_.size(0) * static_cast<std::int64_t>(sizeof(float));
        step_ = options.row_chunk > 0 ? options.row_chunk : std::max<std::int64_t>(16, kLogitBytes / row);
        wide_ = hidden.scalar_type() == at::kBFloat16 ? at::kFloat : hidden.scalar_type();
        if (!at::GradMode::is_enabled()) return;
        if (hidden.requires_grad()) hidden_gradient = at::empty(hidden_.sizes(), hidden_.options());
        if (head_weight.requires_grad()) weight_gradient = at::zeros(weight_.sizes(), weight_.options().dtype(wide_));
    }

    LossSum run() {
        LossSum result;
        for (std::int64_t first = 0; first < hidden_.size(0); first += step_) {
            chunk(first, std::min(step_, hidden_.size(0) - first), result);
        }
        if (weight_gradient.defined()) weight_gradient = weight_gradient.to(weight_.scalar_type());
        return result;
    }

    at::Tensor hidden_gradient, weight_gradient;

private:
    void chunk(std::int64_t first, std::int64_t count, LossSum& result) {
        const at::Tensor rows = hidden_.narrow(0, first, count), targets = targets_.narrow(0, first, count);
        const at::Tensor counted = targets.ge(0), index = targets.clamp_min(0).unsqueeze(1);
        at::Tensor logits = at::mm(rows, weight_.t()).to(wide_);
        const at::Tensor largest = logits.amax(1, true);
        const at::Tensor chosen = logits.gather(1, index).to(at::kDouble);
        logits.sub_(largest).exp_();
        const at::Tensor total = logits.sum(1, true);
        const at::Tensor normaliser = total.log().to(at::kDouble) + largest;
        const at::Tensor wanted = counted.unsqueeze(1).to(at::kDouble);
        result.cross_entropy += ((normaliser - chosen) * wanted).sum().item<double>();
        result.z_loss += z_loss_ * (normaliser.square() * wanted).sum().item<double>();
        result.rows += counted.sum().item<std::int64_t>();
        if (!hidden_gradient.defined() && !weight_gradient.defined()) return;
        // d/ds_v = p_v (1 + 2 z log Z) - [v is the target]
        logits.mul_(((1.0 + 2.0 * z_loss_ * normaliser) * wanted).to(wide_) / total);
        logits.scatter_add_(1, index, -wanted.to(wide_));
        const at::Tensor gradient = logits.to(rows.scalar_type());
        if (hidden_gradient.defined()) {
            at::Tensor out = hidden_gradient.narrow(0, first, count);
            at::mm_out(out, gradient, weight_);
        }
        if (weight_gradient.defined()) weight_gradient.add_(at::mm(gradient.t(), rows));
    }

    at::Tensor hidden_, weight_, targets_;
    double z_loss_;
    std::int64_t step_ = 0;
    at::ScalarType wide_ = at::kFloat;
};

}  // namespace

LossSum head_loss(const at::Tensor& hidden, const at::Tensor& head_weight, const at::Tensor& targets,
                  const HeadLossOptions& options) {
    check(hidden, head_weight, targets);
    Chunks chunks(hidden, head_weight, targets, options);
    LossSum result;
    {
        const at::NoGradGuard unrecorded;
        result = chunks.run();
        result.sum = at::empty({}, at::kDouble).fill_(result.cross_entropy + result.z_loss);
    }
    if (chunks.hidden_gradient.defined() || chunks.weight_gradient.defined()) {
        result.sum =
            MadeGradients::apply(hidden, head_weight, result.sum, chunks.hidden_gradient, chunks.weight_gradient);
    }
    return result;
}

}  // namespace headscope::model

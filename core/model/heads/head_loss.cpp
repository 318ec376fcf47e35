// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/heads/head_loss.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"

namespace headscope::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kTrainedLogitBytes = 16 << 20;

struct Gradients {
    at::Tensor hidden, weight, bias;  ///< undefined: not wanted
};

/// The sum with gradients that were made already: backward scales them.
class MadeGradients : public torch::autograd::Function<MadeGradients> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias, const at::Tensor& sum, const Gradients& made) {
        static_cast<void>(hidden);
        static_cast<void>(weight);
        static_cast<void>(bias);
        context->save_for_backward({made.hidden, made.weight, made.bias});
        return sum.clone();
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list made = context->get_saved_variables();
        const double factor = outer.at(0).item<double>();
        const auto scaled = [factor](const at::Tensor& gradient) {
            at::Tensor mine = gradient;  // not shared: it may be scaled in place
            return !mine.defined() || factor == 1.0 ? mine : mine.mul_(factor);
        };
        return {scaled(made.at(0)), scaled(made.at(1)), scaled(made.at(2)), {}, {}};
    }
};

void check(const at::Tensor& hidden, const VocabularyMap& map, const at::Tensor& targets) {
    const at::Tensor& weight = map.weight;
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "head_loss", "expected " + expected, "found " + found);
    };
    const auto shape = [](const at::Tensor& t) {
        std::string text;
        for (const std::int64_t size : t.sizes()) text += (text.empty() ? "[" : ", ") + std::to_string(size);
        return text.empty() ? std::string("a scalar") : text + "]";
    };
    if (hidden.dim() != 2) refuse("hidden rows [N, d]", shape(hidden));
    if (weight.dim() != 2 || weight.size(1) != hidden.size(1) || weight.size(0) < 1)
        refuse("head weights [V, " + std::to_string(hidden.size(1)) + "]", shape(weight));
    if (map.bias.defined() && (map.bias.dim() != 1 || map.bias.size(0) != weight.size(0)))
        refuse("a head bias [" + std::to_string(weight.size(0)) + "]", shape(map.bias));
    for (const at::Tensor& part : {weight, map.bias}) {
        if (!part.defined() || part.scalar_type() == hidden.scalar_type()) continue;
        refuse("one type",
               std::string(at::toString(hidden.scalar_type())) + " and " + at::toString(part.scalar_type()));
    }
    if (targets.dim() != 1 || targets.size(0) != hidden.size(0) || targets.scalar_type() != at::kLong)
        refuse("int64 targets [" + std::to_string(hidden.size(0)) + "]", shape(targets));
    if (targets.numel() == 0) return;
    const std::int64_t low = targets.min().item<std::int64_t>(), high = targets.max().item<std::int64_t>();
    if (low < -1 || high >= weight.size(0))
        refuse("targets from -1 to " + std::to_string(weight.size(0) - 1), std::to_string(low < -1 ? low : high));
}

/// True if `target` is the first of the largest of `count` numbers. Most rows of an untrained model end early.
template <class Number>
bool is_first_largest(const Number* row, std::int64_t count, std::int64_t target) {
    constexpr std::int64_t block = 64;
    const auto value = static_cast<double>(row[target]);
    for (std::int64_t first = 0; first < count; first += block) {
        bool other = false;
        const std::int64_t end = std::min(first + block, count);
        for (std::int64_t v = first; v < std::min(end, target); ++v) other |= !(static_cast<double>(row[v]) < value);
        for (std::int64_t v = std::max(first, target); v < end; ++v) other |= !(static_cast<double>(row[v]) <= value);
        if (other) return false;
    }
    return true;
}

/// One pass over the rows in chunks; gradients where they are wanted.
class Chunks {
public:
    Chunks(const at::Tensor& hidden, const VocabularyMap& map, const at::Tensor& targets,
           const HeadLossOptions& options)
        : hidden_(hidden.detach().contiguous()),
          weight_(map.weight.detach().contiguous()),
          targets_(on_processor(targets).contiguous()),
          targets_there_(on_device(targets_, hidden.device())),
          soft_cap_(map.soft_cap),
          z_loss_(options.z_loss) {
        const std::int64_t row = weight_.size(0) * static_cast<std::int64_t>(hidden.element_size());
        step_ = options.row_chunk > 0 ? options.row_chunk : std::max<std::int64_t>(16, kTrainedLogitBytes / row);
        const bool double_precision = hidden.scalar_type() == at::kDouble;
        if (at::GradMode::is_enabled() && hidden.requires_grad())
            hidden_gradient = at::empty(hidden_.sizes(), hidden_.options());
        const at::TensorOptions sums = weight_.options().dtype(double_precision ? at::kDouble : at::kFloat);
        if (at::GradMode::is_enabled() && map.weight.requires_grad())
            weight_gradient = at::zeros(weight_.sizes(), sums);
        if (map.bias.defined()) {
            bias_ = map.bias.detach();
            if (at::GradMode::is_enabled() && map.bias.requires_grad()) bias_gradient = at::zeros(bias_.sizes(), sums);
        }
        single_ = hidden.scalar_type() == at::kFloat && hidden.is_cpu();
        if (single_) {
            right_.emplace(matrix(weight_).transposed());
            if (hidden_gradient.defined()) back_.emplace(matrix(weight_));
        }
    }

    LossSum run() {
        LossSum result;
        const std::int64_t rows = hidden_.size(0);
        loss_.resize(static_cast<std::size_t>(rows));
        normaliser_.resize(loss_.size());
        correct_.resize(loss_.size());
        for (std::int64_t first = 0; first < rows; first += step_) {
            chunk(first, std::min(step_, rows - first));
        }
        const std::int64_t* target = targets_.const_data_ptr<std::int64_t>();
        for (std::size_t n = 0; n < loss_.size(); ++n) {
            result.cross_entropy.add(loss_[n]);
            result.z_loss += z_loss_ * normaliser_[n] * normaliser_[n];
            result.rows += target[n] >= 0 ? 1 : 0;
            result.correct += correct_[n];
        }
        if (weight_gradient.defined()) weight_gradient = weight_gradient.to(weight_.scalar_type());
        if (bias_gradient.defined()) bias_gradient = bias_gradient.to(weight_.scalar_type());
        return result;
    }

    bool records() const { return hidden_gradient.defined() || weight_gradient.defined() || bias_gradient.defined(); }

    at::Tensor hidden_gradient, weight_gradient, bias_gradient;

private:
    static kernels::MatrixView matrix(const at::Tensor& x) {
        return {x.const_data_ptr<float>(), x.size(0), x.size(1), x.size(1), 1};
    }

    void chunk(std::int64_t first, std::int64_t count) {
        const at::Tensor rows = hidden_.narrow(0, first, count);
        at::Tensor logits;
        if (single_) {
            logits = at::empty({count, weight_.size(0)}, rows.options());
            kernels::multiply(matrix(rows), *right_, {logits.mutable_data_ptr<float>(), logits.size(1)});
        } else {
            logits = at::mm(rows, weight_.t());
        }
        if (bias_.defined()) logits.add_(bias_);
        const bool by_kernel = hidden_.scalar_type() != at::kDouble && in_kernel_memory(logits);
        // As Head does: what follows the map is computed in float32.
        if (logits.scalar_type() == at::kBFloat16 && (soft_cap_ > 0 || !by_kernel)) logits = logits.to(at::kFloat);
        at::Tensor cap;  // tanh(x / c)
        if (soft_cap_ > 0) {
            cap = logits.div(soft_cap_).tanh_();
            logits = cap * soft_cap_;
        }
        count_correct(logits, first);
        if (by_kernel) {
            kernels::cross_entropy({count, logits.size(1), element_type(logits), logits.mutable_data_ptr(),
                                    targets_.const_data_ptr<std::int64_t>() + first, z_loss_, records(),
                                    loss_.data() + first, normaliser_.data() + first},
                                   kernel_device(logits));
        } else {
            plain_cross_entropy(logits, first);
        }
        if (!records()) return;
        if (cap.defined()) logits.mul_(cap.square_().neg_().add_(1));  // d/dx c tanh(x / c) = 1 - tanh^2
        add_gradients(rows, logits.to(hidden_.scalar_type()), first);
    }

    void count_correct(const at::Tensor& logits, std::int64_t first) {
        if (!logits.is_cpu()) {
            const at::Tensor said = logits.argmax(1).eq(targets_there_.narrow(0, first, logits.size(0)));
            const at::Tensor flags = on_processor(said.to(at::kByte)).contiguous();
            std::copy_n(flags.const_data_ptr<std::uint8_t>(), flags.numel(), correct_.data() + first);
            return;
        }
        const std::int64_t* target = targets_.const_data_ptr<std::int64_t>() + first;
        const std::int64_t columns = logits.size(1);
        AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, logits.scalar_type(), "count_correct", [&] {
            const scalar_t* rows = logits.const_data_ptr<scalar_t>();
            kernels::parallel_for(logits.size(0), [&](std::int64_t n, int) {
                const bool said = target[n] >= 0 && is_first_largest(rows + n * columns, columns, target[n]);
                correct_[static_cast<std::size_t>(first + n)] = said ? 1 : 0;
            });
        });
    }

    /// The same as kernels::cross_entropy for float64, and for float32 on devices whose memory kernels do not read.
    void plain_cross_entropy(const at::Tensor& logits, std::int64_t first) {
        const at::Tensor targets = targets_there_.narrow(0, first, logits.size(0));
        const at::Tensor counted = targets.ge(0).to(logits.scalar_type()), index = targets.clamp_min(0).unsqueeze(1);
        const at::Tensor chosen = logits.gather(1, index).squeeze(1), largest = logits.amax(1, true);
        logits.sub_(largest).exp_();
        const at::Tensor total = logits.sum(1), normaliser = (total.log() + largest.squeeze(1)) * counted;
        const at::Tensor loss = (normaliser - chosen) * counted;
        const auto keep = [first](const at::Tensor& numbers, std::vector<double>& into) {
            const at::Tensor plain = on_processor(numbers).to(at::kDouble).contiguous();
            std::copy_n(plain.const_data_ptr<double>(), plain.numel(), into.data() + first);
        };
        keep(loss, loss_);
        keep(normaliser, normaliser_);
        // d/ds_v = p_v (1 + 2 z log Z) - [v is the target]
        logits.mul_(((1.0 + 2.0 * z_loss_ * normaliser) * counted / total).unsqueeze(1));
        logits.scatter_add_(1, index, -counted.unsqueeze(1));
    }

    void add_gradients(const at::Tensor& rows, const at::Tensor& gradient, std::int64_t first) {
        if (hidden_gradient.defined()) {
            at::Tensor out = hidden_gradient.narrow(0, first, rows.size(0));
            if (single_)
                kernels::multiply(matrix(gradient), *back_, {out.mutable_data_ptr<float>(), out.size(1)});
            else
                at::mm_out(out, gradient, weight_);
        }
        if (bias_gradient.defined()) bias_gradient.add_(gradient.sum(0, false, bias_gradient.scalar_type()));
        if (!weight_gradient.defined()) return;
        if (single_) {
            kernels::ProductTarget target{weight_gradient.mutable_data_ptr<float>(), weight_gradient.size(1)};
            target.accumulate = true;
            kernels::multiply(matrix(gradient).transposed(), matrix(rows), target);
        } else {
            weight_gradient.add_(at::mm(gradient.t(), rows));
        }
    }

    at::Tensor hidden_, weight_, bias_;
    at::Tensor targets_, targets_there_;  ///< on the processor, and where the rows are
    double soft_cap_, z_loss_;
    std::int64_t step_ = 0;
    bool single_ = false;
    std::optional<kernels::PackedRight> right_, back_;
    std::vector<double> loss_, normaliser_;  // by row
    std::vector<std::uint8_t> correct_;
};

/// Adds the rows' losses, [N] float64.
void add_rows(const at::Tensor& rows, LossSum& result) {
    const at::Tensor losses = on_processor(rows.detach()).contiguous();
    const double* loss = losses.const_data_ptr<double>();
    for (std::int64_t n = 0; n < losses.numel(); ++n) result.cross_entropy.add(loss[n]);
}

}  // namespace

LossSum head_loss(const at::Tensor& hidden, const VocabularyMap& map, const at::Tensor& targets,
                  const HeadLossOptions& options) {
    check(hidden, map, targets);
    Chunks chunks(hidden, map, targets, options);
    LossSum result;
    {
        const at::NoGradGuard unrecorded;
        result = chunks.run();
        result.sum = at::empty({}, at::kDouble).fill_(result.cross_entropy.value() + result.z_loss);
    }
    if (chunks.records()) {
        result.sum =
            MadeGradients::apply(hidden, map.weight, std::optional<at::Tensor>(map.bias), result.sum,
                                 Gradients{chunks.hidden_gradient, chunks.weight_gradient, chunks.bias_gradient});
    }
    return result;
}

LossSum squared_error(const at::Tensor& said, const at::Tensor& values) {
    if (said.dim() != 2 || said.size(1) != 1 || !values.defined() || values.dim() != 1 ||
        values.size(0) != said.size(0)) {
        throw Error(ErrorCode::usage, "squared_error", "expected a head of one class, and a number for each text",
                    "found other shapes");
    }
    LossSum result;
    const at::Tensor squares =
        (said.squeeze(1).to(at::kDouble) - on_device(values.to(at::kDouble), said.device())).square();
    result.sum = squares.sum();
    add_rows(squares, result);
    result.rows = values.size(0);
    return result;
}

LossSum span_loss(const at::Tensor& said, const std::vector<std::int64_t>& lengths, const at::Tensor& given,
                  const HeadLossOptions& options) {
    // Two numbers of each token: autograd brings the gradients back to another device.
    const at::Tensor logits = on_processor(said), labels = on_processor(given);
    if (logits.dim() != 3 || logits.size(2) != 2 || !labels.defined() || labels.dim() != 2 || labels.size(1) != 2 ||
        labels.size(0) != logits.size(0)) {
        throw Error(ErrorCode::usage, "span_loss", "expected two logits of each token, and two tokens for each text",
                    "found other shapes");
    }
    const std::int64_t tokens = logits.size(1);
    const at::Tensor counts =
        lengths.empty() ? at::full({logits.size(0)}, tokens, at::kLong) : at::tensor(lengths, at::kLong);
    if (labels.lt(0).logical_or(labels.ge(counts.unsqueeze(1))).any().item<bool>())
        throw Error(ErrorCode::limit, "labels", "expected tokens of their text", "found others");
    const at::Tensor padding = at::arange(tokens, at::kLong).unsqueeze(0).ge(counts.unsqueeze(1)).unsqueeze(1);
    const at::Tensor each = logits.to(at::kDouble)
                                .transpose(1, 2)
                                .masked_fill(padding, -std::numeric_limits<double>::infinity());  // [B, 2, L]
    const at::Tensor normalizer = at::logsumexp(each, 2);
    const at::Tensor rows = (normalizer - each.gather(2, labels.unsqueeze(2)).squeeze(2)).sum(1) / 2;
    const at::Tensor loss = rows.sum();
    LossSum result;
    add_rows(rows, result);
    result.sum = loss;
    if (options.z_loss > 0) {
        const at::Tensor z_loss = normalizer.square().sum() * (options.z_loss / 2);
        result.z_loss = z_loss.item<double>();
        result.sum = loss + z_loss;
    }
    result.rows = logits.size(0);
    result.correct = each.argmax(2).eq(labels).all(1).sum().item<std::int64_t>();
    return result;
}

}  // namespace headscope::model

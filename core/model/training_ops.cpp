// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/training_ops.h"

#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/model/device.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"

namespace headscope::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

std::int64_t rows_of(const at::Tensor& x) {
    return x.numel() / x.size(-1);
}

at::Tensor flat_rows(const at::Tensor& x) {
    return x.reshape({rows_of(x), x.size(-1)}).contiguous();
}

at::Tensor float_like(const at::Tensor& x, at::IntArrayRef sizes) {
    return at::empty(sizes, x.options().dtype(at::kFloat));
}

kernels::MatrixView matrix(const at::Tensor& x) {
    return {x.const_data_ptr<float>(), x.size(0), x.size(1), x.stride(0), x.stride(1)};
}

/// One stride is 1 and rows do not overlap.
at::Tensor as_matrix(const at::Tensor& x) {
    return x.stride(0) == 1 || x.stride(1) == 1 ? x : x.contiguous();
}

/// left right as a new matrix; bfloat16 by LibTorch, whose products of that type are at the processor's speed.
at::Tensor product(const at::Tensor& left, const at::Tensor& right) {
    if (left.scalar_type() != at::kFloat) return at::mm(left, right);
    at::Tensor result = at::empty({left.size(0), right.size(1)}, left.options());
    kernels::multiply(matrix(as_matrix(left)), matrix(as_matrix(right)),
                      {result.mutable_data_ptr<float>(), result.stride(0)});
    return result;
}

class LinearFunction : public Function<LinearFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias) {
        const at::Tensor rows = flat_rows(x);
        std::vector<std::int64_t> shape = x.sizes().vec();
        shape.back() = weight.size(0);
        at::Tensor result;
        if (x.scalar_type() == at::kFloat) {
            result = at::empty({rows.size(0), weight.size(0)}, rows.options());
            kernels::ProductTarget target{result.mutable_data_ptr<float>(), result.stride(0)};
            const at::Tensor row = bias ? bias->contiguous() : at::Tensor();
            if (bias) target.bias = row.const_data_ptr<float>();
            kernels::multiply(matrix(rows), matrix(as_matrix(weight)).transposed(), target);
        } else {
            result = at::linear(rows, weight, bias);
        }
        context->save_for_backward({rows, weight});
        context->saved_data["bias"] = bias && bias->requires_grad();
        context->saved_data["shape"] = x.sizes().vec();
        return result.view(shape);
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const at::Tensor &rows = saved.at(0), &weight = saved.at(1);
        const at::Tensor dy = flat_rows(outer.at(0));
        at::Tensor dx, d_weight, d_bias;
        if (context->needs_input_grad(0)) dx = product(dy, weight).view(context->saved_data["shape"].toIntVector());
        if (context->needs_input_grad(1)) d_weight = product(dy.t(), rows);
        if (context->saved_data["bias"].toBool()) {
            at::Tensor sums = float_like(dy, {dy.size(1)});
            kernels::column_sums(dy.const_data_ptr(), element_type(dy), dy.size(0), dy.size(1),
                                 sums.mutable_data_ptr<float>());
            d_bias = sums.to(dy.scalar_type());
        }
        return {dx, d_weight, d_bias};
    }
};

class RmsNormFunction : public Function<RmsNormFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gain, double epsilon,
                              double gain_offset) {
        const at::Tensor rows = x.contiguous(), weight = gain.contiguous();
        const at::Tensor inverse = float_like(x, {rows_of(x)});
        at::Tensor y = at::empty(rows.sizes(), rows.options());
        kernels::rms_norm(norm_of(rows, weight, inverse, epsilon, gain_offset), y.mutable_data_ptr(),
                          kernel_device(rows));
        context->save_for_backward({rows, weight, inverse});
        context->saved_data["epsilon"] = epsilon;
        context->saved_data["gain_offset"] = gain_offset;
        return y;
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const at::Tensor &x = saved.at(0), &gain = saved.at(1), &inverse = saved.at(2);
        const at::Tensor dy = outer.at(0).contiguous();
        at::Tensor dx = at::empty(x.sizes(), x.options()), d_gain;
        if (context->needs_input_grad(1)) d_gain = float_like(x, {x.size(-1)});
        kernels::rms_norm_backward(norm_of(x, gain, inverse, context->saved_data["epsilon"].toDouble(),
                                           context->saved_data["gain_offset"].toDouble()),
                                   dy.const_data_ptr(), nullptr, dx.mutable_data_ptr(),
                                   d_gain.defined() ? d_gain.mutable_data_ptr<float>() : nullptr, kernel_device(x));
        return {dx, d_gain.defined() ? d_gain.to(x.scalar_type()) : d_gain, {}, {}};
    }

private:
    static kernels::RmsNorm norm_of(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& inverse,
                                    double epsilon, double gain_offset) {
        return {rows_of(x),
                x.size(-1),
                element_type(x),
                x.const_data_ptr(),
                gain.const_data_ptr(),
                epsilon,
                gain_offset,
                inverse.mutable_data_ptr<float>()};
    }
};

class GatedSiluFunction : public Function<GatedSiluFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
        const at::Tensor rows = gate_up.contiguous();
        std::vector<std::int64_t> shape = rows.sizes().vec();
        shape.back() /= 2;
        at::Tensor y = at::empty(shape, rows.options());
        kernels::gated_silu(rows.const_data_ptr(), element_type(rows), rows_of(rows), shape.back(),
                            y.mutable_data_ptr(), kernel_device(rows));
        context->save_for_backward({rows});
        return y;
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const at::Tensor rows = context->get_saved_variables().at(0), dy = outer.at(0).contiguous();
        at::Tensor result = at::empty(rows.sizes(), rows.options());
        kernels::gated_silu_backward(rows.const_data_ptr(), dy.const_data_ptr(), element_type(rows), rows_of(rows),
                                     dy.size(-1), result.mutable_data_ptr(), kernel_device(rows));
        return {result};
    }
};

class ConvolutionFunction : public Function<ConvolutionFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias, bool plain) {
        const at::Tensor rows = x.stride(2) == 1 && x.stride(0) == x.size(1) * x.stride(1) ? x : x.contiguous();
        const at::Tensor taps = weight.contiguous(), offset = bias ? bias->contiguous() : at::Tensor();
        at::Tensor y = at::empty(x.sizes(), x.options());
        kernels::short_convolution(convolution_of(rows, taps, offset, plain), y.mutable_data_ptr(),
                                   kernel_device(rows));
        context->save_for_backward({rows, taps, offset});
        context->saved_data["plain"] = plain;
        return y;
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list saved = context->get_saved_variables();
        const at::Tensor &x = saved.at(0), &weight = saved.at(1), &bias = saved.at(2);
        const at::Tensor dy = outer.at(0).contiguous();
        at::Tensor dx, d_weight, d_bias;
        if (context->needs_input_grad(0)) dx = at::empty(x.sizes(), x.options());
        if (context->needs_input_grad(1)) d_weight = float_like(weight, weight.sizes());
        if (bias.defined() && context->needs_input_grad(2)) d_bias = float_like(bias, bias.sizes());
        const auto floats = [](const at::Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; };
        kernels::short_convolution_backward(convolution_of(x, weight, bias, context->saved_data["plain"].toBool()),
                                            dy.const_data_ptr(), dx.defined() ? dx.mutable_data_ptr() : nullptr,
                                            floats(d_weight), floats(d_bias), kernel_device(x));
        const auto of_type = [&x](const at::Tensor& t) { return t.defined() ? t.to(x.scalar_type()) : t; };
        return {dx, of_type(d_weight), of_type(d_bias), {}};
    }
};

class RotationFunction : public Function<RotationFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& heads, const at::Tensor& cosine,
                              const at::Tensor& sine, std::int64_t turned, bool interleaved) {
        const at::Tensor cosines = cosine.contiguous(), sines = sine.contiguous();
        context->save_for_backward({cosines, sines});
        context->saved_data["turned"] = turned;
        context->saved_data["interleaved"] = interleaved;
        return turn(heads, cosines, sines, turned, interleaved, false);
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const tensor_list tables = context->get_saved_variables();
        return {turn(outer.at(0), tables.at(0), tables.at(1), context->saved_data["turned"].toInt(),
                     context->saved_data["interleaved"].toBool(), true),
                {},
                {},
                {},
                {}};
    }

private:
    static at::Tensor turn(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine,
                           std::int64_t turned, bool interleaved, bool backward) {
        const std::int64_t length = heads.size(1), size = heads.size(3), width = heads.size(2) * size;
        // Heads together, and a batch's rows as far apart as its neighbours': true of parts of a product's result.
        const bool rows = heads.stride(3) == 1 && heads.stride(2) == size &&
                          (heads.size(0) == 1 || heads.stride(0) == length * heads.stride(1));
        const at::Tensor x = rows ? heads : heads.contiguous();
        at::Tensor y = at::empty(heads.sizes(), heads.options());
        kernels::Rotation rotation;
        rotation.rows = heads.size(0) * length;
        rotation.heads = heads.size(2);
        rotation.size = size;
        rotation.turned = turned;
        rotation.positions = length;
        rotation.type = element_type(heads);
        rotation.interleaved = interleaved;
        rotation.cosine = cosine.const_data_ptr();
        rotation.sine = sine.const_data_ptr();
        rotation.x = x.const_data_ptr();
        rotation.row_stride = x.stride(1);
        rotation.y = y.mutable_data_ptr();
        rotation.y_stride = width;
        rotation.backward = backward;
        kernels::rotate(rotation, kernel_device(heads));
        return y;
    }
};

class EmbeddingFunction : public Function<EmbeddingFunction> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& ids) {
        context->save_for_backward({ids.contiguous()});
        context->saved_data["shape"] = table.sizes().vec();
        return at::embedding(table, ids);
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const at::Tensor ids = context->get_saved_variables().at(0), dy = outer.at(0).contiguous();
        at::Tensor result = at::zeros(context->saved_data["shape"].toIntVector(), dy.options());
        kernels::add_rows_by_id(ids.const_data_ptr<std::int64_t>(), ids.numel(), dy.const_data_ptr(), element_type(dy),
                                dy.size(-1), result.mutable_data_ptr());
        return {result, {}};
    }
};

/// True if second starts where first's heads end, in the same rows of the same memory.
bool side_by_side(const at::Tensor& first, const at::Tensor& second) {
    return first.is_alias_of(second) && first.strides() == second.strides() &&
           second.storage_offset() == first.storage_offset() + first.size(2) * first.stride(2) &&
           first.stride(1) >= (first.size(2) + second.size(2)) * first.stride(2);
}

class SplitFunction : public Function<SplitFunction> {
public:
    static tensor_list forward(AutogradContext* context, const at::Tensor& heads, std::int64_t count) {
        context->saved_data["count"] = count;
        context->saved_data["shape"] = heads.sizes().vec();
        return {heads.narrow(2, 0, count), heads.narrow(2, count, heads.size(2) - count)};
    }

    static tensor_list backward(AutogradContext* context, tensor_list outer) {
        const std::vector<std::int64_t> shape = context->saved_data["shape"].toIntVector();
        const at::Tensor &first = outer.at(0), &second = outer.at(1);
        if (first.defined() && second.defined()) {
            if (side_by_side(first, second)) return {first.as_strided(shape, first.strides()), {}};
            return {at::cat({first, second}, 2), {}};
        }
        const at::Tensor& given = first.defined() ? first : second;
        if (!given.defined()) return {{}, {}};
        const std::int64_t count = context->saved_data["count"].toInt();
        at::Tensor result = at::zeros(shape, given.options());
        (first.defined() ? result.narrow(2, 0, count) : result.narrow(2, count, shape.at(2) - count)).copy_(given);
        return {result, {}};
    }
};

}  // namespace

bool recorded(const at::Tensor& x) {
    return at::GradMode::is_enabled() && x.defined() && x.requires_grad();
}

bool trains_by_kernel(const at::Tensor& x) {
    return recorded(x) && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.numel() > 0;
}

bool fused(const at::Tensor& x) {
    return trains_by_kernel(x) && in_kernel_memory(x);
}

bool fused_on_processor(const at::Tensor& x) {
    return trains_by_kernel(x) && x.is_cpu();
}

kernels::ElementType element_type(const at::Tensor& x) {
    return x.scalar_type() == at::kFloat ? kernels::ElementType::float32 : kernels::ElementType::bfloat16;
}

at::Tensor trained_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return LinearFunction::apply(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

at::Tensor trained_rms_norm(const at::Tensor& x, const at::Tensor& gain, double epsilon, double gain_offset) {
    return RmsNormFunction::apply(x, gain, epsilon, gain_offset);
}

at::Tensor trained_gated_silu(const at::Tensor& gate_up) {
    return GatedSiluFunction::apply(gate_up);
}

at::Tensor trained_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool plain) {
    return ConvolutionFunction::apply(x, weight, std::optional<at::Tensor>(bias), plain);
}

kernels::ShortConvolution convolution_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                         bool plain) {
    kernels::ShortConvolution work{x.size(0), x.size(1), x.size(2), weight.size(1)};
    work.type = element_type(x);
    work.x = x.const_data_ptr();
    work.row_stride = x.stride(1);
    work.weight = weight.const_data_ptr();
    work.bias = bias.defined() ? bias.const_data_ptr() : nullptr;
    work.plain = plain;
    return work;
}

at::Tensor trained_rotation(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine,
                            std::int64_t turned, bool interleaved) {
    return RotationFunction::apply(heads, cosine, sine, turned, interleaved);
}

at::Tensor trained_embedding(const at::Tensor& table, const at::Tensor& ids) {
    return EmbeddingFunction::apply(table, ids);
}

std::pair<at::Tensor, at::Tensor> split_heads(const at::Tensor& heads, std::int64_t count) {
    if (!recorded(heads)) return {heads.narrow(2, 0, count), heads.narrow(2, count, heads.size(2) - count)};
    const tensor_list parts = SplitFunction::apply(heads, count);
    return {parts.at(0), parts.at(1)};
}

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Shared by the operators of torch.ops.headscope: reading of arguments, the schema of a ScoreRule, checks of tensors.

#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/score_rule.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels {

/// The arguments of a schema that rule_of() reads.
inline constexpr const char* kRuleSchema =
    "float? scale=None, bool causal=True, int query_offset=0, int window_left=-1, int window_right=-1, "
    "int first_keys=0, Tensor? slopes=None, Tensor? distance_bias=None, int bias_origin=0, "
    "str beyond_table=\"clamp\", float soft_cap=0.0, Tensor? sink_logits=None, Tensor? block_visible=None, "
    "int block_size=0, Tensor? query_length=None, Tensor? key_begin=None, Tensor? key_length=None, "
    "str normaliser=\"softmax\", Tensor? offsets=None, str offset_form=\"per_length\"";

/// The arguments of one call on the dispatcher's stack, by name.
class Arguments {
public:
    Arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
        : schema_(op.schema()), first_(stack.size() - schema_.arguments().size()), stack_(stack) {}

    const c10::IValue& operator[](const char* name) const {
        const auto index = schema_.argumentIndexWithName(name);
        TORCH_INTERNAL_ASSERT(index.has_value(), name);
        return stack_[first_ + static_cast<std::size_t>(*index)];
    }
    at::Tensor tensor(const char* name) const { return (*this)[name].toTensor(); }
    bool flag(const char* name) const { return (*this)[name].toBool(); }
    std::int64_t integer(const char* name) const { return (*this)[name].toInt(); }
    double number(const char* name) const { return (*this)[name].toDouble(); }
    std::string word(const char* name) const { return std::string((*this)[name].toStringView()); }

    /// An optional tensor's values, row by row; empty for None.
    template <typename Value>
    std::vector<Value> values(const char* name, std::int64_t dimensions) const {
        if ((*this)[name].isNone()) return {};
        const at::Tensor given = tensor(name);
        TORCH_CHECK_VALUE(given.dim() == dimensions, "[", name, "] expected ", dimensions, " dimensions; found ",
                          given.dim());
        TORCH_CHECK_VALUE(given.is_cpu() || given.is_cuda(), "[", name,
                          "] expected a tensor of the CPU or of a GPU; found one on ", given.device());
        const at::Tensor flat = given.detach().cpu().to(c10::CppTypeToScalarType<Value>::value).contiguous();
        const Value* data = flat.const_data_ptr<Value>();
        return std::vector<Value>(data, data + flat.numel());
    }

private:
    const c10::FunctionSchema& schema_;
    std::size_t first_;
    const torch::jit::Stack& stack_;
};

/// Checks of shapes, types and devices that need no data; Meta runs them too.
void check_tensors(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

ScoreRule rule_of(const Arguments& a, std::int64_t batch, std::int64_t heads, std::int64_t size);

/// A call of a kernel on operands of a tensor's device. Waits for the stream that makes them, and the numbers that
/// LibTorch may fill results with: kernels run on the default stream, and return when they are done. Refuses a GPU that
/// they do not run on; the thread's GPU, which they choose, is restored.
class KernelCall {
public:
    explicit KernelCall(const at::Tensor& query);

private:
    c10::OptionalDeviceGuard device_;
};

TensorView view_of(const at::Tensor& tensor);
at::Tensor with_unit_stride(const at::Tensor& tensor);

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/attention.h"

#include "kernels/reference/dense.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/statistics.h"

namespace headscope::kernels {
namespace reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void write_output(const at::Tensor& result, std::int64_t b, OutputView output) {
    const std::int64_t heads = result.size(0), queries = result.size(1), size = result.size(2);
    at::Tensor target = at::from_blob(output.data + b * output.batch_stride, {heads, queries, size},
                                      {output.head_stride, output.row_stride, 1}, at::kFloat);
    target.copy_(result);
}

}  // namespace

at::Tensor sequence_of(const TensorView& view, std::int64_t b, std::int64_t heads) {
    const bool single = view.type == ElementType::float32;
    const std::size_t bytes = single ? sizeof(float) : sizeof(std::uint16_t);
    auto* data =
        static_cast<char*>(const_cast<void*>(view.data)) + static_cast<std::size_t>(b * view.batch_stride) * bytes;
    const at::Tensor heads_of_view =
        at::from_blob(data, {view.heads, view.length, view.size}, {view.head_stride, view.row_stride, 1},
                      single ? at::kFloat : at::kBFloat16);
    return heads_of_view.to(at::kDouble).repeat_interleave(heads / view.heads, 0);
}

DenseAttention dense_attention(const AttentionInput& input, std::int64_t b) {
    const ScoreRule& rule = *input.rule;
    const std::int64_t heads = input.query.heads, queries = input.query.length, keys = input.key.length;
    const at::Tensor query = sequence_of(input.query, b, heads).unsqueeze(0);
    const at::Tensor key = sequence_of(input.key, b, heads).unsqueeze(0);
    const DenseMatrix found = dense_matrix(query, key, rule, {}, b);
    const Positions places = positions_of(rule, queries, keys);
    DenseAttention dense;
    dense.bounds = sequence_bounds(rule, b, queries, keys);
    dense.query_position = places.query;
    dense.key_position = places.key;
    dense.allowed = found.allowed.squeeze(0);
    dense.score = found.score.squeeze(0).masked_fill(dense.allowed.logical_not(), -kInfinity);
    dense.weight = found.weight.squeeze(0);
    dense.row_constant = at::where(dense.allowed.any(-1), found.row_constant.squeeze(0), kInfinity);
    dense.sink_share = found.sink_share.defined() ? found.sink_share.squeeze(0) : at::zeros_like(dense.row_constant);
    const at::Tensor kept = dropout_factors(rule, b, 1, heads, queries, keys);
    if (kept.defined()) dense.kept = kept.squeeze(0);
    return dense;
}

}  // namespace reference

void attention_reference(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                         Statistics* statistics) {
    check_attention(input);
    if (request != nullptr) check_statistics(input, *request);
    try {
        if (request != nullptr) prepare_statistics(input, *request, *statistics);
        for (std::int64_t b = 0; b < input.query.batch; ++b) {
            check_cancelled(input.cancel);
            const reference::DenseAttention dense = reference::dense_attention(input, b);
            if (output.data != nullptr) {
                const at::Tensor value = reference::sequence_of(input.value, b, input.query.heads);
                reference::write_output(at::matmul(dense.weight, value), b, output);
            }
            if (request != nullptr) reference::measure_sequence(input, *request, dense, b, *statistics);
        }
    } catch (const c10::Error& error) {
        throw Error("reference attention", "memory for whole float64 matrices", error.what_without_backtrace());
    }
}

}  // namespace headscope::kernels

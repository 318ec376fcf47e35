// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the operators' rows of kernels/operators.h.
#include "kernels/attention_backward.h"

#include <initializer_list>
#include <string>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/operators.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

void check(const AttentionInput& input, const SoftmaxRows& rows) {
    check_attention(input);
    const Normaliser normaliser = input.rule->normaliser;
    if (!traits_of(normaliser).trains())
        throw Error("normaliser", normaliser_list(/*training=*/true) + ": the others have no fused backward pass",
                    normaliser_name(normaliser));
    if (input.rule->far_distance >= 0)
        throw Error("far distance", "none where there is a backward pass", std::to_string(input.rule->far_distance));
    if (rows.shift == nullptr || rows.factor == nullptr) throw Error("rows", "room for two numbers a row", "null");
}

void check_own_memory(const AttentionInput& input, const char* where, std::initializer_list<const void*> results) {
    for (const void* data : results) {
        if (data != nullptr && (data == input.query.data || data == input.key.data || data == input.value.data))
            throw Error(where, "memory of its own", "an input's");
    }
}

void check_like_output(const AttentionInput& input, const TensorView& view, const char* where) {
    const bool fits = view.data != nullptr && view.batch == input.query.batch && view.heads == input.query.heads &&
                      view.length == input.query.length && view.size == input.value.size;
    if (!fits) throw Error(where, "[batch, heads, queries, value size] as the output has", "another shape, or no data");
}

}  // namespace

void attention_forward(const AttentionInput& input, const MutableView& output, const SoftmaxRows& rows) {
    check(input, rows);
    check_own_memory(input, "output", {output.data});
    if (output.data == nullptr) throw Error("output", "a place for it", "null");
    kAttentionForward(input.query.device, input, output, rows);
}

void attention_backward(const AttentionInput& input, const TensorView& output, const TensorView& output_gradient,
                        const SoftmaxRows& rows, const AttentionGradients& gradients) {
    check(input, rows);
    check_like_output(input, output, "output");
    check_like_output(input, output_gradient, "output gradient");
    if (gradients.sinks != nullptr && input.rule->sink_logits.empty())
        throw Error("sinks", "a rule with learned sinks where their gradient is requested", "one without");
    if (gradients.distance_bias != nullptr && input.rule->bias_length == 0)
        throw Error("distance_bias", "a rule with biases by distance where their gradient is wanted", "one without");
    if (gradients.offsets != nullptr && input.rule->offsets.empty())
        throw Error("offsets", "a rule with offsets where their gradient is wanted", "one without");
    if (gradients.blocks != nullptr) {
        if (input.rule->blocks.block_size == 0)
            throw Error("blocks", "a rule with visible blocks where their gradient is wanted", "one without");
        if (input.rule->normaliser != Normaliser::softmax || input.rule->soft_cap > 0.0)
            throw Error("blocks", "a softmax without a soft cap where the gradient of blocks is wanted",
                        input.rule->soft_cap > 0.0 ? "a soft cap" : normaliser_name(input.rule->normaliser));
    }
    check_own_memory(input, "gradients", {gradients.query.data, gradients.key.data, gradients.value.data});
    kAttentionBackward(input.query.device, input, output, output_gradient, rows, gradients);
}

}  // namespace headscope::kernels

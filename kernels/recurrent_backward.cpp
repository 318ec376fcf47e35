// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the operator's row of kernels/operators.h.
#include <string>

#include "kernels/backend.h"
#include "kernels/check_recurrent.h"
#include "kernels/operators.h"
#include "kernels/recurrent.h"

namespace headscope::kernels {
namespace {

void expect(bool condition, const char* where, const char* expected, const char* found) {
    if (!condition) throw Error(where, expected, found);
}

}  // namespace

void recurrent_backward(const RecurrentInput& input, const TensorView& output_gradient, const float* pieces,
                        const RecurrentGradients& gradients) {
    check_recurrent(input);
    const RecurrentRule& rule = *input.rule;
    if (rule.chunk_size > 0 && rule.chunk_begin != 0)
        throw Error("chunk begin", "0, for a text that begins", std::to_string(rule.chunk_begin));
    expect(pieces != nullptr, "pieces", "the states that the forward pass left", "a null pointer");
    const TensorView& value = input.value;
    const bool fits = output_gradient.data != nullptr && output_gradient.batch == value.batch &&
                      output_gradient.heads == value.heads && output_gradient.length == value.length &&
                      output_gradient.size == value.size && output_gradient.device == value.device;
    expect(fits, "output gradient", "[batch, heads, length, value size] as the output has",
           "another shape, or no data");
    expect(gradients.write == nullptr || input.write.data != nullptr, "write gradient",
           "w where its gradient is wanted", "none");
    expect(gradients.log_decay == nullptr || rule.decay != Decay::none, "log decay gradient",
           "a log decay where its gradient is wanted", "none");
    expect(gradients.kept == nullptr || rule.chunk_size > 0, "kept gradient", "chunks where their gradient is wanted",
           "none");
    for (const void* result : {gradients.query.data, gradients.key.data, gradients.value.data})
        expect(result == nullptr || (result != input.query.data && result != input.key.data && result != value.data &&
                                     result != output_gradient.data),
               "gradients", "memory of their own", "an input's");
    kRecurrentBackward(value.device, input, output_gradient, pieces, gradients);
}

}  // namespace headscope::kernels

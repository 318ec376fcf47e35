// SPDX-License-Identifier: GPL-3.0-or-later
// One stub for each operator of a build without a GPU backend.
#include "kernels/backend.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace {

[[noreturn]] void refuse(const char* what) {
    throw Error(what, "a build with a GPU backend", "one without; the cpu and reference backends are there");
}

}  // namespace

void attention_gpu(const AttentionInput&, OutputView, const StatisticsRequest*, Statistics*) {
    refuse("attention");
}

void attention_forward_gpu(const AttentionInput&, const MutableView&, const SoftmaxRows&) {
    refuse("attention forward");
}

void attention_backward_gpu(const AttentionInput&, const TensorView&, const TensorView&, const SoftmaxRows&,
                            const AttentionGradients&) {
    refuse("attention backward");
}

void recurrent_forward_gpu(const RecurrentInput&, const MutableView&, const RecurrentState&, float*) {
    refuse("recurrent attention forward");
}

void recurrent_backward_gpu(const RecurrentInput&, const TensorView&, const float*, const RecurrentGradients&) {
    refuse("recurrent attention backward");
}

void implicit_statistics_gpu(const RecurrentInput&, ImplicitStatistics*, float*) {
    refuse("statistics of implicit attention");
}

void running_forward_gpu(const RunningInput&, const MutableView&, const RunningRows&, const RunningState&) {
    refuse("running attention forward");
}

void running_backward_gpu(const RunningInput&, const RunningRows&, const TensorView&, const TensorView&,
                          const AttentionGradients&) {
    refuse("running attention backward");
}

void taylor_forward_gpu(const TaylorInput&, const MutableView&, float*) {
    refuse("Taylor state");
}

}  // namespace headscope::kernels

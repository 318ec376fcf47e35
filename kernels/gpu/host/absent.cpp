// SPDX-License-Identifier: GPL-3.0-or-later
// Operators that no GPU library has yet: a call names the library and refuses.
#include "kernels/gpu/host/plugin.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace {

constexpr const char* kRecurrentForwardName = "recurrent attention forward";
constexpr const char* kRecurrentBackwardName = "recurrent attention backward";
constexpr const char* kImplicitName = "statistics of implicit attention";
constexpr const char* kRunningForwardName = "running attention forward";
constexpr const char* kRunningBackwardName = "running attention backward";
constexpr const char* kTaylorStateName = "Taylor state";

[[noreturn]] void refuse(const char* where) {
    (void)gpu::plugin(where);  // without a library that is the error
    gpu::refuse(where);
}

}  // namespace

std::vector<std::string> gpu::absent_operators() {
    return {kRecurrentForwardName, kRecurrentBackwardName, kImplicitName,
            kRunningForwardName,   kRunningBackwardName,   kTaylorStateName};
}

void recurrent_forward_gpu(const RecurrentInput&, const MutableView&, const RecurrentState&, float*) {
    refuse(kRecurrentForwardName);
}

void recurrent_backward_gpu(const RecurrentInput&, const TensorView&, const float*, const RecurrentGradients&) {
    refuse(kRecurrentBackwardName);
}

void implicit_statistics_gpu(const RecurrentInput&, ImplicitStatistics*, float*) {
    refuse(kImplicitName);
}

void running_forward_gpu(const RunningInput&, const MutableView&, const RunningRows&, const RunningState&) {
    refuse(kRunningForwardName);
}

void running_backward_gpu(const RunningInput&, const RunningRows&, const TensorView&, const TensorView&,
                          const AttentionGradients&) {
    refuse(kRunningBackwardName);
}

void taylor_forward_gpu(const TaylorInput&, const MutableView&, float*) {
    refuse(kTaylorStateName);
}

}  // namespace headscope::kernels

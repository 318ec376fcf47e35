// SPDX-License-Identifier: GPL-3.0-or-later
// Operators that no GPU library has yet: a call names the library and refuses.
#include "kernels/gpu/host/plugin.h"
#include "kernels/gpu/operators.h"

namespace headscope::kernels {
namespace {

[[noreturn]] void refuse(const char* where) {
    (void)gpu::plugin(where);  // without a library that is the error
    gpu::refuse(where);
}

}  // namespace

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

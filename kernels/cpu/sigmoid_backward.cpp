// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "kernels/cpu/backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sigmoid_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/backward_pass-inl.h"
#include "kernels/cpu/normaliser_sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

void SigmoidBackward(const BackwardTask& task) {
    BackwardPass<SigmoidWeights>(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(SigmoidBackward);

template <>
void backward_pass<Normaliser::sigmoid>(const BackwardTask& task) {
    HWY_DYNAMIC_DISPATCH(SigmoidBackward)(task);
}

}  // namespace headscope::kernels::cpu
#endif

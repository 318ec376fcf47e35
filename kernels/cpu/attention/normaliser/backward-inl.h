// SPDX-License-Identifier: GPL-3.0-or-later
// backward_pass<> of one normalizer. kernels/CMakeLists.txt writes a source for each that trains, which defines
// HEADSCOPE_NORMALISER (its value of the enum) and HEADSCOPE_WEIGHTS (its class in normaliser_*-inl.h) and includes
// this file once. One source each: six of these passes in one file compile too long.
#if !defined(HEADSCOPE_NORMALISER) || !defined(HEADSCOPE_WEIGHTS)
#error "define HEADSCOPE_NORMALISER and HEADSCOPE_WEIGHTS first"
#endif

#include "kernels/cpu/attention/backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/normaliser/backward-inl.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/backward_pass-inl.h"
#include "kernels/cpu/attention/normalisers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

void NormaliserBackward(const BackwardTask& task) {
    BackwardPass<HEADSCOPE_WEIGHTS>(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(NormaliserBackward);

template <>
void backward_pass<Normaliser::HEADSCOPE_NORMALISER>(const BackwardTask& task) {
    HWY_DYNAMIC_DISPATCH(NormaliserBackward)(task);
}

}  // namespace headscope::kernels::cpu
#endif

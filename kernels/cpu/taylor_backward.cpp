// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "kernels/cpu/backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/taylor_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/backward_pass-inl.h"
#include "kernels/cpu/normaliser_taylor-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

struct TaylorSlope {
    static HWY_INLINE V Weight(F32 d, V t, V shift, V factor) { return Taylor::Weight(d, t, shift, factor); }
    /// The derivative of 1 + s + s^2 / 2, over the denominator.
    static HWY_INLINE V Slope(F32 d, V t, V, V factor) {
        const V slope = hn::MulAdd(t, hn::Set(d, static_cast<float>(kLn2)), hn::Set(d, 1.0f));
        return hn::IfThenElseZero(Allowed(d, t), hn::Mul(slope, factor));
    }
};

void TaylorBackward(const BackwardTask& task) {
    BackwardPass<TaylorSlope>(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(TaylorBackward);

void taylor_backward(const BackwardTask& task) {
    HWY_DYNAMIC_DISPATCH(TaylorBackward)(task);
}

}  // namespace headscope::kernels::cpu
#endif

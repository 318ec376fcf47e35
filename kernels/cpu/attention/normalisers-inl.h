// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. The one list of normalisers.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISERS_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISERS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISERS_INL_H
#endif

#include "kernels/cpu/attention/normaliser/elastic-inl.h"
#include "kernels/cpu/attention/normaliser/entmax-inl.h"
#include "kernels/cpu/attention/normaliser/sigmoid-inl.h"
#include "kernels/cpu/attention/normaliser/softmax-inl.h"
#include "kernels/cpu/attention/normaliser/sparsemax-inl.h"
#include "kernels/cpu/attention/normaliser/taylor-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Pass<N>::Run(task) for the normaliser N that the task names.
template <template <class> class Pass, class Task>
HWY_INLINE void RunNormaliser(const Task& task) {
    switch (task.normaliser) {
        case Normaliser::softmax:
            return Pass<Softmax>::Run(task);
        case Normaliser::sparsemax:
            return Pass<Sparsemax>::Run(task);
        case Normaliser::taylor:
            return Pass<Taylor>::Run(task);
        case Normaliser::taylor_diagonal:
            return Pass<TaylorDiagonal>::Run(task);
        case Normaliser::taylor_per_order:
            return Pass<TaylorPerOrder>::Run(task);
        case Normaliser::taylor_diagonal_per_order:
            return Pass<TaylorDiagonalPerOrder>::Run(task);
        case Normaliser::elastic:
            return Pass<Elastic>::Run(task);
        case Normaliser::entmax:
            return Pass<Entmax>::Run(task);
        case Normaliser::sigmoid:
            return Pass<SigmoidWeights>::Run(task);
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

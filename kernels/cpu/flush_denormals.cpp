// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/flush_denormals.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace headscope::kernels::cpu {

#if defined(__SSE2__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
    _mm_setcsr(saved_ | flush_to_zero | denormals_are_zero);
}
FlushDenormals::~FlushDenormals() {
    _mm_setcsr(saved_);
}
#else
FlushDenormals::FlushDenormals() = default;
FlushDenormals::~FlushDenormals() = default;
#endif

}  // namespace headscope::kernels::cpu

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The table of operators: for each, what runs it in float64 by the formula (reference), on the processor's SIMD units
// (cpu) and on a GPU. A new operator is a row here and three functions of one signature; one without a GPU kernel
// refuses by name: a gap fails to link. A forced GPU backend takes memory of the processor and copies it there and
// back. Row operators, matrix products and the optimizer (rows.h, convolution.h, gemm.h, packed/, optimizer.h) have no
// rows: their functions take the device, and packed/ and gemm.h the processor's memory alone.

#include <cstdint>
#include <string>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/backward.h"
#include "kernels/cpu/attention/running.h"
#include "kernels/cpu/recurrent/recurrent.h"
#include "kernels/cpu/recurrent/recurrent_backward.h"
#include "kernels/cpu/recurrent/taylor_state.h"
#include "kernels/gpu/operators.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/attention_backward.h"
#include "kernels/reference/recurrent.h"
#include "kernels/reference/recurrent_backward.h"
#include "kernels/reference/running.h"
#include "kernels/reference/taylor_state.h"

namespace headscope::kernels {

enum class Backend : std::uint8_t { reference, cpu, gpu };

/// For CPU memory the backend of force_backend(), or of HEADSCOPE_KERNELS at first use; for GPU memory gpu.
Backend backend_for(Device device);
/// Remembers for last_backend() what ran on this thread, in the backend's own words.
void note_backend(Backend backend);

template <class Function>
struct Operator {
    Function *reference, *cpu, *gpu;

    template <class... Arguments>
    void operator()(Device device, const Arguments&... arguments) const {
        const Backend backend = backend_for(device);
        (backend == Backend::reference ? reference : backend == Backend::cpu ? cpu : gpu)(arguments...);
        note_backend(backend);
    }
};
// clang 14 deduces no arguments of an aggregate.
template <class Function>
Operator(Function*, Function*, Function*) -> Operator<Function>;

inline constexpr Operator kAttention{&attention_reference, &attention_cpu, &attention_gpu};
inline constexpr Operator kAttentionForward{&attention_forward_reference, &cpu::attention_forward_cpu,
                                            &attention_forward_gpu};
inline constexpr Operator kAttentionBackward{&attention_backward_reference, &cpu::attention_backward_cpu,
                                             &attention_backward_gpu};
inline constexpr Operator kRecurrentForward{&recurrent_forward_reference, &cpu::recurrent_forward_cpu,
                                            &recurrent_forward_gpu};
inline constexpr Operator kRecurrentBackward{&recurrent_backward_reference, &cpu::recurrent_backward_cpu,
                                             &recurrent_backward_gpu};
inline constexpr Operator kImplicitStatistics{&implicit_statistics_reference, &cpu::implicit_statistics_cpu,
                                              &implicit_statistics_gpu};
inline constexpr Operator kRunningForward{&running_forward_reference, &cpu::running_forward_cpu, &running_forward_gpu};
inline constexpr Operator kRunningBackward{&running_backward_reference, &cpu::running_backward_cpu,
                                           &running_backward_gpu};
inline constexpr Operator kTaylorForward{&taylor_forward_reference, &cpu::taylor_forward_cpu, &taylor_forward_gpu};

}  // namespace headscope::kernels

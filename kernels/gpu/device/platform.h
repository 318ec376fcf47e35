// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One source for CUDA, HIP and the CPU emulator. A kernel is a struct with kThreads, Args (plain values) and
// static run(const Args&, const Context&); it reaches the device through Context alone. Groups of 16 lanes exchange
// values, so warps of 32 and of 64 threads give the same results.

#include <cstdint>

#if defined(HEADSCOPE_EMULATOR)
#include "kernels/gpu/device/emulator.h"
#else
#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define HS_GPU(name) hip##name
#else
#include <cuda_runtime.h>
#define HS_GPU(name) cuda##name
#endif
#define HS_DEVICE __device__ __forceinline__
#define HS_BOTH __host__ __device__ inline
#if !defined(__HIPCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HS_TENSOR_CORES 1
#else
#define HS_TENSOR_CORES 0
#endif

namespace headscope::gpu {

#if defined(__HIPCC__)
inline constexpr bool kCompilesMma = false;
#else
inline constexpr bool kCompilesMma = true;
#endif

/// The current device multiplies bfloat16 by Context::multiply_add().
inline bool has_mma() {
#if defined(__HIPCC__)
    return false;
#else
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 8;
#endif
}

/// Ends a launch that has_mma() does not allow.
HS_DEVICE void stop() {
#if defined(__HIPCC__)
    __builtin_trap();
#else
    __trap();
#endif
}

template <class T>
using Shared = T*;

struct Float4 {
    float x, y, z, w;
};

struct Context {
    HS_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
    HS_DEVICE int block() const { return static_cast<int>(blockIdx.x); }
    HS_DEVICE void sync() const { __syncthreads(); }
    /// Dynamic shared memory from `offset` bytes on.
    template <class T>
    HS_DEVICE Shared<T> shared(int offset) const {
        extern __shared__ __align__(16) unsigned char memory[];
        return reinterpret_cast<T*>(memory + offset);
    }
    template <class T>
    HS_DEVICE T shuffle_xor(T x, int mask) const {
#if defined(__HIPCC__)
        return __shfl_xor(x, mask);
#else
        return __shfl_xor_sync(0xffffffffU, x, mask);
#endif
    }
    HS_DEVICE float exp2(float x) const {
#if defined(__HIPCC__)
        return exp2f(x);
#else
        float y;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
#endif
    }
    /// Copies 16 bytes into shared memory, or zeros; complete after wait_copies() and sync().
    template <class T>
    HS_DEVICE void copy16(Shared<T> to, int at, const T* from, bool valid) const {
#if HS_TENSOR_CORES
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to + at));
        const int bytes = valid ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
#else
        *reinterpret_cast<float4*>(to + at) =
            valid ? *reinterpret_cast<const float4*>(from) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#endif
    }
    /// All copies of this thread have arrived.
    HS_DEVICE void wait_copies() const {
#if HS_TENSOR_CORES
        asm volatile("cp.async.wait_all;");
#endif
    }
    /// ldmatrix.x4 of b16: lane 8 m + x gives row x of 8 x 8 matrix m, 16 bytes from p[at] on. to[m] holds numbers
    /// 2 (lane % 4) and 2 (lane % 4) + 1 of row lane / 4 of matrix m, or of its transpose.
    template <bool kTransposed>
    HS_DEVICE void load_matrices(Shared<unsigned> p, int at, unsigned (&to)[4]) const {
#if HS_TENSOR_CORES
        const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(p + at));
        if (kTransposed)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                         : "r"(address));
        else
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                         : "r"(address));
#else
        stop();
#endif
    }
    /// d += a b by mma.sync.m16n8k16 of bfloat16 with float32 sums; d, a and b are the lane's fragments.
    HS_DEVICE void multiply_add(float& d0, float& d1, float& d2, float& d3, const unsigned (&a)[4], unsigned b0,
                                unsigned b1) const {
#if HS_TENSOR_CORES
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
        stop();
#endif
    }
    HS_DEVICE void add(unsigned long long* to, unsigned long long x) const {
        atomicAdd(to, x);
    }
    HS_DEVICE void add(unsigned* to, unsigned x) const {
        atomicAdd(to, x);
    }
    HS_DEVICE void add(Shared<unsigned> to, int at, unsigned x) const {
        atomicAdd(to + at, x);
    }
    HS_DEVICE void raise(unsigned* to, unsigned x) const {
        atomicMax(to, x);
    }
    HS_DEVICE void set_flag(unsigned* to) const {
        atomicOr(to, 1U);
    }
};

HS_DEVICE Float4 load4(Shared<float> p, int i) {
    const float4 v = *reinterpret_cast<const float4*>(p + i);
    return {v.x, v.y, v.z, v.w};
}

/// Two numbers rounded to bfloat16, `low` in the lower half.
HS_DEVICE unsigned pack_halves(float low, float high) {
#if HS_TENSOR_CORES
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    (void)low;
    (void)high;
    stop();
    return 0U;
#endif
}

HS_DEVICE unsigned bits_of(float x) {
    return __float_as_uint(x);
}
HS_DEVICE float float_of(unsigned bits) {
    return __uint_as_float(bits);
}

template <class K>
__global__ void __launch_bounds__(K::kThreads, 1) entry(const typename K::Args args) {
    K::run(args, Context());
}

/// Starts `blocks` blocks on a stream; returns null, or the platform's error text.
template <class K>
const char* launch(std::int64_t blocks, int shared, const typename K::Args& args, void* stream) {
    if (blocks == 0) return nullptr;
    auto error = HS_GPU(FuncSetAttribute)(reinterpret_cast<const void*>(&entry<K>),
                                          HS_GPU(FuncAttributeMaxDynamicSharedMemorySize), shared);
    if (error == HS_GPU(Success)) {
        entry<K><<<dim3(static_cast<unsigned>(blocks)), K::kThreads, static_cast<std::size_t>(shared),
                   static_cast<HS_GPU(Stream_t)>(stream)>>>(args);
    }
    const auto last = HS_GPU(GetLastError)();  // resets it, or the next launch would report it again
    if (error == HS_GPU(Success)) error = last;
    return error == HS_GPU(Success) ? nullptr : HS_GPU(GetErrorString)(error);
}

}  // namespace headscope::gpu
#endif

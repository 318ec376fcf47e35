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

namespace headscope::gpu {

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
    HS_DEVICE void copy16(Shared<float> to, int at, const float* from, bool valid) const {
#if !defined(__HIPCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
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
#if !defined(__HIPCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;");
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
        error = HS_GPU(GetLastError)();
    }
    return error == HS_GPU(Success) ? nullptr : HS_GPU(GetErrorString)(error);
}

}  // namespace headscope::gpu
#endif

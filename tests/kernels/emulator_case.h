// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One problem on the reference and on the emulator, with warps of 32 and 64 threads in two random orders, with operands
// in memory of the processor and of the GPU. With HEADSCOPE_KERNELS=cuda or hip, on that device in place of the
// emulator.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/forced.h"
#include "tests/kernels/gpu_place.h"

namespace headscope::kernels::testing {

inline constexpr double kSingleEpsilon = 0x1p-24;

/// Two backends of one GPU library whose results have the same bits: the emulator with warps of 32 and of 64 threads,
/// or twice the device that HEADSCOPE_KERNELS names.
inline std::array<std::string, 2> gpu_backends() {
    const char* named = std::getenv("HEADSCOPE_KERNELS");
    const std::string name = named == nullptr ? "" : named;
    if (name == "cuda" || name == "hip") return {name, name};
    return {"emulator", "emulator64"};
}

/// Forces a backend, and an order of the emulator's threads, until its end.
struct ForcedBackend {
    explicit ForcedBackend(const std::string& name, const char* seed = "1") : backend(name) {
        setenv("HEADSCOPE_EMULATOR_SEED", seed, 1);
    }
    ~ForcedBackend() { unsetenv("HEADSCOPE_EMULATOR_SEED"); }
    ForcedBackend(const ForcedBackend&) = delete;
    ForcedBackend& operator=(const ForcedBackend&) = delete;

    Forced backend;
};

/// Fields of a result by name.
using Fields = std::vector<std::pair<std::string, std::vector<float>>>;

/// Each number within `tolerance` of the expected one, relative to the largest of its field and 1.
inline void check_fields(const Fields& found, const Fields& expected, double tolerance) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t f = 0; f < found.size(); ++f) {
        INFO(found[f].first << ", tolerance " << tolerance);
        const std::vector<float>&a = found[f].second, &b = expected[f].second;
        REQUIRE(a.size() == b.size());
        double largest = 1.0;
        for (const float x : b) largest = std::max(largest, std::abs(double{x}));
        for (std::size_t n = 0; n < a.size(); ++n) {
            if (std::abs(double{a[n]} - double{b[n]}) <= tolerance * largest) continue;
            FAIL("element " << n << ": found " << a[n] << ", expected " << b[n] << ", largest " << largest);
        }
    }
}

inline bool same_bits(const Fields& a, const Fields& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t f = 0; f < a.size(); ++f) {
        const std::vector<float>&x = a[f].second, &y = b[f].second;
        if (x.size() != y.size()) return false;
        if (!x.empty() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) return false;
    }
    return true;
}

/// `backend` ran the last operator, with any products ("emulator mma").
inline bool ran_on(const std::string& backend) {
    return last_backend() == backend || last_backend().starts_with(backend + " ");
}

/// The backend multiplies bfloat16 attention on tensor cores. Not while a backend is forced.
inline bool has_mma(const std::string& backend) {
    const ForcedBackend forced(backend);
    return chosen_kernels("bfloat16").ends_with(" mma");
}

/// run(place) gives Fields on the forced backend, and notes that backend as the last one. `products`: warps of 32
/// multiply on tensor cores, so those of 64 round otherwise.
template <class Run>
void check_emulator(const Run& run, double tolerance, bool products = false) {
    const auto on = [&](const std::string& backend, const char* seed, Place place) {
        const ForcedBackend forced(backend, seed);
        Fields fields = run(place);
        REQUIRE(last_backend() == backend);
        return fields;
    };
    const auto [gpu, again] = gpu_backends();
    const Fields expected = on("reference", "1", Place::processor), found = on(gpu, "1", Place::processor);
    check_fields(found, expected, tolerance);
    CHECK(same_bits(on(gpu, "2", Place::odd), found));
    const Fields wide = on(again, "3", Place::interleaved);
    check_fields(wide, expected, tolerance);
    CHECK(same_bits(products ? on(again, "4", Place::processor) : found, wide));
}

}  // namespace headscope::kernels::testing

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/free_memory.h"

#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>

#include "core/base/error.h"
#include "tests/core/base/error_matcher.h"

using headscope::Error;
using headscope::ErrorCode;
using headscope::expect_memory;
using headscope::test::IsError;

TEST_CASE("What does not fit is refused in one line that names what does", "[base][memory]") {
    const std::string weights = "weights in float32";
    CHECK_NOTHROW(expect_memory(weights, 34.1e9, {}, "", 34.1e9));
    CHECK_NOTHROW(expect_memory(weights, 34.1e9, {}, "", 0));  // the system does not say
    CHECK_THROWS_MATCHES(expect_memory(weights, 34.1e9, {{"--dtype bfloat16", 17.2e9}}, "shorten --length", 21.9e9),
                         Error,
                         IsError(ErrorCode::memory,
                                 "[memory] expected 34.1 GB for weights in float32; "
                                 "found 21.9 GB free: --dtype bfloat16 needs 17.2 GB"));
    // An option that does not fit either is not offered.
    CHECK_THROWS_MATCHES(expect_memory(weights, 34.1e9, {{"--dtype bfloat16", 17.2e9}}, "shorten --length", 9e9), Error,
                         IsError(ErrorCode::memory, "found 9.00 GB free: nothing fits: shorten --length"));
    CHECK_THROWS_MATCHES(expect_memory(weights, 2e9, {{"a", 1.9e9}, {"b", 0.8e9}}, "", 1e9), Error,
                         IsError(ErrorCode::memory, "found 1.00 GB free: b needs 800 MB"));
    CHECK_THROWS_MATCHES(expect_memory(weights, 2e9, {}, "", 1e9), Error,
                         IsError(ErrorCode::memory, "found 1.00 GB free: nothing fits"));
}

TEST_CASE("Allocations that are refused end in one line of memory", "[base][memory]") {
    const auto line_of = [](const auto& thrown) {
        try {
            throw thrown;
        } catch (...) {
            const Error error = headscope::current_error("logits");
            CHECK(error.code() == ErrorCode::memory);
            return std::string(error.what());
        }
    };
    CHECK(line_of(std::bad_alloc()) == "[memory] expected more memory for logits; found none left");
    // LibTorch's own text.
    CHECK(line_of(std::runtime_error("[enforce fail at alloc_cpu.cpp:131] err == 0. DefaultCPUAllocator: can't "
                                     "allocate memory: you tried to allocate 1200000000 bytes. Error code 12 (Cannot "
                                     "allocate memory)\nframe #0: c10::ThrowEnforceNotMet")) ==
          "[memory] expected 1.20 GB for logits; found none left");
}

TEST_CASE("A GPU without memory left is one line with ways to take less", "[base][memory]") {
    try {
        throw std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB.\nException raised from malloc");
    } catch (...) {
        const Error error = headscope::current_error("analysis");
        CHECK(error.code() == ErrorCode::memory);
        CHECK(std::string(error.what()) ==
              "[analysis] expected enough memory on the GPU: take shorter texts, --dtype bfloat16, --weights file or "
              "--device cpu; found: CUDA out of memory. Tried to allocate 2.00 GiB.");
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// LibTorch's logging header defines CHECK too, and would quietly replace Catch's (a failure then aborts the program).
// Included first in a file, this brings both in and leaves Catch's.
#include <c10/util/Logging.h>
#undef CHECK

#include <ATen/core/Tensor.h>

#include <catch2/catch.hpp>

// SPDX-License-Identifier: GPL-3.0-or-later
// Precompiled for every library with LibTorch's tensors.
#include "cmake/precompiled/standard.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

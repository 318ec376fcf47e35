// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// MXFP4 (OCP Microscaling Formats 1.0), as the published files of gpt-oss store their experts: numbers of four bits
// (E2M1), two in a byte, the low half first, and a power of two for each group of them.

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"

namespace headscope::model {

/// blocks [E, R, G, 16] and scales [E, R, G], both bytes -> [E, R, G * 32] of `type`, float32 or another that holds
/// what bfloat16 does. Exact, but for scales of 254 and 255, whose numbers may be infinite.
at::Tensor unpack_mxfp4(const at::Tensor& blocks, const at::Tensor& scales, at::ScalarType type,
                        const Cancellation* cancellation);

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// packed_product by the rules of ggml's block types, weight after weight in float64.

#include <cstdint>

#include "kernels/packed/packed_product.h"

namespace headscope::kernels {

void packed_product_reference(const PackedProduct& product);

namespace reference {

/// A weight is scaled - offset, both exact.
struct PackedWeight {
    double scaled = 0.0, offset = 0.0;
};
/// Weight i of a block.
PackedWeight packed_weight(PackedType type, const std::uint8_t* block, std::int64_t i);

}  // namespace reference
}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/packed/packed_product.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/packed/cpu/product.h"
#include "kernels/flop_counter.h"
#include "kernels/operators.h"
#include "kernels/parallel.h"
#include "kernels/packed/reference/product.h"

namespace headscope::kernels {
namespace {

/// Bytes of a piece of rows: they stay in the second-level cache while groups of tokens pass by.
constexpr std::int64_t kPieceBytes = 1 << 15;

const PackedLayout& check(const PackedProduct& product) {
    const PackedLayout* layout = packed_layout(product.type);
    if (layout == nullptr)
        throw Error("packed product", "a type that is listed in packed_type.h",
                    "number " + std::to_string(static_cast<std::uint32_t>(product.type)));
    if (product.rows < 1 || product.columns < 1 || product.columns % layout->values != 0)
        throw Error("packed product", "rows in blocks of " + std::to_string(layout->values),
                    "[" + std::to_string(product.rows) + ", " + std::to_string(product.columns) + "]");
    if (product.blocks == nullptr || product.x == nullptr || product.y == nullptr)
        throw Error("packed product", "blocks, x and y", "a null pointer");
    if (product.tokens < 1 || product.x_stride < product.columns || product.y_stride < product.rows)
        throw Error("packed product", "tokens at least a row apart",
                    std::to_string(product.tokens) + " tokens, strides " + std::to_string(product.x_stride) + " and " +
                        std::to_string(product.y_stride));
    return *layout;
}

}  // namespace

bool packed_product_supported(PackedType type) {
    return packed_layout(type) != nullptr;
}

std::int64_t packed_product_roundings(std::int64_t columns) {
    // Without vectors every second term of a row goes to one sum. The rest: a part of 32 columns, scales, the sum over
    // lanes, the bias.
    return columns / 2 + 48;
}

void packed_product(const PackedProduct& product) {
    const PackedLayout& layout = check(product);
    if (backend_for(Device::cpu) == Backend::reference) {
        packed_product_reference(product);
        note_backend(Backend::reference);
        return;
    }
    cpu::PackedTask task;
    task.product = &product;
    task.row_bytes = product.columns / layout.values * layout.bytes;
    std::vector<float> sums(static_cast<std::size_t>(cpu::packed_sums_size(product)));
    if (!sums.empty()) {
        const cpu::FlushDenormals guard;
        cpu::packed_sums(product, sums.data());
        task.sums = sums.data();
    }
    const std::int64_t step = std::max<std::int64_t>(1, kPieceBytes / task.row_bytes);
    parallel_for((product.rows + step - 1) / step, [&](std::int64_t piece, int) {
        const cpu::FlushDenormals guard;
        cpu::PackedTask mine = task;
        mine.row_begin = piece * step;
        mine.row_end = std::min(mine.row_begin + step, product.rows);
        cpu::packed_rows(mine);
        executed_flops(2 * (mine.row_end - mine.row_begin) * product.columns * product.tokens);
    });
    cpu::note_target();
    note_backend(Backend::cpu);
}

}  // namespace headscope::kernels

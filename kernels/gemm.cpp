// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/gemm.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/dense/gemm.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/operators.h"
#include "kernels/parallel.h"

namespace headscope::kernels {
namespace {

// Tiles depend on the result's shape alone: a most number of rows, and a least number of tiles if the shape has as
// many.
constexpr std::int64_t kMostTileRows = 192, kEnoughTiles = 16;
constexpr std::int64_t kPackedSteps = 64;  // of a packing task

std::string shape_of(std::int64_t rows, std::int64_t columns) {
    return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
}

void check(const MatrixView& view, const char* where) {
    const bool strides = view.column_stride == 1 || view.row_stride == 1;
    if (view.rows < 1 || view.columns < 1 || view.data == nullptr || !strides)
        throw Error(where, "a matrix with data and unit stride one way", shape_of(view.rows, view.columns));
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::int64_t panel_width() {
    return 2 * cpu::target_info().lanes;
}

}  // namespace

struct PackedRight::Memory {
    explicit Memory(std::int64_t floats) : values(floats) {}
    cpu::AlignedFloats values;
};

PackedRight::PackedRight(const MatrixView& right) : rows_(right.rows), columns_(right.columns) {
    check(right, "right factor");
    backend_for(Device::cpu);  // HEADSCOPE_KERNELS is heard before the first SIMD call
    const std::int64_t panels = divide_up(columns_, panel_width());
    memory_ = std::make_unique<Memory>(panels * panel_width() * rows_);
    // Either way a task reads whole lines of memory.
    const bool by_panel = right.column_stride != 1;
    const std::int64_t parts = by_panel ? panels : divide_up(rows_, kPackedSteps);
    parallel_for(parts, [&](std::int64_t part, int) {
        cpu::PackRightTask task{right, 0, panels, 0, rows_, memory_->values.data()};
        if (by_panel) {
            task.panel_begin = part;
            task.panel_end = part + 1;
        } else {
            task.step_begin = part * kPackedSteps;
            task.step_end = std::min(task.step_begin + kPackedSteps, rows_);
        }
        cpu::pack_right(task);
    });
}

PackedRight::~PackedRight() = default;
PackedRight::PackedRight(PackedRight&&) noexcept = default;
PackedRight& PackedRight::operator=(PackedRight&&) noexcept = default;

const float* PackedRight::data() const {
    return memory_->values.data();
}

void multiply(const MatrixView& left, const PackedRight& right, const ProductTarget& target) {
    check(left, "left factor");
    if (left.columns != right.rows())
        throw Error("right factor", std::to_string(left.columns) + " rows", shape_of(right.rows(), right.columns()));
    const int starts = static_cast<int>(target.accumulate) + static_cast<int>(target.bias != nullptr) +
                       static_cast<int>(target.addend != nullptr);
    if (target.data == nullptr || target.row_stride < right.columns() || starts > 1)
        throw Error("product", "a place, and one thing at most that it is added to", "something else");
    const std::int64_t group = cpu::target_info().rows, panels = divide_up(right.columns(), panel_width());
    const std::int64_t rows =
        std::min(kMostTileRows / group * group, divide_up(divide_up(left.rows, 8), group) * group);
    const std::int64_t bands = divide_up(left.rows, rows);
    const std::int64_t panels_of_tile = divide_up(panels, std::min(panels, divide_up(kEnoughTiles, bands)));
    const std::int64_t columns = divide_up(panels, panels_of_tile);
    std::vector<cpu::AlignedFloats> scratch(static_cast<std::size_t>(threads()));
    parallel_for(bands * columns, [&](std::int64_t index, int worker) {
        const cpu::FlushDenormals guard;
        cpu::AlignedFloats& mine = scratch[static_cast<std::size_t>(worker)];
        if (mine.data() == nullptr) mine = cpu::AlignedFloats(cpu::product_scratch(rows));
        const std::int64_t row = index / columns * rows, panel = index % columns * panels_of_tile;
        cpu::multiply_tile({left, right.data(), right.columns(), target, row, std::min(row + rows, left.rows), panel,
                            std::min(panel + panels_of_tile, panels), mine.data()});
    });
}

void multiply(const MatrixView& left, const MatrixView& right, const ProductTarget& target) {
    multiply(left, PackedRight(right), target);
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
// Rows shared out in pieces whose size depends on shapes alone; sums over rows are added up piece by piece in order.
#include "kernels/rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/cpu/flush_denormals.h"
#include "kernels/operators.h"
#include "kernels/parallel.h"

namespace headscope::kernels {
namespace {

constexpr std::int64_t kPieceElements = 1 << 15;

std::int64_t rows_of_piece(std::int64_t size) {
    return std::max<std::int64_t>(1, kPieceElements / std::max<std::int64_t>(size, 1));
}

/// body(piece, begin, end, worker) for pieces of rows of `size` elements.
template <class Body>
void by_pieces(std::int64_t rows, std::int64_t size, const Body& body) {
    backend_for(Device::cpu);  // HEADSCOPE_KERNELS is heard before the first SIMD call
    const std::int64_t step = rows_of_piece(size);
    parallel_for((rows + step - 1) / step, [&](std::int64_t piece, int worker) {
        const cpu::FlushDenormals guard;
        body(piece, piece * step, std::min((piece + 1) * step, rows), worker);
    });
}

/// total [size] = the sum of [pieces, size], in float64.
void add_up(const std::vector<float>& pieces, std::int64_t size, float* total) {
    std::vector<double> sums(static_cast<std::size_t>(size));
    for (std::size_t n = 0; n < pieces.size(); ++n) sums[n % sums.size()] += double{pieces[n]};
    std::transform(sums.begin(), sums.end(), total, [](double sum) { return static_cast<float>(sum); });
}

}  // namespace

void rms_norm(const RmsNorm& norm, void* y, Device device) {
    if (device == Device::gpu) return rms_norm_gpu(norm, y, device);
    by_pieces(norm.rows, norm.size, [&](std::int64_t, std::int64_t begin, std::int64_t end, int) {
        cpu::rms_norm_rows(norm, y, begin, end);
    });
}

void rms_norm_backward(const RmsNorm& norm, const void* dy, const void* addend, void* dx, float* d_gain,
                       Device device) {
    if (device == Device::gpu) return rms_norm_backward_gpu(norm, dy, addend, dx, d_gain, device);
    const std::int64_t step = rows_of_piece(norm.size), pieces = (norm.rows + step - 1) / step;
    std::vector<float> gains(d_gain == nullptr ? 0 : static_cast<std::size_t>(pieces * norm.size));
    by_pieces(norm.rows, norm.size, [&](std::int64_t piece, std::int64_t begin, std::int64_t end, int) {
        cpu::rms_norm_backward_rows(norm, dy, addend, dx, gains.empty() ? nullptr : gains.data() + piece * norm.size,
                                    begin, end);
    });
    if (d_gain != nullptr) add_up(gains, norm.size, d_gain);
}

void column_sums(const void* x, ElementType type, std::int64_t rows, std::int64_t size, float* sums) {
    const std::int64_t step = rows_of_piece(size), pieces = (rows + step - 1) / step;
    std::vector<float> parts(static_cast<std::size_t>(pieces * size));
    by_pieces(rows, size, [&](std::int64_t piece, std::int64_t begin, std::int64_t end, int) {
        cpu::column_sums_rows(x, type, size, begin, end, parts.data() + piece * size);
    });
    add_up(parts, size, sums);
}

void gated_silu(const void* gate_up, ElementType type, std::int64_t rows, std::int64_t size, void* y, Device device) {
    if (device == Device::gpu) return gated_silu_gpu(gate_up, type, rows, size, y, device);
    by_pieces(rows, size, [&](std::int64_t, std::int64_t begin, std::int64_t end, int) {
        cpu::gated_silu_rows({gate_up, type, size, begin, end, nullptr, y});
    });
}

void gated_silu_backward(const void* gate_up, const void* dy, ElementType type, std::int64_t rows, std::int64_t size,
                         void* d_gate_up, Device device) {
    if (device == Device::gpu) return gated_silu_backward_gpu(gate_up, dy, type, rows, size, d_gate_up, device);
    by_pieces(rows, size, [&](std::int64_t, std::int64_t begin, std::int64_t end, int) {
        cpu::gated_silu_rows({gate_up, type, size, begin, end, dy, d_gate_up});
    });
}

void rotate(const Rotation& rotation, Device device) {
    if (device == Device::gpu) return rotate_gpu(rotation, device);
    by_pieces(rotation.rows, rotation.heads * rotation.size,
              [&](std::int64_t, std::int64_t begin, std::int64_t end, int) { cpu::rotate_rows(rotation, begin, end); });
}

void add_rows_by_id(const std::int64_t* ids, std::int64_t count, const void* dy, ElementType type, std::int64_t size,
                    void* table_gradient) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count)), firsts;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [ids](std::int64_t a, std::int64_t b) { return ids[a] < ids[b]; });
    for (std::int64_t n = 0; n < count; ++n) {
        const auto at = static_cast<std::size_t>(n);
        if (n == 0 || ids[order[at]] != ids[order[at - 1]]) firsts.push_back(n);
    }
    const auto entries = static_cast<std::int64_t>(firsts.size());
    firsts.push_back(count);
    const std::int64_t bytes = (type == ElementType::float32 ? 4 : 2) * size;
    by_pieces(entries, 2 * size, [&](std::int64_t, std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t e = begin; e < end; ++e) {
            const std::int64_t first = firsts[static_cast<std::size_t>(e)];
            const std::int64_t* positions = order.data() + first;
            cpu::add_rows({dy, type, size, positions, firsts[static_cast<std::size_t>(e) + 1] - first,
                           static_cast<char*>(table_gradient) + ids[*positions] * bytes});
        }
    });
}

void cross_entropy(const CrossEntropy& work, Device device) {
    if (device == Device::gpu) return cross_entropy_gpu(work, device);
    std::vector<cpu::AlignedFloats> scratch(static_cast<std::size_t>(threads()));
    by_pieces(work.rows, work.entries, [&](std::int64_t, std::int64_t begin, std::int64_t end, int worker) {
        cpu::AlignedFloats& mine = scratch[static_cast<std::size_t>(worker)];
        if (mine.data() == nullptr) mine = cpu::AlignedFloats(cpu::pad_to_line(work.entries));
        cpu::cross_entropy_rows(work, begin, end, mine.data());
    });
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Operands and results of a call in GPU memory, with strides as tensors of a model have them: kernels use them where
// they are. GPU memory of the emulator is memory of the processor.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/gpu/host/buffers.h"
#include "kernels/gpu/host/plugin.h"
#include "kernels/tensor_view.h"

namespace headscope::kernels::testing {

enum class Place : std::uint8_t {
    processor,    ///< memory of the processor: a call copies operands to the GPU, packed, and results back
    interleaved,  ///< GPU memory, [batch, length, heads, size], rows at multiples of 16 bytes
    odd,          ///< the same, but tensors take turns: an address that no vector starts at, odd strides
};

/// Operands and results of one call, or of several, on the chosen backend. Gaps around the rows of an operand are NaN,
/// those of a result must stay as they are.
class Operands {
public:
    explicit Operands(Place place) : place_(place) {
        if (place != Place::processor) memory_.emplace(gpu::plugin("test"), "test");
    }

    Device device() const { return memory_ ? Device::gpu : Device::cpu; }

    TensorView read(const TensorView& view) {
        if (!memory_ || view.data == nullptr) return view;
        const Grid grid = next_grid(view.type, view.batch, view.heads, view.length, view.size);
        std::vector<char> bytes(grid.all(), kNaN);
        grid.each_row(view.batch_stride, view.head_stride, view.row_stride, [&](std::int64_t at, std::int64_t from) {
            std::memcpy(bytes.data() + at, static_cast<const char*>(view.data) + from, grid.row_bytes());
        });
        const char* data = memory_->upload(bytes.data(), static_cast<std::int64_t>(bytes.size()));
        return {data + grid.first * grid.bytes, view.type,        view.batch,      view.heads, view.length, view.size,
                grid.length * grid.row_stride,  grid.head_stride, grid.row_stride, Device::gpu};
    }

    /// q, k, v, and w and g of a recurrence.
    template <class Input>
    Input read_all(Input input) {
        for (TensorView* view : {&input.query, &input.key, &input.value}) *view = read(*view);
        if constexpr (requires { input.log_decay; })
            for (TensorView* view : {&input.write, &input.log_decay}) *view = read(*view);
        return input;
    }

    /// The place of a result that fetch() copies to `to`; NaN until it is written. Null stays null.
    MutableView write(const MutableView& to, std::int64_t batch, std::int64_t heads, std::int64_t length,
                      std::int64_t size) {
        return place(to, batch, heads, length, size, /*keeps=*/false);
    }

    /// The same of contiguous numbers.
    float* write(float* numbers, std::int64_t count) { return flat(numbers, ElementType::float32, count, false); }
    float* write(std::vector<float>& numbers) {
        return numbers.empty() ? nullptr : write(numbers.data(), static_cast<std::int64_t>(numbers.size()));
    }

    /// Contiguous numbers that a call reads, and may write.
    template <class Number>
    Number* change(Number* numbers, std::int64_t count) {
        static_assert(sizeof(Number) == 4 || sizeof(Number) == 2);
        const ElementType type = sizeof(Number) == 4 ? ElementType::float32 : ElementType::bfloat16;
        return static_cast<Number*>(static_cast<void*>(flat(numbers, type, count, true)));
    }
    template <class Number>
    Number* change(std::vector<Number>& numbers) {
        return numbers.empty() ? nullptr : change(numbers.data(), static_cast<std::int64_t>(numbers.size()));
    }

    /// A result as an operand of the next call.
    TensorView view_of(const MutableView& result, std::int64_t batch, std::int64_t heads, std::int64_t length,
                       std::int64_t size) const {
        return {result.data,        result.type,       batch,   heads, length, size, result.batch_stride,
                result.head_stride, result.row_stride, device()};
    }

    /// Copies results to their places. Fails if a call wrote between or around rows.
    void fetch() {
        for (const Result& result : results_) {
            const MutableView& to = result.to;
            std::vector<char> bytes = memory_->fetch(result.data, static_cast<std::int64_t>(result.grid.all()));
            result.grid.each_row(
                to.batch_stride, to.head_stride, to.row_stride, [&](std::int64_t at, std::int64_t from) {
                    std::memcpy(static_cast<char*>(to.data) + from, bytes.data() + at, result.grid.row_bytes());
                    std::memset(bytes.data() + at, kGap, result.grid.row_bytes());
                });
            const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](char x) { return x != kGap; });
            if (wrong != bytes.end()) FAIL("a call wrote outside of a result, at byte " << wrong - bytes.begin());
        }
    }

private:
    static constexpr char kNaN = static_cast<char>(0xFF), kGap = 0x5A;

    /// Rows of a tensor [batch, length, heads, size] in memory with gaps; strides in numbers.
    struct Grid {
        std::int64_t batch, heads, length, size, bytes;  ///< bytes of a number
        std::int64_t first, head_stride, row_stride;

        std::size_t all() const { return static_cast<std::size_t>((first + batch * length * row_stride) * bytes); }
        std::size_t row_bytes() const { return static_cast<std::size_t>(size * bytes); }
        /// body(byte of a row here, byte of the row in a tensor of the given strides)
        template <class Body>
        void each_row(std::int64_t batches, std::int64_t head_step, std::int64_t row_step, const Body& body) const {
            for (std::int64_t b = 0; b < batch; ++b)
                for (std::int64_t h = 0; h < heads; ++h)
                    for (std::int64_t i = 0; i < length; ++i)
                        body((first + (b * length + i) * row_stride + h * head_stride) * bytes,
                             (b * batches + h * head_step + i * row_step) * bytes);
        }
    };

    struct Result {
        Grid grid;
        MutableView to;
        const char* data;
    };

    Grid next_grid(ElementType type, std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t size) {
        constexpr std::int64_t kVector = 8;  // bfloat16 of 16 bytes
        Grid grid{batch, heads, length, size, gpu::bytes_of(type), 2 * kVector, size, 0};
        grid.row_stride = (heads * size + kVector - 1) / kVector * kVector + kVector;
        if (place_ != Place::odd) return grid;
        odd_strides_ = !odd_strides_;
        if (odd_strides_) {
            grid.head_stride = size + 3;
            grid.row_stride = (heads * grid.head_stride + 4) | 1;
        } else {
            grid.first = 1;
        }
        return grid;
    }

    MutableView place(const MutableView& to, std::int64_t batch, std::int64_t heads, std::int64_t length,
                      std::int64_t size, bool keeps) {
        if (!memory_ || to.data == nullptr) return to;
        const Grid grid = next_grid(to.type, batch, heads, length, size);
        std::vector<char> bytes(grid.all(), kGap);
        grid.each_row(to.batch_stride, to.head_stride, to.row_stride, [&](std::int64_t at, std::int64_t from) {
            if (keeps)
                std::memcpy(bytes.data() + at, static_cast<const char*>(to.data) + from, grid.row_bytes());
            else
                std::memset(bytes.data() + at, kNaN, grid.row_bytes());
        });
        char* data = memory_->upload(bytes.data(), static_cast<std::int64_t>(bytes.size()));
        results_.push_back({grid, to, data});
        return {data + grid.first * grid.bytes, to.type, grid.length * grid.row_stride, grid.head_stride,
                grid.row_stride};
    }

    float* flat(void* numbers, ElementType type, std::int64_t count, bool keeps) {
        return static_cast<float*>(place({numbers, type, count, count, count}, 1, 1, 1, count, keeps).data);
    }

    Place place_;
    std::optional<gpu::Memory> memory_;
    std::vector<Result> results_;
    bool odd_strides_ = false;
};

/// kernels::attention() with its operands at a place.
inline auto attention_at(Place place) {
    return [place](const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                   Statistics* statistics) {
        Operands operands(place);
        const AttentionInput placed = operands.read_all(input);
        const TensorView& query = input.query;
        const MutableView to = operands.write(
            {output.data, ElementType::float32, output.batch_stride, output.head_stride, output.row_stride},
            query.batch, query.heads, query.length, input.value.size);
        attention(placed, {static_cast<float*>(to.data), to.batch_stride, to.head_stride, to.row_stride}, request,
                  statistics);
        operands.fetch();
    };
}

}  // namespace headscope::kernels::testing

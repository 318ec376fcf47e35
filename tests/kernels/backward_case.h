// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Training passes on random attention problems: options, runs, and checks against the formulas of backward_book.h.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/forced.h"

namespace headscope::kernels::testing::backward {

using testing::Forced;

inline constexpr float kCanary = 4321.0F;

/// A result [batch, heads, length, size] in memory [batch, length, heads, size + 1], the last column a canary.
struct Values {
    Values(std::int64_t batch, std::int64_t head_count, std::int64_t rows, std::int64_t columns)
        : heads(head_count), length(rows), size(columns) {
        data.assign(static_cast<std::size_t>(batch * heads * length * (size + 1)), kCanary);
    }
    std::size_t at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) const {
        return static_cast<std::size_t>(((b * length + i) * heads + h) * (size + 1) + c);
    }
    MutableView view() {
        return {data.data(), ElementType::float32, length * heads * (size + 1), size + 1, heads * (size + 1)};
    }
    TensorView input(std::int64_t batch) const {
        return {data.data(), ElementType::float32, batch, heads, length, size, length * heads * (size + 1),
                size + 1,    heads * (size + 1)};
    }
    std::int64_t heads, length, size;
    std::vector<float> data;
};

/// Results of both passes.
struct Found {
    explicit Found(const Shape& s)
        : output(s.batch, s.heads, s.queries, s.value_size),
          query(s.batch, s.heads, s.queries, s.key_size),
          key(s.batch, s.key_heads, s.keys, s.key_size),
          value(s.batch, s.key_heads, s.keys, s.value_size),
          shift(static_cast<std::size_t>(s.batch * s.heads * s.queries)),
          factor(shift.size()),
          sinks(static_cast<std::size_t>(s.heads), kCanary),
          offsets(sinks) {}
    Values output, query, key, value;
    std::vector<float> shift, factor, sinks, offsets, distance_bias, blocks;
};

/// d loss / d O: the numbers of some sine, [batch, heads, queries, value_size].
Values output_gradient(const Shape& s);

bool has_block_gradients(const AttentionCase& c);

/// Both passes. `hidden_blocks`: gradients of hidden blocks, too.
Found run(const AttentionCase& c, bool hidden_blocks = false);

/// Requires the gradients of blocks that the formula gives.
void check_blocks(const AttentionCase& c, const Found& found, bool hidden_too);

/// Runs both passes and requires the output and every gradient that the formulas give.
void check(const AttentionCase& c);

/// True if two results agree in every bit.
bool same(const std::vector<float>& a, const std::vector<float>& b);

using Option = std::pair<std::string, std::function<void(AttentionCase&)>>;

/// Blocks of `size` keys, every third of them visible.
void see_blocks(AttentionCase& c, std::int64_t size);

/// Every option that the training passes take, each in a case or two.
std::vector<Option> options();

AttentionCase make(const Shape& shape, const Option& option, ElementType type = ElementType::float32);

}  // namespace headscope::kernels::testing::backward

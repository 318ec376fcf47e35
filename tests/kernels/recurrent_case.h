// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Random problems of kernels/recurrent.h, with keys and queries of length 1 as the models that use it have them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/check_recurrent.h"
#include "kernels/recurrent.h"

namespace headscope::kernels::testing {

struct RecurrentShape {
    std::int64_t batch = 1, heads = 1, key_heads = 1, length = 1, key_size = 8, value_size = 8;
};

/// Tensors lie as [batch, length, heads, size], as models have them.
class RecurrentCase {
public:
    RecurrentCase(const RecurrentShape& s, const RecurrentRule& r, ElementType type = ElementType::float32)
        : shape(s), rule(r) {
        std::mt19937 source(static_cast<std::uint32_t>(s.length * 31 + s.heads * 7 + s.key_size));
        std::uniform_real_distribution<float> number(-1.0F, 1.0F);
        const auto draw = [&](std::int64_t heads, std::int64_t size, bool unit) {
            std::vector<float> values(static_cast<std::size_t>(s.batch * s.length * heads * size));
            for (float& x : values) x = number(source);
            for (std::size_t n = 0; unit && n < values.size(); n += static_cast<std::size_t>(size)) {
                double squares = 1e-6;
                for (std::int64_t c = 0; c < size; ++c)
                    squares +=
                        double{values[n + static_cast<std::size_t>(c)]} * values[n + static_cast<std::size_t>(c)];
                for (std::int64_t c = 0; c < size; ++c)
                    values[n + static_cast<std::size_t>(c)] /= static_cast<float>(std::sqrt(squares));
            }
            return values;
        };
        query_ = matrix(draw(s.key_heads, s.key_size, true), s.key_heads, s.key_size, type);
        key_ = matrix(draw(s.key_heads, s.key_size, true), s.key_heads, s.key_size, type);
        value_ = matrix(draw(s.heads, s.value_size, false), s.heads, s.value_size, type);
        std::vector<float> write = draw(s.heads, 1, false);
        for (float& x : write) x = 0.5F + 0.5F * x;
        write_ = matrix(write, s.heads, 1, ElementType::float32);
        if (rule.decay != Decay::none) {
            const std::int64_t size = rule.decay == Decay::head ? 1 : s.key_size;
            std::vector<float> g = draw(s.heads, size, false);
            // Most tokens forget little, a few nearly everything, one all.
            for (float& x : g) x = x > 0.9F ? -5.0F : -0.2F * (1.0F + x) * (1.0F + x);
            g[g.size() / 2] = -200.0F;
            log_decay_ = matrix(g, s.heads, size, ElementType::float32);
        }
        choose_kept();
    }

    /// Every token decays by `log_decay`.
    void decay_all(float log_decay) {
        for (float& g : log_decay_.single) g = log_decay;
    }

    void choose_kept() {
        if (rule.chunk_size == 0) return;
        rule.chunks = (shape.length - 1) / rule.chunk_size + 1;
        if (rule.kept.empty()) {
            const float choice[] = {0.0F, 1.0F, 0.6F, 0.0F, 1.0F};
            for (std::int64_t n = 0; n < shape.batch * shape.heads * rule.chunks; ++n)
                rule.kept.push_back(choice[n % 5]);
        }
    }

    RecurrentInput input() const {
        RecurrentInput input{view(query_), view(key_), view(value_), view(write_), {}, &rule, nullptr};
        if (rule.decay != Decay::none) input.log_decay = view(log_decay_);
        return input;
    }
    float value(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
        const auto at = static_cast<std::size_t>(((b * shape.length + t) * shape.heads + h) * shape.value_size + c);
        if (value_.half.empty()) return value_.single[at];
        return std::bit_cast<float>(std::uint32_t{value_.half[at]} << 16U);
    }

    RecurrentShape shape;
    RecurrentRule rule;

private:
    struct Matrix {
        std::int64_t heads = 0, size = 0;
        std::vector<float> single;
        std::vector<std::uint16_t> half;
    };
    static Matrix matrix(const std::vector<float>& values, std::int64_t heads, std::int64_t size, ElementType type) {
        Matrix m{heads, size, {}, {}};
        if (type == ElementType::float32) m.single = values;
        for (std::size_t n = 0; type == ElementType::bfloat16 && n < values.size(); ++n)
            m.half.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[n]) >> 16U));
        return m;
    }
    TensorView view(const Matrix& m) const {
        const bool single = m.half.empty();
        const void* data = single ? static_cast<const void*>(m.single.data()) : m.half.data();
        return {data,
                single ? ElementType::float32 : ElementType::bfloat16,
                shape.batch,
                m.heads,
                shape.length,
                m.size,
                shape.length * m.heads * m.size,
                m.size,
                m.heads * m.size};
    }

    Matrix query_, key_, value_, write_, log_decay_;
};

/// All that a walk leaves.
struct RecurrentFound {
    std::vector<float> output, now, start, decay, pieces;  ///< output [batch, heads, length, value_size]
    RecurrentFound() = default;
    explicit RecurrentFound(const RecurrentCase& c) {
        const RecurrentShape& s = c.shape;
        const std::int64_t heads = s.batch * s.heads, state = heads * s.key_size * s.value_size;
        output.assign(static_cast<std::size_t>(heads * s.length * s.value_size), 777.0F);
        now.assign(static_cast<std::size_t>(state), 0.0F);
        pieces.assign(static_cast<std::size_t>(state * recurrent_pieces(c.rule, s.length)), 0.0F);
        if (c.rule.chunk_size == 0) return;
        start = now;
        if (c.rule.decay != Decay::none)
            decay.assign(static_cast<std::size_t>(heads * (c.rule.decay == Decay::head ? 1 : s.key_size)), 0.0F);
    }
    RecurrentState state() {
        return {now.data(), start.empty() ? nullptr : start.data(), decay.empty() ? nullptr : decay.data()};
    }
};

using RecurrentCall = std::function<void(const RecurrentInput&, const MutableView&, const RecurrentState&, float*)>;

/// Tokens [begin, begin + count) behind those that `found` holds.
inline void read_tokens(const RecurrentCase& c, std::int64_t begin, std::int64_t count, RecurrentFound& found,
                        float* pieces = nullptr, const RecurrentCall& call = &recurrent_forward) {
    const RecurrentShape& s = c.shape;
    RecurrentInput input = c.input();
    for (TensorView* view : {&input.query, &input.key, &input.value, &input.write, &input.log_decay}) {
        if (view->data == nullptr) continue;
        const std::int64_t bytes = view->type == ElementType::float32 ? 4 : 2;
        view->data = static_cast<const char*>(view->data) + begin * view->row_stride * bytes;
        view->length = count;
    }
    RecurrentRule rule = c.rule;
    for (std::int64_t& length : rule.length) length = std::clamp<std::int64_t>(length - begin, 0, count);
    if (rule.chunk_size > 0) {
        const std::int64_t first = begin / rule.chunk_size;
        rule.chunk_begin = begin % rule.chunk_size;
        rule.chunks = (rule.chunk_begin + count - 1) / rule.chunk_size + 1;
        rule.kept.clear();
        for (std::int64_t n = 0; n < s.batch * s.heads; ++n)
            for (std::int64_t chunk = first; chunk < first + rule.chunks; ++chunk)
                rule.kept.push_back(c.rule.kept[static_cast<std::size_t>(n * c.rule.chunks + chunk)]);
    }
    input.rule = &rule;
    call(input,
         {found.output.data() + begin * s.value_size, ElementType::float32, s.heads * s.length * s.value_size,
          s.length * s.value_size, s.value_size},
         found.state(), pieces);
}

}  // namespace headscope::kernels::testing

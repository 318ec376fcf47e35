// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/recurrent.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/check_recurrent.h"
#include "kernels/reference/elements.h"

namespace headscope::kernels {
namespace {

using Numbers = std::vector<double>;

double dot(const Numbers& a, const Numbers& b) {
    double sum = 0.0;
    for (std::size_t n = 0; n < a.size(); ++n) sum += a[n] * b[n];
    return sum;
}

/// One value head of one sequence.
struct Head {
    const RecurrentInput& input;
    std::int64_t b, h;
    const RecurrentRule& rule = *input.rule;
    std::int64_t index = b * input.value.heads + h;
    std::int64_t key_head = h / (input.value.heads / input.key.heads);
    std::int64_t keys = input.key.size;
    std::int64_t tokens = recurrent_tokens(rule, b, input.key.length);

    static Numbers row(const TensorView& view, std::int64_t batch, std::int64_t head, std::int64_t t) {
        Numbers numbers;
        for (std::int64_t c = 0; c < view.size; ++c) numbers.push_back(reference::read(view, batch, head, t, c));
        return numbers;
    }
    Numbers query(std::int64_t t) const { return row(input.query, b, key_head, t); }
    Numbers key(std::int64_t t) const { return row(input.key, b, key_head, t); }
    Numbers value(std::int64_t t) const { return row(input.value, b, h, t); }
    double write(std::int64_t t) const {
        return input.write.data == nullptr ? 1.0 : reference::read(input.write, b, h, t, 0);
    }
    /// g of each number of the key.
    Numbers log_decay(std::int64_t t) const {
        Numbers g(static_cast<std::size_t>(keys), 0.0);
        for (std::size_t a = 0; rule.decay != Decay::none && a < g.size(); ++a)
            g[a] =
                reference::read(input.log_decay, b, h, t, rule.decay == Decay::head ? 0 : static_cast<std::int64_t>(a));
        return g;
    }
    std::int64_t chunk(std::int64_t t) const { return (rule.chunk_begin + t) / rule.chunk_size; }
    double kept(std::int64_t chunk) const {
        return double{rule.kept[static_cast<std::size_t>(index * rule.chunks + chunk)]};
    }
};

/// [dk, dv], row a multiplied by e^(g_a).
void decay_rows(Numbers& state, const Numbers& g) {
    const std::size_t columns = state.size() / g.size();
    for (std::size_t n = 0; n < state.size(); ++n) state[n] *= std::exp(g[n / columns]);
}

Numbers read_state(const Numbers& state, const Numbers& x) {
    const std::size_t columns = state.size() / x.size();
    Numbers sums(columns, 0.0);
    for (std::size_t n = 0; n < state.size(); ++n) sums[n % columns] += state[n] * x[n / columns];
    return sums;
}

void leave(const Numbers& from, float* to) {
    for (const double x : from) *to++ = static_cast<float>(x);
}

void forward_head(const Head& head, const MutableView& output, const RecurrentState& all, float* pieces) {
    const RecurrentRule& rule = head.rule;
    const std::int64_t columns = head.input.value.size, length = head.input.key.length;
    const std::int64_t size = head.keys * columns, decays = rule.decay == Decay::channel ? head.keys : 1;
    Numbers state(static_cast<std::size_t>(size), 0.0), sum(static_cast<std::size_t>(head.keys), 0.0);
    if (all.now != nullptr) state.assign(all.now + head.index * size, all.now + (head.index + 1) * size);
    Numbers start = state;
    if (all.start != nullptr && rule.chunk_begin > 0) {
        start.assign(all.start + head.index * size, all.start + (head.index + 1) * size);
        for (std::int64_t a = 0; all.decay != nullptr && a < head.keys; ++a)
            sum[static_cast<std::size_t>(a)] = double{all.decay[head.index * decays + (decays == 1 ? 0 : a)]};
    }
    if (pieces != nullptr) pieces += head.index * recurrent_pieces(rule, length) * size;
    std::int64_t piece_end = 0;
    for (std::int64_t t = 0; t < head.tokens; ++t) {
        if (t == piece_end) {
            piece_end = recurrent_piece_end(rule, t, length);
            if (pieces != nullptr) {
                leave(state, pieces);
                pieces += size;
            }
        }
        const Numbers key = head.key(t), query = head.query(t), g = head.log_decay(t);
        decay_rows(state, g);
        for (std::size_t a = 0; a < g.size(); ++a) sum[a] += g[a];
        Numbers u = head.value(t);
        if (rule.delta) {
            const Numbers held = read_state(state, key);
            for (std::size_t c = 0; c < u.size(); ++c) u[c] -= held[c];
        }
        for (std::size_t n = 0; n < state.size(); ++n) state[n] += key[n / u.size()] * head.write(t) * u[n % u.size()];
        Numbers read = state;
        if (rule.chunk_size > 0 && !rule.reads_own_chunk) {
            read = start;
            decay_rows(read, sum);
        }
        const Numbers result = read_state(read, query);
        for (std::int64_t c = 0; c < columns; ++c)
            reference::write(output, head.b, head.h, t, c, rule.scale * result[static_cast<std::size_t>(c)]);
        if (rule.chunk_size == 0 || (rule.chunk_begin + t + 1) % rule.chunk_size != 0) continue;
        if (rule.decays_dropped) decay_rows(start, sum);
        const double kept = head.kept(head.chunk(t));
        for (std::size_t n = 0; n < state.size(); ++n) state[n] = start[n] + kept * (state[n] - start[n]);
        start = state;
        std::fill(sum.begin(), sum.end(), 0.0);
    }
    for (std::int64_t t = head.tokens; t < length; ++t)
        for (std::int64_t c = 0; c < columns; ++c) reference::write(output, head.b, head.h, t, c, 0.0);
    if (all.now != nullptr) leave(state, all.now + head.index * size);
    if (all.start != nullptr) leave(start, all.start + head.index * size);
    sum.resize(static_cast<std::size_t>(decays));
    if (all.decay != nullptr) leave(sum, all.decay + head.index * decays);
}

/// A_i0 .. A_ii.
Numbers implicit_row(const Head& head, std::int64_t i) {
    const RecurrentRule& rule = head.rule;
    Numbers row(static_cast<std::size_t>(i + 1), 0.0), w = head.query(i);
    const auto decay = [&](std::int64_t t) {
        const Numbers g = head.log_decay(t);
        for (std::size_t a = 0; a < w.size(); ++a) w[a] *= std::exp(g[a]);
    };
    /// A_ij, then w before token j.
    const auto pass = [&](std::int64_t j, double factor) {
        const Numbers key = head.key(j);
        const double read = head.write(j) * dot(w, key);
        row[static_cast<std::size_t>(j)] = factor * rule.scale * read;
        for (std::size_t a = 0; rule.delta && a < w.size(); ++a) w[a] -= read * key[a];
        decay(j);
    };
    if (rule.chunk_size == 0) {
        for (std::int64_t j = i; j >= 0; --j) pass(j, 1.0);
        if (head.input.direct != nullptr) row.back() += double{head.input.direct[head.h]};
        return row;
    }
    for (std::int64_t chunk = head.chunk(i); chunk >= 0; --chunk) {
        const std::int64_t first = chunk * rule.chunk_size, last = std::min(i, first + rule.chunk_size - 1);
        const bool own = chunk == head.chunk(i);
        if (own && !rule.reads_own_chunk) {
            for (std::int64_t j = last; j >= first; --j) decay(j);
            continue;
        }
        const double kept = own ? 1.0 : head.kept(chunk);
        const Numbers after = w;
        for (std::int64_t j = last; j >= first; --j) pass(j, kept);
        const Numbers walked = w;
        w = after;
        for (std::int64_t j = last; (own || rule.decays_dropped) && j >= first; --j) decay(j);
        for (std::size_t a = 0; a < w.size(); ++a) w[a] += kept * (walked[a] - w[a]);
    }
    return row;
}

}  // namespace

void recurrent_forward_reference(const RecurrentInput& input, const MutableView& output, const RecurrentState& state,
                                 float* pieces) {
    for (std::int64_t b = 0; b < input.key.batch; ++b)
        for (std::int64_t h = 0; h < input.value.heads; ++h) forward_head({input, b, h}, output, state, pieces);
}

void implicit_weights_reference(const RecurrentInput& input, std::int64_t b, std::int64_t h, std::int64_t q_begin,
                                std::int64_t q_end, std::int64_t k_begin, std::int64_t k_end, float* out) {
    const Head head{input, b, h};
    for (std::int64_t i = q_begin; i < q_end; ++i) {
        Numbers row = i < head.tokens ? implicit_row(head, i) : Numbers();
        row.resize(static_cast<std::size_t>(input.key.length), 0.0);
        for (std::int64_t j = k_begin; j < k_end; ++j) *out++ = static_cast<float>(row[static_cast<std::size_t>(j)]);
    }
}

void implicit_statistics_reference(const RecurrentInput& input, ImplicitStatistics* statistics, float* dense) {
    *statistics = {};
    const std::int64_t length = input.key.length;
    for (std::int64_t b = 0; b < input.key.batch; ++b) {
        for (std::int64_t h = 0; h < input.value.heads; ++h) {
            const Head head{input, b, h};
            double entropy = 0.0, squares = 0.0, rows = 0.0;
            for (std::int64_t i = 0; i < head.tokens; ++i) {
                const Numbers row = implicit_row(head, i);
                double sum = 0.0;
                for (const double a : row) sum += std::abs(a);
                if (sum < 0x1p-126) continue;
                rows += 1.0;
                for (const double a : row) {
                    const double p = std::abs(a) / sum;
                    if (p > 0.0) entropy -= p * std::log(p);
                    squares += p * p;
                }
            }
            statistics->entropy.push_back(entropy);
            statistics->entropy_row_mean.push_back(rows == 0.0 ? 0.0 : entropy / rows);
            statistics->concentration.push_back(std::sqrt(squares));
            if (dense == nullptr) continue;
            implicit_weights_reference(input, b, h, 0, length, 0, length, dense + head.index * length * length);
        }
    }
}

}  // namespace headscope::kernels

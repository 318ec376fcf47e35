// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/running.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/elements.h"

namespace headscope::kernels {
namespace {

using reference::read;
using reference::write;

/// One head of one sequence in float64.
struct Head {
    std::int64_t b, h, group, length, real;
    std::vector<double> score;

    Head(const RunningInput& input, std::int64_t sequence, std::int64_t head)
        : b(sequence),
          h(head),
          group(head / (input.query.heads / input.key.heads)),
          length(input.query.length),
          real(input.lengths.empty() ? length : input.lengths[static_cast<std::size_t>(sequence)]),
          score(static_cast<std::size_t>(real)) {
        for (std::int64_t i = 0; i < real; ++i) {
            double dot = 0.0;
            for (std::int64_t c = 0; c < input.query.size; ++c)
                dot += read(input.query, b, h, i, c) * read(input.key, b, group, i, c);
            score[static_cast<std::size_t>(i)] = input.scale * dot;
        }
    }

    /// A_ij for j = 0 .. i.
    std::vector<double> row(std::int64_t i) const {
        std::vector<double> weights(score.begin(), score.begin() + i + 1);
        double most = weights.front(), sum = 0.0;
        for (const double s : weights) most = s <= most ? most : s;
        for (double& w : weights) sum += w = std::exp(w - most);
        for (double& w : weights) w /= sum;
        return weights;
    }
};

template <class Body>
void for_heads(const RunningInput& input, const Body& body) {
    for (std::int64_t b = 0; b < input.query.batch; ++b) {
        for (std::int64_t h = 0; h < input.query.heads; ++h) body(Head(input, b, h));
    }
}

}  // namespace

void running_forward_reference(const RunningInput& input, const MutableView& output, const RunningRows& rows,
                               const RunningState& state) {
    const std::int64_t size = input.value.size;
    for_heads(input, [&](const Head& head) {
        const std::int64_t site = head.b * input.query.heads + head.h;
        double most = -std::numeric_limits<double>::infinity(), before = 0.0;
        std::vector<double> held(static_cast<std::size_t>(size), 0.0);
        if (state.numerator != nullptr) {
            most = state.maximum[site];
            before = state.denominator[site];
            held.assign(state.numerator + site * size, state.numerator + (site + 1) * size);
        }
        // The carried state counts as one more key, of value numerator / denominator and e^s = denominator.
        const double old = most;
        for (std::int64_t i = 0; i < head.length; ++i) {
            const std::int64_t row = site * head.length + i;
            if (i >= head.real) {
                for (std::int64_t c = 0; c < size; ++c) write(output, head.b, head.h, i, c, 0.0);
                if (rows.score == nullptr) continue;
                rows.score[row] = rows.maximum[row] = 0.0F;
                rows.denominator[row] = 1.0F;
                continue;
            }
            const double own = head.score[static_cast<std::size_t>(i)];
            most = own <= most ? most : own;
            const double share = before == 0.0 ? 0.0 : std::exp(old - most);
            double sum = share * before;
            std::vector<double> result(held);
            for (double& x : result) x *= share;
            for (std::int64_t j = 0; j <= i; ++j) {
                const double w = std::exp(head.score[static_cast<std::size_t>(j)] - most);
                sum += w;
                for (std::int64_t c = 0; c < size; ++c)
                    result[static_cast<std::size_t>(c)] += w * read(input.value, head.b, head.group, j, c);
            }
            for (std::int64_t c = 0; c < size; ++c)
                write(output, head.b, head.h, i, c, result[static_cast<std::size_t>(c)] / sum);
            if (rows.score != nullptr) {
                rows.score[row] = static_cast<float>(own);
                rows.maximum[row] = static_cast<float>(most);
                rows.denominator[row] = static_cast<float>(sum);
            }
            if (state.numerator == nullptr || i + 1 < head.real) continue;
            state.maximum[site] = static_cast<float>(most);
            state.denominator[site] = static_cast<float>(sum);
            for (std::int64_t c = 0; c < size; ++c)
                state.numerator[site * size + c] = static_cast<float>(result[static_cast<std::size_t>(c)]);
        }
    });
}

void running_backward_reference(const RunningInput& input, const RunningRows&, const TensorView&,
                                const TensorView& output_gradient, const AttentionGradients& gradients) {
    const std::int64_t keys = input.key.heads, length = input.query.length;
    const std::int64_t size = input.value.size, key_size = input.query.size;
    const auto of_keys = [&](std::int64_t columns) {
        return std::vector<double>(static_cast<std::size_t>(input.key.batch * keys * length * columns), 0.0);
    };
    std::vector<double> key_sums = of_keys(key_size), value_sums = of_keys(size);
    for_heads(input, [&](const Head& head) {
        const auto at = [&](std::int64_t i, std::int64_t columns, std::int64_t c) {
            return static_cast<std::size_t>(((head.b * keys + head.group) * length + i) * columns + c);
        };
        std::vector<double> slope(head.score.size(), 0.0);
        for (std::int64_t i = 0; i < head.real; ++i) {
            const std::vector<double> weights = head.row(i);
            std::vector<double> of_weight(weights.size(), 0.0);
            double mean = 0.0;
            for (std::int64_t j = 0; j <= i; ++j) {
                const auto n = static_cast<std::size_t>(j);
                for (std::int64_t c = 0; c < size; ++c) {
                    const double g = read(output_gradient, head.b, head.h, i, c);
                    of_weight[n] += g * read(input.value, head.b, head.group, j, c);
                    value_sums[at(j, size, c)] += weights[n] * g;
                }
                mean += weights[n] * of_weight[n];
            }
            for (std::size_t n = 0; n < weights.size(); ++n) slope[n] += weights[n] * (of_weight[n] - mean);
        }
        for (std::int64_t i = 0; i < length; ++i) {
            for (std::int64_t c = 0; c < key_size; ++c) {
                const double own = i < head.real ? input.scale * slope[static_cast<std::size_t>(i)] : 0.0;
                write(gradients.query, head.b, head.h, i, c,
                      i < head.real ? own * read(input.key, head.b, head.group, i, c) : 0.0);
                if (i < head.real) key_sums[at(i, key_size, c)] += own * read(input.query, head.b, head.h, i, c);
            }
        }
    });
    for (std::int64_t b = 0; b < input.key.batch; ++b) {
        for (std::int64_t g = 0; g < keys; ++g) {
            for (std::int64_t i = 0; i < length; ++i) {
                const std::int64_t row = (b * keys + g) * length + i;
                for (std::int64_t c = 0; c < key_size; ++c)
                    write(gradients.key, b, g, i, c, key_sums[static_cast<std::size_t>(row * key_size + c)]);
                for (std::int64_t c = 0; c < size; ++c)
                    write(gradients.value, b, g, i, c, value_sums[static_cast<std::size_t>(row * size + c)]);
            }
        }
    }
}

}  // namespace headscope::kernels

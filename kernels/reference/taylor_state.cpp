// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/taylor_state.h"

#include <vector>

#include "kernels/normaliser.h"
#include "kernels/reference/elements.h"

namespace headscope::kernels {
namespace {

/// Products of (1, x) in the order of the state, with the order of the series that each belongs to.
struct Products {
    std::vector<double> value;
    std::vector<int> order;
};

/// `scale`: of a query, whose products are multiplied by what they count for; 0: of a key.
Products products_of(const std::vector<double>& x, bool diagonal, double scale) {
    const bool query = scale != 0.0;
    Products products;
    const auto add = [&](double value, int order) {
        products.value.push_back(value);
        products.order.push_back(order);
    };
    add(1.0, 0);
    for (const double y : x) add(query ? scale * y : y, 1);
    for (std::size_t a = 0; a < x.size(); ++a) {
        for (std::size_t b = a; b < (diagonal ? a + 1 : x.size()); ++b) {
            const double counts = query ? scale * scale * (a == b ? 0.5 : 1.0) : 1.0;
            add(counts * x[a] * x[b], 2);
        }
    }
    return products;
}

std::vector<double> row_of(const TensorView& view, std::int64_t b, std::int64_t h, std::int64_t i) {
    std::vector<double> row;
    for (std::int64_t c = 0; c < view.size; ++c) row.push_back(reference::read(view, b, h, i, c));
    return row;
}

}  // namespace

void taylor_forward_reference(const TaylorInput& input, const MutableView& output, float* state) {
    const bool diagonal = traits_of(input.normaliser).diagonal, per_order = traits_of(input.normaliser).per_order;
    const std::int64_t features = taylor_features(input.normaliser, input.key.size), columns = input.value.size + 1;
    const std::int64_t group = input.query.heads / input.key.heads;
    for (std::int64_t b = 0; b < input.key.batch; ++b) {
        for (std::int64_t g = 0; g < input.key.heads; ++g) {
            std::vector<double> held(static_cast<std::size_t>(features * columns), 0.0);
            float* own = state == nullptr ? nullptr : state + (b * input.key.heads + g) * features * columns;
            if (own != nullptr) held.assign(own, own + features * columns);
            for (std::int64_t i = 0; i < input.query.length; ++i) {
                const Products keys = products_of(row_of(input.key, b, g, i), diagonal, 0.0);
                std::vector<double> value = row_of(input.value, b, g, i);
                value.push_back(1.0);
                for (std::size_t p = 0; p < keys.value.size(); ++p) {
                    for (std::size_t c = 0; c < value.size(); ++c)
                        held[p * value.size() + c] += keys.value[p] * value[c];
                }
                for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
                    const Products query = products_of(row_of(input.query, b, h, i), diagonal, input.scale);
                    std::vector<double> sums(3 * value.size(), 0.0);
                    for (std::size_t p = 0; p < query.value.size(); ++p) {
                        const std::size_t order = per_order ? static_cast<std::size_t>(query.order[p]) : 0;
                        for (std::size_t c = 0; c < value.size(); ++c)
                            sums[order * value.size() + c] += query.value[p] * held[p * value.size() + c];
                    }
                    for (std::size_t c = 0; c + 1 < value.size(); ++c) {
                        double result = 0.0;
                        for (std::size_t order = 0; order < (per_order ? 3U : 1U); ++order)
                            result += sums[order * value.size() + c] / sums[(order + 1) * value.size() - 1];
                        reference::write(output, b, h, i, static_cast<std::int64_t>(c), result);
                    }
                }
            }
            for (std::size_t n = 0; own != nullptr && n < held.size(); ++n) own[n] = static_cast<float>(held[n]);
        }
    }
}

}  // namespace headscope::kernels

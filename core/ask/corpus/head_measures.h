// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Measures of the weights of one text, head by head. Threads: the compute thread.

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/model/probe.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model
namespace headscope::store {
struct SequenceTokens;
}

namespace headscope::ask::corpus {

/// Distances 0, 1, 2 to 3, 4 to 7, .., 2048 to 4095, and 4096 on.
inline constexpr std::size_t kDistanceBins = 14;
std::size_t distance_bin(std::int64_t distance);
/// Smallest distance of a bin.
std::int64_t bin_begin(std::size_t bin);

/// Sums over all pairs of query and key of one text.
struct HeadMeasures {
    bool measured = false;                          ///< false: the site has no weights
    double self = 0, previous = 0;                  ///< weights at distance 0 and 1
    double entropy = 0;                             ///< nats
    double distance = 0, square = 0;                ///< weight times distance, and times its square
    double induction = 0;                           ///< weights on tokens that follow a copy of the query's token
    double maximum = 0;                             ///< largest weight but for row and column 0
    std::int64_t query = 0, key = 0;                ///< its place
    std::array<double, kDistanceBins> distances{};  ///< weights by distance
    std::vector<float> query_mass, key_mass;        ///< [L] weights of all keys but the first, by query and by key
    std::vector<double> indicators;                 ///< in the order of kernels::indicators_of(weights)
};

/// [site * most heads + head] of one text. Behind an encoder these are of the decoder's self-attention and its input.
std::vector<HeadMeasures> measure_heads(model::Model& model, const store::SequenceTokens& text, std::int64_t heads,
                                        model::Editor* editor, const Cancellation& cancellation);

/// For each query the keys behind earlier copies of its token.
std::vector<std::vector<std::int64_t>> induction_keys(const std::vector<std::int32_t>& ids);

}  // namespace headscope::ask::corpus

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The one table of normalisers: what forward and backward passes, maps, the reference, files and Python know of each.
// docs/dev/add-normalizer.md lists the other parts of one.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/score_rule.h"

namespace headscope::kernels {

/// How the constants of a row are found from its scores.
enum class Sweep : std::uint8_t {
    online,  ///< sums over key blocks that move with the row's maximum
    sums,    ///< sums over key blocks that do not depend on it
    panel,   ///< a search on the whole row of scores
    none     ///< there are none: a weight is a function of its own score
};

/// Term that the backward pass subtracts from d loss / d A, before it multiplies by the slope:
/// d loss / d s_j = slope_j (dA_j - mean).
enum class RowMean : std::uint8_t {
    none,    ///< there is no fused backward pass
    zero,    ///< nothing: a weight is a function of its own score, and the slope that function's
    output,  ///< sum of A dA = O . dO; A is a term of s over the sum of the terms. Slope: d term / d s over the sum
    slopes,  ///< sum of slope dA / sum of slope; A = f(s - threshold), and rows sum to 1. Slope: f'
    kept     ///< sum of slope dA over weights above 0, others having a dA of 0; A = max(slope + offset, 0), rows of
             ///< slopes sum to 1
};

/// threshold: max(s - c, 0); square: max((s - c) / 2, 0)^2; elastic: an exponential, an offset, cut off at 0.
enum class Terms : std::uint8_t { exponential, threshold, taylor, elastic, square, sigmoid };

struct NormaliserTraits {
    Normaliser normaliser;
    const char* name;  ///< in files and in Python
    Terms terms;
    Sweep sweep;
    RowMean row_mean;
    /// The second order has scores of its own; each order has a denominator of its own (Taylor weights).
    bool diagonal = false, per_order = false;

    /// Weights can be negative. Such rules know no windows, biases and caps: which keys a row sees must be one range
    /// from the first key on, and a score the dot product alone.
    constexpr bool is_signed() const { return diagonal || per_order; }
    /// Sink logits and block visibility can be joined with it.
    constexpr bool takes_sinks_and_blocks() const {
        return terms != Terms::taylor && terms != Terms::sigmoid && !takes_offsets();
    }
    /// The rule has an offset for each head.
    constexpr bool takes_offsets() const { return terms == Terms::elastic; }
    /// Weights lie within 0 and 1.
    constexpr bool is_bounded() const { return !is_signed() && !takes_offsets(); }
    /// O is found in one pass, without row constants beforehand.
    constexpr bool one_pass() const { return sweep != Sweep::panel && !is_signed() && !takes_offsets(); }
    /// The backward pass takes the products S and dA twice: what is subtracted comes of the first time.
    constexpr bool two_runs() const { return row_mean == RowMean::slopes || row_mean == RowMean::kept; }
    constexpr bool trains() const { return row_mean != RowMean::none; }
};

inline constexpr std::array<NormaliserTraits, 9> kNormalisers{{
    {Normaliser::softmax, "softmax", Terms::exponential, Sweep::online, RowMean::output},
    {Normaliser::sparsemax, "sparsemax", Terms::threshold, Sweep::panel, RowMean::slopes},
    {Normaliser::taylor, "taylor", Terms::taylor, Sweep::sums, RowMean::output},
    {Normaliser::taylor_diagonal, "taylor_diagonal", Terms::taylor, Sweep::sums, RowMean::none, true, false},
    {Normaliser::taylor_per_order, "taylor_per_order", Terms::taylor, Sweep::sums, RowMean::none, false, true},
    {Normaliser::taylor_diagonal_per_order, "taylor_diagonal_per_order", Terms::taylor, Sweep::sums, RowMean::none,
     true, true},
    {Normaliser::elastic, "elastic", Terms::elastic, Sweep::online, RowMean::kept},
    {Normaliser::entmax, "entmax", Terms::square, Sweep::panel, RowMean::slopes},
    {Normaliser::sigmoid, "sigmoid", Terms::sigmoid, Sweep::none, RowMean::zero},
}};

/// Expects a value of the table: checks of rules refuse others (find_normaliser, check_attention).
constexpr const NormaliserTraits& traits_of(Normaliser normaliser) {
    return kNormalisers[static_cast<std::size_t>(normaliser)];
}
static_assert([] {
    for (std::size_t n = 0; n < kNormalisers.size(); ++n)
        if (static_cast<std::size_t>(kNormalisers[n].normaliser) != n) return false;
    return true;
}());

constexpr bool is_known(Normaliser normaliser) {
    return static_cast<std::size_t>(normaliser) < kNormalisers.size();
}
std::optional<Normaliser> find_normaliser(std::string_view name);
/// "softmax, sparsemax, ... or taylor_diagonal_per_order", for error texts. `training`: those with a backward pass.
std::string normaliser_list(bool training = false);

constexpr const char* normaliser_name(Normaliser normaliser) {
    return is_known(normaliser) ? traits_of(normaliser).name : "";
}
constexpr bool is_taylor(Normaliser n) {
    return traits_of(n).terms == Terms::taylor;
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a Normaliser is called in files and in Python, and the families among them.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/attention.h"

namespace headscope::kernels {

inline constexpr std::array<std::pair<const char*, Normaliser>, 6> kNormalisers{{
    {"softmax", Normaliser::softmax},
    {"sparsemax", Normaliser::sparsemax},
    {"taylor", Normaliser::taylor},
    {"taylor_diagonal", Normaliser::taylor_diagonal},
    {"taylor_per_order", Normaliser::taylor_per_order},
    {"taylor_diagonal_per_order", Normaliser::taylor_diagonal_per_order},
}};

const char* normaliser_name(Normaliser normaliser);
std::optional<Normaliser> find_normaliser(std::string_view name);
/// "softmax, sparsemax, ... or taylor_diagonal_per_order", for error texts.
std::string normaliser_list();

constexpr bool is_diagonal(Normaliser n) {
    return n == Normaliser::taylor_diagonal || n == Normaliser::taylor_diagonal_per_order;
}
constexpr bool is_per_order(Normaliser n) {
    return n == Normaliser::taylor_per_order || n == Normaliser::taylor_diagonal_per_order;
}
/// Sink logits and block visibility are not for these.
constexpr bool is_taylor(Normaliser n) {
    return n == Normaliser::taylor || is_diagonal(n) || is_per_order(n);
}
/// Whether weights can be negative. Such rules know no windows, biases and caps either: which keys a row sees must be
/// one range from the first key on, and a score the dot product alone.
constexpr bool is_signed(Normaliser n) {
    return is_diagonal(n) || is_per_order(n);
}

}  // namespace headscope::kernels

// SPDX-License-Identifier: GPL-3.0-or-later
// Checks, then the operator's row of kernels/operators.h.
#include "kernels/taylor_state.h"

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/operators.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

void check(const TaylorInput& input, const MutableView& output) {
    ScoreRule rule;
    rule.scale = input.scale;
    rule.normaliser = input.normaliser;
    check_attention({input.query, input.key, input.value, &rule, nullptr});
    if (!is_known(input.normaliser) || !is_taylor(input.normaliser))
        throw Error("normaliser", "Taylor weights", normaliser_name(input.normaliser));
    if (input.key.length != input.query.length) throw Error("key", "as many as queries", "another number");
    if (output.data == nullptr) throw Error("output", "a place for it", "null");
}

}  // namespace

std::int64_t taylor_features(Normaliser normaliser, std::int64_t key_size) {
    return 1 + key_size + (traits_of(normaliser).diagonal ? key_size : key_size * (key_size + 1) / 2);
}

bool taylor_prefers_state(Normaliser normaliser, std::int64_t length, std::int64_t heads, std::int64_t key_heads,
                          std::int64_t key_size, std::int64_t value_size) {
    const auto number = [](std::int64_t x) { return static_cast<double>(x); };
    // A token's products: with half of all keys in the mean; with the state, once for each query and once to add.
    const double of_pair = number(key_size) * (traits_of(normaliser).diagonal ? 2.0 : 1.0) + number(value_size);
    const double pairs = 0.5 * number(length) * of_pair;
    const double within = 0.5 * number(cpu::kTaylorChunk) * of_pair;
    const double share = 1.0 + number(key_heads) / number(heads);
    return pairs > within + number(taylor_features(normaliser, key_size)) * number(value_size + 1) * share;
}

void taylor_forward(const TaylorInput& input, const MutableView& output, float* state) {
    check(input, output);
    kTaylorForward(input.query.device, input, output, state);
}

}  // namespace headscope::kernels

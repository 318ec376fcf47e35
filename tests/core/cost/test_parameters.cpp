// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/cost/parameters.h"

using namespace headscope;

namespace {

/// Table 10, with Pythia's vocabulary, an untied head and Qwen2's biases; the 1.7B one is a Qwen3.
cost::StackSizes paper(std::int64_t hidden, std::int64_t feed_forward, std::int64_t layers, std::int64_t heads,
                       bool qwen3 = false) {
    cost::StackSizes sizes;
    sizes.vocabulary = 50304;
    sizes.hidden = hidden;
    sizes.feed_forward = feed_forward;
    sizes.layers = layers;
    sizes.heads = heads;
    sizes.query_key_value_bias = !qwen3;
    sizes.query_key_norm = qwen3;
    return sizes;
}

}  // namespace

TEST_CASE("Parameters of the paper's four sizes are about what their names say", "[cost]") {
    // By hand: 2 V d + n (4 d^2 + 3 d f + 2 d) + d, and 3 d of biases or 2 d_h of norms a layer.
    CHECK(cost::count_parameters(paper(512, 2048, 6, 8)).total() == 76'692'992);
    CHECK(cost::count_parameters(paper(768, 3072, 12, 12)).total() == 190'560'000);
    CHECK(cost::count_parameters(paper(896, 4864, 24, 14)).total() == 481'109'888);
    CHECK(cost::count_parameters(paper(2048, 6144, 28, 16, true)).total() == 1'732'895'744);
}

TEST_CASE("The parts of a count add up, and options count where they are", "[cost]") {
    cost::StackSizes sizes;
    sizes.vocabulary = 259;
    sizes.hidden = 24;
    sizes.feed_forward = 40;
    sizes.layers = 3;
    sizes.heads = 6;
    sizes.key_value_heads = 2;
    sizes.head_size = 8;  // queries are wider than the hidden states
    const auto plain = cost::count_parameters(sizes);
    CHECK(plain.embedding == 259 * 24);
    CHECK(plain.head == 259 * 24);
    CHECK(plain.mixers == 3 * (48 + 2 * 16) * 24);
    CHECK(plain.outputs == 3 * 24 * 48);
    CHECK(plain.feed_forward == 3 * 3 * 24 * 40);
    CHECK(plain.norms == 7 * 24);
    CHECK(plain.without_embeddings() == plain.total() - 2 * 259 * 24);
    sizes.tied = true;
    CHECK(cost::count_parameters(sizes).total() == plain.total() - 259 * 24);
    sizes.query_key_value_bias = sizes.query_key_norm = true;
    CHECK(cost::count_parameters(sizes).mixers == plain.mixers + 3 * (48 + 2 * 16 + 2 * 8));
    sizes.mixers = {"mlp", "standard", "mlp"};
    const std::int64_t standard = (48 + 2 * 16) * 24 + 48 + 2 * 16 + 2 * 8, mlp = 2 * 48 * 24 + 48 * 48;
    CHECK(cost::count_parameters(sizes).mixers == 2 * mlp + standard);
}

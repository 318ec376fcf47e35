// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <limits>

#include "tests/kernels/backward_case.h"

namespace headscope::kernels::testing::backward {

namespace {

void blocks_seen(AttentionCase& c) {
    see_blocks(c, 20);
}

void padding_of_nan(AttentionCase& c) {
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        c.rule.query_length.push_back(s.queries - s.queries / 3 * b);
        c.rule.key_begin.push_back(s.keys / 5 * b);
        c.rule.key_length.push_back(s.keys - s.keys / 4 * b);
        const float nan = std::numeric_limits<float>::quiet_NaN();
        if (c.rule.key_length.back() < s.keys) c.set('v', b, 0, s.keys - 1, 0, nan);
        if (c.rule.key_begin.back() > 0) c.set('k', b, 0, 0, 0, nan);
    }
}

}  // namespace

void see_blocks(AttentionCase& c, std::int64_t size) {
    auto& blocks = c.rule.blocks;
    blocks.block_size = size;
    blocks.blocks = (c.shape().keys + size - 1) / size;
    for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
        blocks.visible.push_back(n % 3 == 1);
}

std::vector<Option> options() {
    return {
        {"causal", [](AttentionCase&) {}},
        {"everything visible", [](AttentionCase& c) { c.rule.causal = false; }},
        {"sharp", [](AttentionCase& c) { c.rule.scale *= 8.0; }},
        {"window", [](AttentionCase& c) { c.rule.window_left = 17; }},
        {"window and first keys",
         [](AttentionCase& c) {
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
         }},
        {"window on both sides",
         [](AttentionCase& c) {
             c.rule.causal = false;
             c.rule.window_left = 30;
             c.rule.window_right = 5;
         }},
        {"queries later", [](AttentionCase& c) { c.rule.query_offset = 21; }},
        {"queries earlier than all keys", [](AttentionCase& c) { c.rule.query_offset = -10; }},
        {"sigmoid",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.distance_bias.assign(static_cast<std::size_t>(c.shape().heads), -0.75F);
             c.rule.bias_length = 1;
         }},
        {"sharp sigmoid in a window with first keys, soft cap, padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
             c.rule.scale *= 6.0;
             c.rule.soft_cap = 2.5;
             padding_of_nan(c);
         }},
        {"Taylor weights, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.scale *= 6.0;
         }},
        {"Taylor weights in a window, soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.window_left = 17;
             c.rule.soft_cap = 2.5;
         }},
        {"sparsemax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::sparsemax; }},
        {"sharp sparsemax, everything visible, soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             c.rule.causal = false;
             c.rule.scale *= 8.0;
             c.rule.soft_cap = 2.5;
         }},
        {"sparsemax with sink logits and a window",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             c.rule.window_left = 17;
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 0.5F - 0.5F);
         }},
        {"sparsemax with visible blocks",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             blocks_seen(c);
         }},
        {"sparsemax, padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             padding_of_nan(c);
         }},
        {"elastic, offsets either way, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.scale *= 4.0;
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.75F - 1.0F);
         }},
        {"elastic, a bias over few distances",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(static_cast<std::size_t>(c.shape().heads), -1.0F);
             c.rule.bias_length = 33;
             c.rule.bias_origin = 32;
             c.rule.beyond_table = BeyondTable::zero;
             for (std::int64_t n = 0; n < c.shape().heads * 33; ++n)
                 c.rule.distance_bias.push_back(static_cast<float>(std::sin(static_cast<double>(n))));
         }},
        {"elastic with constant offsets, a window with first keys and a soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offset_form = OffsetForm::constant;
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.03125F - 0.0625F);
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
             c.rule.soft_cap = 2.5;
         }},
        {"elastic, queries later and padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(static_cast<std::size_t>(c.shape().heads), -0.75F);
             c.rule.query_offset = 21;
             c.rule.scale *= 3.0;
             padding_of_nan(c);
         }},
        {"entmax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::entmax; }},
        {"sharp entmax, everything visible, soft cap",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             c.rule.causal = false;
             c.rule.scale *= 8.0;
             c.rule.soft_cap = 2.5;
         }},
        {"entmax with sink logits and visible blocks",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             blocks_seen(c);
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 0.5F - 0.5F);
         }},
        {"entmax, padding that holds NaN",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             padding_of_nan(c);
         }},
        {"slopes",
         [](AttentionCase& c) {
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.slopes.push_back(0.25F / static_cast<float>(h + 1));
         }},
        {"distance biases, clamped beyond a short table",
         [](AttentionCase& c) {
             c.rule.bias_length = 21;
             c.rule.bias_origin = 17;
             for (std::int64_t x = 0; x < c.shape().heads * 21; ++x)
                 c.rule.distance_bias.push_back(static_cast<float>(std::sin(static_cast<double>(x))));
             c.rule.soft_cap = 3.0;
         }},
        {"distance biases, none beyond the table, both ways",
         [](AttentionCase& c) {
             c.rule.causal = false;
             c.rule.beyond_table = BeyondTable::zero;
             c.rule.bias_length = 31;
             c.rule.bias_origin = 15;
             for (std::int64_t x = 0; x < c.shape().heads * 31; ++x)
                 c.rule.distance_bias.push_back(static_cast<float>(std::cos(static_cast<double>(x))));
         }},
        {"soft cap",
         [](AttentionCase& c) {
             c.rule.soft_cap = 1.5;
             c.rule.scale *= 4.0;
         }},
        {"sink logits",
         [](AttentionCase& c) {
             for (std::int64_t h = 0; h < c.shape().heads; ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 2.5F - 1.0F);
         }},
        {"visible blocks", blocks_seen},
        {"visible blocks, and the own one hidden",
         [](AttentionCase& c) {
             blocks_seen(c);
             c.rule.blocks.own = false;
         }},
        {"visible blocks and padding",
         [](AttentionCase& c) {
             blocks_seen(c);
             padding_of_nan(c);
         }},
        {"padding that holds NaN", padding_of_nan},
    };
}

AttentionCase make(const Shape& shape, const Option& option, ElementType type) {
    AttentionCase c(shape, static_cast<std::uint32_t>(shape.queries * 31 + shape.heads * 7 + shape.key_size), type);
    option.second(c);
    c.name = option.first;
    return c;
}

}  // namespace headscope::kernels::testing::backward

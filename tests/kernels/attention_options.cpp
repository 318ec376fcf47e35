// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernels/attention_options.h"

#include <cmath>

#include "kernels/normaliser.h"

namespace headscope::kernels::testing {
namespace {

std::vector<std::int32_t> some_tokens(const Shape& s, int kinds) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t n = 0; n < s.batch * s.keys; ++n) tokens.push_back(static_cast<std::int32_t>(n * n / 3 % kinds));
    return tokens;
}

/// Queries and keys without a sign, so that no denominator comes near 0.
void make_positive(AttentionCase& c) {
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (const char which : {'q', 'k'}) {
            for (std::int64_t h = 0; h < (which == 'q' ? s.heads : s.key_heads); ++h) {
                for (std::int64_t i = 0; i < (which == 'q' ? s.queries : s.keys); ++i) {
                    for (std::int64_t x = 0; x < s.key_size; ++x)
                        c.set(which, b, h, i, x, std::abs(c.get(which, b, h, i, x)));
                }
            }
        }
    }
}

/// Relative positions that stand still beyond a distance: of a head's numbers the first 5 count for every pair.
void set_far(AttentionCase& c, std::int64_t distance) {
    c.rule.far_distance = distance;
    c.rule.near_begin = 5;
    const Shape& s = c.shape();
    for (std::int64_t b = 0; b < s.batch; ++b) {
        for (std::int64_t h = 0; h < s.key_heads; ++h) {
            for (std::int64_t j = 0; j < s.keys; ++j) c.set('k', b, h, j, s.key_size - 1, 0.0F);
        }
    }
}

}  // namespace

std::vector<AttentionOption> attention_options() {
    const auto heads_of = [](const AttentionCase& c) { return static_cast<std::size_t>(c.shape().heads); };
    return {
        {"causal", [](AttentionCase&) {}},
        {"everything visible", [](AttentionCase& c) { c.rule.causal = false; }},
        {"windows as long as an int",
         [](AttentionCase& c) {
             c.rule.causal = false;
             c.rule.window_left = c.rule.window_right = 2'147'483'647;
         }},
        {"soft cap",
         [](AttentionCase& c) {
             c.rule.soft_cap = 1.5;
             c.rule.scale *= 4.0;
         }},
        {"slopes",
         [=](AttentionCase& c) {
             for (std::size_t h = 0; h < heads_of(c); ++h) c.rule.slopes.push_back(0.25F / static_cast<float>(h + 1));
         }},
        {"distance bias, clamped",
         [=](AttentionCase& c) {
             c.rule.bias_length = 9;
             c.rule.bias_origin = 5;
             for (std::size_t n = 0; n < heads_of(c) * 9; ++n)
                 c.rule.distance_bias.push_back(0.3F * static_cast<float>(n % 7) - 1.0F);
             c.rule.causal = false;
         }},
        {"distance bias, zero beyond",
         [=](AttentionCase& c) {
             c.rule.bias_length = 4;
             c.rule.bias_origin = 3;
             c.rule.beyond_table = BeyondTable::zero;
             for (std::size_t n = 0; n < heads_of(c) * 4; ++n)
                 c.rule.distance_bias.push_back(0.5F * static_cast<float>(n % 5) - 1.0F);
         }},
        {"sink logits",
         [=](AttentionCase& c) {
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.sink_logits.push_back(static_cast<float>(h) * 2.5F - 1.0F);
         }},
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
        {"visible blocks",
         [](AttentionCase& c) {
             auto& blocks = c.rule.blocks;
             blocks.block_size = 20;
             blocks.blocks = (c.shape().keys + 19) / 20;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 3 == 1);
         }},
        {"visible blocks of 64 keys, and the own one hidden",
         [](AttentionCase& c) {
             auto& blocks = c.rule.blocks;
             blocks.block_size = 64;
             blocks.blocks = (c.shape().keys + 63) / 64;
             blocks.own = false;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 2 == 0);
         }},
        {"padding",
         [](AttentionCase& c) {
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"sigmoid, a bias of all scores, padding",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.distance_bias.assign(heads_of(c), -3.0F);
             c.rule.bias_length = 1;
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"sharp sigmoid in a window with first keys, vanishing weights",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sigmoid;
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
             c.rule.scale *= 90.0;
         }},
        {"sparsemax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::sparsemax; }},
        {"sparsemax, everything visible, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             c.rule.causal = false;
             c.rule.scale *= 10.0;
         }},
        {"sparsemax with sink logits",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::sparsemax;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.sink_logits.push_back(0.4F - static_cast<float>(h) * 0.3F);
         }},
        {"elastic, offsets either way, sharp",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.scale *= 4.0;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.75F - 1.0F);
         }},
        {"elastic, a bias over few distances, padding",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(heads_of(c), -1.0F);
             c.rule.bias_length = 33;
             c.rule.bias_origin = 32;
             c.rule.beyond_table = BeyondTable::zero;
             for (std::size_t n = 0; n < heads_of(c) * 33; ++n)
                 c.rule.distance_bias.push_back(0.5F * static_cast<float>(n % 11) - 2.0F);
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"elastic with constant offsets, window and first keys",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offset_form = OffsetForm::constant;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.offsets.push_back(static_cast<float>(h) * 0.03125F - 0.0625F);
             c.rule.window_left = 20;
             c.rule.first_keys = 3;
         }},
        {"elastic, everything visible, soft cap",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::elastic;
             c.rule.offsets.assign(heads_of(c), -0.75F);
             c.rule.causal = false;
             c.rule.soft_cap = 1.5;
             c.rule.scale *= 3.0;
         }},
        {"entmax", [](AttentionCase& c) { c.rule.normaliser = Normaliser::entmax; }},
        {"entmax, everything visible, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             c.rule.causal = false;
             c.rule.scale *= 10.0;
         }},
        {"entmax with sink logits and visible blocks",
         [=](AttentionCase& c) {
             c.rule.normaliser = Normaliser::entmax;
             for (std::size_t h = 0; h < heads_of(c); ++h)
                 c.rule.sink_logits.push_back(1.5F - static_cast<float>(h) * 0.75F);
             auto& blocks = c.rule.blocks;
             blocks.block_size = 20;
             blocks.blocks = (c.shape().keys + 19) / 20;
             for (std::int64_t n = 0; n < c.shape().batch * c.shape().heads * blocks.blocks; ++n)
                 blocks.visible.push_back(n % 3 == 1);
         }},
        {"Taylor weights, sharp",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.scale *= 20.0;
         }},
        {"Taylor weights in a window",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor;
             c.rule.window_left = 30;
             c.rule.first_keys = 2;
         }},
        {"Taylor weights of a diagonal second order, some negative",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor_diagonal;
             c.rule.scale *= 6.0;
         }},
        {"Taylor weights by order, padding",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor_per_order;
             make_positive(c);
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"Taylor weights by order of a diagonal second order, everything visible",
         [](AttentionCase& c) {
             c.rule.normaliser = Normaliser::taylor_diagonal_per_order;
             c.rule.causal = false;
             make_positive(c);
         }},
        {"sharp rows with vanishing weights", [](AttentionCase& c) { c.rule.scale *= 90.0; }},
        {"histogram of every fifth row, small thumbnails",
         [](AttentionCase& c) {
             c.request.histogram_row_step = 5;
             c.request.thumbnail_size = 7;
             c.request.local_distances = {0, 5, 1000};
         }},
        {"heads one by one", [](AttentionCase& c) { c.request.head_diversity = false; }},
        {"a memory before each segment",
         [](AttentionCase& c) {
             c.rule.window_left = 20;
             c.rule.window_segment = 17;
         }},
        {"segments without a memory, queries that start late",
         [](AttentionCase& c) {
             c.rule.window_left = 0;
             c.rule.window_segment = 23;
             c.rule.query_offset = 3;
             c.request.tokens.clear();
         }},
        {"positions that stand still beyond a distance, padding",
         [](AttentionCase& c) {
             set_far(c, 29);
             for (std::int64_t b = 0; b < c.shape().batch; ++b) {
                 c.rule.query_length.push_back(c.shape().queries - c.shape().queries / 3 * b);
                 c.rule.key_begin.push_back(c.shape().keys / 5 * b);
                 c.rule.key_length.push_back(c.shape().keys - c.shape().keys / 4 * b);
             }
         }},
        {"positions that stand still beyond the query itself, in segments, sparsemax",
         [](AttentionCase& c) {
             set_far(c, 0);
             c.rule.window_left = 9;
             c.rule.window_segment = 30;
             c.rule.normaliser = Normaliser::sparsemax;
         }},
    };
}

AttentionCase make_case(const Shape& shape, const AttentionOption& option, ElementType type) {
    AttentionCase c(shape, static_cast<std::uint32_t>(shape.queries * 31 + shape.heads * 7 + shape.key_size), type);
    c.request.per_query = true;
    if (shape.queries == shape.keys) c.request.tokens = some_tokens(shape, 11);
    option.second(c);
    c.name = option.first + ", L " + std::to_string(shape.queries) + " x " + std::to_string(shape.keys) + ", H " +
             std::to_string(shape.heads) + ", d " + std::to_string(shape.key_size);
    return c;
}

AttentionCase make_option_case(Shape shape, const AttentionOption& option, ElementType type) {
    shape.batch = 2;
    const AttentionCase c = make_case(shape, option, type);
    if (!c.rule.key_length.empty() || c.rule.blocks.block_size > 0) return c;
    shape.batch = 1;
    return make_case(shape, option, type);
}

std::vector<AttentionCase> cases_without_keys(ElementType type) {
    std::vector<AttentionCase> cases;
    for (const NormaliserTraits& traits : kNormalisers) {
        for (const bool sinks : {false, true}) {
            if (traits.is_signed() || (sinks && !traits.takes_sinks_and_blocks())) continue;
            AttentionCase c = make_case({2, 2, 1, 20, 20, 8, 8}, attention_options().front(), type);
            c.rule.normaliser = traits.normaliser;
            c.rule.query_offset = -3;
            c.rule.key_begin = {0, 9};
            c.rule.key_length = {0, 12};
            if (sinks) c.rule.sink_logits = {0.5F, -1.0F};
            if (traits.takes_offsets()) c.rule.offsets = {-0.75F, 0.25F};
            c.name += std::string(", rows without keys, ") + normaliser_name(traits.normaliser);
            cases.push_back(c);
        }
    }
    return cases;
}

}  // namespace headscope::kernels::testing

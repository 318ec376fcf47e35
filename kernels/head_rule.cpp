// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/head_rule.h"

namespace headscope::kernels {
namespace {

template <class T>
std::vector<T> part(const std::vector<T>& all, std::int64_t index, std::int64_t size) {
    if (all.empty()) return {};
    const auto first = all.begin() + index * size;
    return {first, first + size};
}

}  // namespace

ScoreRule rule_of_head(const ScoreRule& rule, std::int64_t b, std::int64_t h, std::int64_t heads) {
    ScoreRule own = rule;
    own.slopes = part(rule.slopes, h, 1);
    own.sink_logits = part(rule.sink_logits, h, 1);
    own.offsets = part(rule.offsets, h, 1);
    own.distance_bias = part(rule.distance_bias, h, rule.bias_length);
    own.blocks.visible = part(rule.blocks.visible, b * heads + h, rule.blocks.blocks);
    own.query_length = part(rule.query_length, b, 1);
    own.key_begin = part(rule.key_begin, b, 1);
    own.key_length = part(rule.key_length, b, 1);
    return own;
}

}  // namespace headscope::kernels

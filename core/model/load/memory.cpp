// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/memory.h"

#include <algorithm>

#include "core/base/process/free_memory.h"

namespace headscope::model {
namespace {

constexpr double kLogitChunkBytes = 64 << 20;  ///< Model::logit_rows

double heads_width(const ModelConfig& config) {
    return static_cast<double>(config.heads) * static_cast<double>(config.head_size);
}

double key_value_width(const ModelConfig& config) {
    return static_cast<double>(config.key_value_heads) * static_cast<double>(config.head_size);
}

}  // namespace

double number_bytes(checkpoint::LoadAs precision) {
    switch (precision) {
        case checkpoint::LoadAs::bfloat16:
        case checkpoint::LoadAs::float16:
            return 2;
        case checkpoint::LoadAs::float64:
            return 8;
        default:
            return 4;
    }
}

double weight_bytes(const Inspection& inspection, checkpoint::LoadAs precision) {
    return static_cast<double>(inspection.parameters) * number_bytes(precision);
}

double pass_bytes(const ModelConfig& tower, double rows, double number) {
    const auto d = static_cast<double>(tower.hidden);
    const std::int64_t chosen = tower.experts_per_token * tower.expert_size() + tower.shared_expert;
    const auto f = static_cast<double>(tower.experts > 0 ? std::max(chosen, tower.feed_forward) : tower.feed_forward);
    const double feed_forward = 3 * d + (tower.gated_feed_forward ? 3 : 2) * f;
    // Query and key before and after rotary, value, output in float32 and in the model's type.
    const double attention = 3 * d + 4 * heads_width(tower) + 3 * key_value_width(tower);
    return rows * number * (feed_forward + attention);
}

double cache_bytes(const ModelConfig& config, double rows, double number) {
    return rows * number * 2 * key_value_width(config) * static_cast<double>(config.layers);
}

double logit_bytes(const Inspection& inspection, double rows) {
    const double all = inspection.has_head ? rows * static_cast<double>(inspection.config.vocabulary) * 4 : 0;
    return std::min(all, kLogitChunkBytes);
}

double reading_bytes(const Inspection& inspection, double rows, double cached, checkpoint::LoadAs precision) {
    const ModelConfig& config = inspection.config;
    const double number = number_bytes(precision);
    double pass = pass_bytes(config, rows, number);
    if (config.encoder) pass = std::max(pass, pass_bytes(*config.encoder, rows, number));
    return weight_bytes(inspection, precision) + pass + logit_bytes(inspection, rows) +
           cache_bytes(config, cached, number);
}

void expect_memory_for(const std::function<double(checkpoint::LoadAs)>& bytes, checkpoint::LoadAs precision,
                       const DtypeAdvice& advice) {
    using checkpoint::LoadAs;
    const bool half = number_bytes(precision) == 2;
    std::vector<LessMemory> others;
    if (!half && !advice.option.empty()) others.push_back({advice.option, bytes(LoadAs::bfloat16)});
    expect_memory(half ? "weights in bfloat16" : "weights in float32", bytes(precision), others, advice.otherwise);
}

}  // namespace headscope::model

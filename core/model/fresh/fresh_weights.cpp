// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fresh/fresh_weights.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/tensor.h>

#include "core/mixers/types/alibi.h"
#include "core/model/random_fill.h"

namespace headscope::model {

void fill_fresh(const TensorPlan::Want& want, const ModelConfig& config, std::uint64_t seed, const at::Tensor& value) {
    const std::uint64_t key = random_key(seed, want.tensor);
    if (want.initial == Initial::gain) {
        value.fill_(1.0 - config.norm_gain_offset);
    } else if (want.initial == Initial::number || want.initial == Initial::fixed) {
        value.fill_(want.number);
    } else if (want.initial == Initial::ids) {
        fill_integers(value, key, config.ids());
    } else if (want.initial == Initial::drawn) {
        fill_normal(value, key, want.number);
    } else if (want.initial == Initial::hyperplane) {
        fill_normal(value, key, 1);
    } else if (want.initial == Initial::slopes) {
        value.copy_(at::tensor(mixers::alibi_slopes(value.numel(), 1), at::kFloat));
    } else if (want.initial == Initial::rate_log) {
        fill_uniform(value, key);
        value.mul_(16).clamp_min_(1e-4).log_();
    } else if (want.initial == Initial::rate_log_from_1) {
        fill_uniform(value, key);
        value.mul_(15).add_(1).log_();
    } else if (want.initial == Initial::step_bias) {
        // The inverse of softplus at dt (Gu and Dao, arXiv 2312.00752).
        fill_uniform(value, key);
        value.mul_(std::log(0.1) - std::log(0.001)).add_(std::log(0.001)).exp_().clamp_min_(1e-4);
        value.add_(at::expm1(value.neg()).neg_().log_());
    } else if (value.dim() > 1 && want.initial != Initial::bias && !config.hashed.is_table()) {
        fill_cut_normal(value, key, config.initializer_range);
    } else if (value.dim() > 1 && want.initial != Initial::bias) {
        fill_normal(value, key, config.initializer_range);
    } else {
        value.zero_();
    }
}

std::vector<float> fresh_hash_normal(std::uint64_t seed, std::int64_t ngrams) {
    TensorPlan::Want want;
    want.tensor = "model.hash_normal";
    want.initial = Initial::hyperplane;
    const at::Tensor value = at::empty({ngrams}, at::kFloat);
    fill_fresh(want, ModelConfig(), seed, value);
    const float* numbers = value.const_data_ptr<float>();
    return {numbers, numbers + ngrams};
}

}  // namespace headscope::model

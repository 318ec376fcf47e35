// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/load/tensor_plan.h"

namespace headscope::model {

/// Writes what a tensor begins with where no file has it (Initial), into `value`, of its shape and any floating type,
/// or int64 for ids. A pure function of the seed and the tensor's name and shape.
void fill_fresh(const TensorPlan::Want& want, const ModelConfig& config, std::uint64_t seed, const at::Tensor& value);

/// model.hash_normal of a fresh model with an LSH of this many n-grams; preparing its data hashes by it.
std::vector<float> fresh_hash_normal(std::uint64_t seed, std::int64_t ngrams);

}  // namespace headscope::model

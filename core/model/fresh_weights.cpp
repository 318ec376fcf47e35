// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fresh_weights.h"

#include "core/model/random_fill.h"

namespace headscope::model {

void fill_fresh(const TensorPlan::Want& want, const ModelConfig& config, std::uint64_t seed, const at::Tensor& value) {
    const std::uint64_t key = random_key(seed, want.tensor);
    if (want.initial == Initial::gain) {
        value.fill_(1.0 - config.norm_gain_offset);
    } else if (want.initial == Initial::number || want.initial == Initial::fixed) {
        value.fill_(want.number);
    } else if (want.initial == Initial::ids) {
        fill_integers(value, key, config.vocabulary);
    } else if (value.dim() > 1 && want.initial != Initial::bias) {
        fill_normal(value, key, config.initializer_range);
    } else {
        value.zero_();
    }
}

}  // namespace headscope::model

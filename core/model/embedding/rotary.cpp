// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/embedding/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "core/model/device.h"
#include "core/model/load/tensor_plan.h"
#include "core/model/training_ops.h"

namespace headscope::model {
namespace {

at::Tensor plain_frequencies(double base, std::int64_t size) {
    const at::Tensor exponents = at::arange(0, size, 2, at::kFloat) / static_cast<double>(size);
    return at::pow(at::Scalar(base), exponents).reciprocal();
}

at::Tensor dynamic_frequencies(const RopeConfig& config, std::int64_t size, double text_length, double limit) {
    const double stretch = config.factor * std::max(text_length, limit) / limit - (config.factor - 1.0);
    const double exponent = static_cast<double>(size) / static_cast<double>(size - 2);
    return plain_frequencies(config.theta * std::pow(stretch, exponent), size);
}

/// YaRN (arXiv 2309.00071): low frequencies are interpolated, high ones kept, with a ramp between the two dimensions
/// that turn beta_slow and beta_fast times over the original length.
at::Tensor yarn_frequencies(const RopeConfig& config, std::int64_t size) {
    const auto dimension = [&](double turns) {
        return static_cast<double>(size) *
               std::log(static_cast<double>(config.original_positions) / (turns * 2.0 * std::numbers::pi)) /
               (2.0 * std::log(config.theta));
    };
    double low = dimension(config.beta_fast);
    double high = dimension(config.beta_slow);
    if (config.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(size - 1));
    if (low == high) high += 0.001;

    const at::Tensor extrapolated = plain_frequencies(config.theta, size);
    const at::Tensor interpolated = (extrapolated.reciprocal() * config.factor).reciprocal();
    const at::Tensor ramp = ((at::arange(0, size / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
    const at::Tensor kept = 1 - ramp;
    return interpolated * (1 - kept) + extrapolated * kept;
}

at::Tensor longrope_frequencies(const RopeConfig& config, std::int64_t size, std::int64_t text_length) {
    const auto& factors = text_length > config.original_positions ? config.long_factor : config.short_factor;
    const at::Tensor divisor = at::tensor(factors, at::kFloat);
    return (divisor * plain_frequencies(config.theta, size).reciprocal()).reciprocal();
}

at::Tensor llama3_frequencies(const RopeConfig& config, std::int64_t size) {
    const at::Tensor plain = plain_frequencies(config.theta, size);
    const double length = static_cast<double>(config.original_positions);
    const at::Tensor wave_length = plain.reciprocal() * (2.0 * std::numbers::pi);
    const at::Tensor is_low = wave_length > length / config.low_frequency_factor;
    const at::Tensor is_high = wave_length < length / config.high_frequency_factor;
    const at::Tensor stretched = at::where(is_low, plain / config.factor, plain);
    const at::Tensor share = (wave_length.reciprocal() * length - config.low_frequency_factor) /
                             (config.high_frequency_factor - config.low_frequency_factor);
    const at::Tensor blended = (1 - share) * stretched / config.factor + share * stretched;
    return at::where(is_low.logical_or(is_high), stretched, blended);
}

/// A part of the head turns, at the whole head's frequencies; the rest stands still (frequency 0).
at::Tensor proportional_frequencies(const RopeConfig& config, std::int64_t head_size) {
    const auto turning = static_cast<std::int64_t>(config.partial * static_cast<double>(head_size)) / 2;
    const at::Tensor moving = plain_frequencies(config.theta, head_size).narrow(0, 0, turning);
    return at::cat({moving, at::zeros({head_size / 2 - turning}, at::kFloat)}) / config.factor;
}

double yarn_magnitude(double factor, double scale) {
    return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

/// Factor of cosines and sines, and so, squared, of the scores.
double magnitude(const RopeConfig& config) {
    if (config.type != "yarn" && config.type != "longrope") return 1.0;
    if (config.attention_factor) return *config.attention_factor;
    if (config.type == "longrope") {
        const double length = static_cast<double>(config.original_positions);
        return config.factor <= 1 ? 1.0 : std::sqrt(1.0 + std::log(config.factor) / std::log(length));
    }
    if (config.mscale.value_or(0) != 0 && config.mscale_all_dim.value_or(0) != 0) {
        return yarn_magnitude(config.factor, *config.mscale) / yarn_magnitude(config.factor, *config.mscale_all_dim);
    }
    return yarn_magnitude(config.factor, 1.0);
}

}  // namespace

Rotary::Rotary(const RopeConfig& config, std::int64_t head_size, std::int64_t max_positions)
    : config_(config), size_(head_size), max_positions_(max_positions) {
    // The proportional kind turns whole heads: it has frequencies of 0 in place of a part that is left out.
    if (config_.size > 0) {
        size_ = config_.size;
    } else if (config_.type != "proportional") {
        size_ = static_cast<std::int64_t>(static_cast<double>(head_size) * config_.partial);
    }
}

void Rotary::declare(TensorPlan& plan, const TensorNames& names) {
    if (!plan.from_file()) return;
    for (const std::string& name : names.rotary_frequencies) {
        if (!plan.has(names.prefix + name)) continue;
        plan.want_exact(&given_, names.prefix + name,
                        {{size_ / 2, names.keys.hidden + " / " + names.keys.heads + " / 2"}});
        return;
    }
}

bool Rotary::depends_on_length() const {
    return config_.type == "dynamic" || config_.type == "longrope";
}

at::Tensor Rotary::frequencies(std::int64_t text_length) const {
    if (given_.defined()) return on_processor(given_).to(at::kFloat);
    if (config_.type == "linear") return plain_frequencies(config_.theta, size_) / config_.factor;
    if (config_.type == "dynamic") {
        return dynamic_frequencies(config_, size_, static_cast<double>(text_length),
                                   static_cast<double>(max_positions_));
    }
    if (config_.type == "yarn") return yarn_frequencies(config_, size_);
    if (config_.type == "longrope") return longrope_frequencies(config_, size_, text_length);
    if (config_.type == "llama3") return llama3_frequencies(config_, size_);
    if (config_.type == "proportional") return proportional_frequencies(config_, size_);
    return plain_frequencies(config_.theta, size_);
}

RotaryTable Rotary::table(std::int64_t first, std::int64_t count, at::ScalarType type) const {
    const at::Tensor positions = at::arange(first, first + count, at::kFloat);
    const at::Tensor angles = positions.unsqueeze(1) * frequencies(first + count).unsqueeze(0);
    const double factor = magnitude(config_);
    return {(angles.cos() * factor).to(type), (angles.sin() * factor).to(type)};
}

at::Tensor Rotary::rotate(const at::Tensor& heads, const RotaryTable& given) const {
    const RotaryTable table{on_device(given.cosine, heads.device()), on_device(given.sine, heads.device())};
    const std::int64_t half = size_ / 2;
    const std::int64_t rest = heads.size(-1) - size_;
    const at::Tensor cosine = table.cosine.unsqueeze(1);
    const at::Tensor sine = table.sine.unsqueeze(1);
    // The numbers that are turned together, as two views [B, L, N, size / 2].
    const auto partner = [&](const at::Tensor& of, std::int64_t which) {
        const at::Tensor turned = of.narrow(-1, 0, size_);
        return config_.interleaved ? turned.unflatten(-1, {half, 2}).select(-1, which)
                                   : turned.narrow(-1, which * half, half);
    };
    const at::Tensor first = partner(heads, 0);
    const at::Tensor second = partner(heads, 1);
    if (fused(heads)) return trained_rotation(heads, table.cosine, table.sine, size_, config_.interleaved);
    if (recorded(heads)) {
        const std::vector<at::Tensor> both{first * cosine - second * sine, second * cosine + first * sine};
        const at::Tensor turned = config_.interleaved ? at::stack(both, -1).flatten(-2) : at::cat(both, -1);
        return at::cat({turned, heads.narrow(-1, size_, rest)}, -1);
    }
    // Four passes into one new tensor; half of the temporaries and of the time of the expression above.
    at::Tensor rotated = at::empty(heads.sizes(), heads.options());
    at::Tensor rotated_first = partner(rotated, 0);
    at::Tensor rotated_second = partner(rotated, 1);
    at::mul_out(rotated_first, first, cosine);
    rotated_first.addcmul_(second, sine, -1);
    at::mul_out(rotated_second, second, cosine);
    rotated_second.addcmul_(first, sine);
    if (rest > 0) rotated.narrow(-1, size_, rest).copy_(heads.narrow(-1, size_, rest));
    return rotated;
}

}  // namespace headscope::model

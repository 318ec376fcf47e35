// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A small model of one mixer, on the emulated device and on the processor.

#include <optional>
#include <string>

#include <c10/core/InferenceMode.h>

#include "core/mixers/types/type.h"
#include "core/model/trainable.h"
#include "tests/core/device/emulated_device.h"
#include "tests/core/device/on_kernels.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace headscope::test {

inline nlohmann::json stack_config(const std::string& mixer) {
    nlohmann::json config = native_config({mixer, "standard", mixer});
    // These divide by the spread of numbers made of a key: of few numbers it may come near 0.
    if (mixer == "ttt_linear" || mixer == "titans") config["mixers"][mixer]["head_dim"] = 16;
    if (!mixers::find_type(mixer)->in_decoders)
        config.update({{"stack", "encoder"},
                       {"head", {{"kind", "masked_language"}}},
                       {"output_bias", true},
                       {"tie_word_embeddings", true}});
    return config;
}

/// Kernels that take tensors of the emulated device: of the processor, on copies, or of the emulator, where they are.
enum class GpuKernels : std::uint8_t { none, emulator };

struct PassOfStack {
    at::Tensor hidden, gradients;  ///< on the processor
    double loss = 0;
};

inline PassOfStack pass_of(model::Trainable& model, std::int64_t length) {
    const model::Batch batch = some_tokens(2, length);
    PassOfStack pass;
    {
        const c10::InferenceMode inference;
        pass.hidden = model.model().forward(batch);
    }
    model.gradients().zero_();
    const at::Tensor loss = next_token_loss(model, batch);
    pass.loss = loss.item<double>();
    loss.backward();
    pass.gradients = model.gradients().cpu().unsqueeze(0);
    return pass;
}

/// Hidden states, loss and gradients are the processor's.
inline void check_mixer(const std::string& mixer, GpuKernels kernels) {
    // Three layers there and back in float32, whose operators sum in another order (test_native_gradients.cpp), on both
    // sides.
    constexpr double kError = 2 * 16 * kFloatError;
    INFO(mixer);
    const std::string config = stack_config(mixer).dump();
    const auto here = model::Trainable::create(config, 1, at::kFloat);
    const auto there = model::Trainable::create(config, 1, at::kFloat);
    there->to(emulated_device());
    REQUIRE(there->device() == emulated_device());
    REQUIRE(there->weights().cpu().equal(here->weights()));
    for (const std::int64_t length : {2, 40}) {
        INFO(length << " tokens");
        const PassOfStack expected = pass_of(*here, length);
        std::optional<OnKernels> forced;
        if (kernels == GpuKernels::emulator) forced.emplace();
        const PassOfStack found = pass_of(*there, length);
        REQUIRE(found.hidden.is_cpu());
        CHECK(largest_difference(found.hidden, expected.hidden) < kError * largest_value(expected.hidden));
        CHECK(found.loss == Approx(expected.loss).epsilon(kError));
        REQUIRE(largest_value(expected.gradients) > 0);
        CHECK(largest_difference(found.gradients, expected.gradients) < kError * largest_value(expected.gradients));
    }
}

}  // namespace headscope::test

// SPDX-License-Identifier: GPL-3.0-or-later
// Costs of stacks that are measured on a device.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "core/cost/measure.h"
#include "core/model/load/presets.h"
#include "tests/core/device/on_kernels.h"

using namespace headscope;
using test::emulated_device;

namespace {

constexpr std::int64_t kLayers = 2;
/// Passes that are measured: reading, one token more, a training step; on a device each runs twice.
constexpr std::int64_t kPasses = 2 * 3;

cost::MeasuredModel measured(const std::string& mixer, c10::Device device) {
    nlohmann::json config = model::preset_json("nano-100k");
    config["hidden_size"] = 32;
    config["num_attention_heads"] = config["num_key_value_heads"] = 2;
    config["head_dim"] = 16;
    cost::MeasureOptions options;
    options.batch = 2;
    options.length = 24;
    options.device = device;
    return cost::measure_mixer(config.dump(), mixer, kLayers, options);
}

void check_times(const cost::MeasuredModel& model) {
    double prefill = 0, decode = 0;
    for (const cost::MeasuredMixer& layer : model.layers) {
        CHECK(layer.prefill_seconds > 0);
        CHECK(layer.decode_seconds > 0);
        prefill += layer.prefill_seconds;
        decode += layer.decode_seconds;
    }
    CHECK(prefill < model.forward_seconds);
    CHECK(decode < model.decode_seconds);
    CHECK(model.training_seconds > 0);
}

}  // namespace

TEST_CASE("A stack on a device is measured there, which is idle at each reading of the clock", "[device][cost]") {
    for (const char* mixer : {"standard", "mlp"}) {
        INFO(mixer);
        const cost::MeasuredModel here = measured(mixer, at::kCPU);
        check_times(here);
        const test::EmulatedState before = test::emulated_state();
        const cost::MeasuredModel there = measured(mixer, emulated_device());
        check_times(there);
        CHECK(test::emulated_state().operators > before.operators);
        // A pass reads the clock when it begins and ends, and around each mixer.
        CHECK(test::emulated_state().waits - before.waits >= kPasses * (2 + 2 * kLayers));
        CHECK(there.cache_bytes == here.cache_bytes);
        // Kernels run on the processor, which counts. Attention is a kernel's here, which counts whole tiles.
        CHECK(there.layers.back().prefill_flops >= 0.5 * here.layers.back().prefill_flops);
        CHECK(there.training_flops >= 0.5 * here.training_flops);
    }
}

TEST_CASE("Kernels of a GPU's library count no operations", "[device][cost]") {
    const cost::MeasuredModel here = measured("standard", at::kCPU);
    const test::OnKernels forced;
    const cost::MeasuredModel there = measured("standard", emulated_device());
    check_times(there);
    CHECK(there.cache_bytes == here.cache_bytes);
    for (const double flops : {there.forward_flops, there.decode_flops, there.training_flops, there.guide_flops})
        CHECK(std::isnan(flops));
    for (const cost::MeasuredMixer& layer : there.layers) {
        CHECK(std::isnan(layer.prefill_flops));
        CHECK(std::isnan(layer.decode_flops));
    }
}

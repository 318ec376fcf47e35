// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of native models of every mixer: against finite differences, and in float32 and bfloat16.
#include "tests/catch_with_torch.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <ATen/TensorOperators.h>
#include <nlohmann/json.hpp>

#include "core/model/trainable.h"
#include "tests/core/model/native/mixer_stacks.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::native_mixers;
using model::Trainable;
using test::largest_difference;
using test::largest_value;
using test::some_tokens;

TEST_CASE("Gradients of every mixer and option agree with finite differences", "[native][gradients]") {
    for_every_stack([](const nlohmann::json& config) {
        const auto model = Trainable::create(config.dump(), 1, at::kDouble);
        const model::Batch batch = some_tokens(2, 6);
        test::next_token_loss(*model, batch).backward();
        const at::Tensor gradient = model->gradients();
        for (const model::Parameter& parameter : model->parameters()) {
            if (!parameter.trained) continue;
            // An element of every tensor.
            const std::int64_t i = parameter.value.storage_offset() + parameter.value.numel() / 2;
            INFO(parameter.name);
            // Central differences: step^2 of the third derivative and 1e-15 / step of rounding.
            CHECK(gradient[i].item<double>() ==
                  Approx(test::finite_difference(*model, batch, i)).epsilon(2e-5).margin(1e-8));
        }
    });
}

TEST_CASE("Gradients in float32 are those of float64", "[native][gradients]") {
    // Three layers there and back, whose products each processor sums in an order of its own.
    constexpr double kGradientError = 16 * test::kFloatError;
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const std::string config = stack_config({mixer, "standard", mixer}, {{"num_key_value_heads", 1}}).dump();
        const auto single = Trainable::create(config, 1, at::kFloat);
        const auto exact = Trainable::create(config, 1, at::kDouble);
        exact->weights().copy_(single->weights());
        for (std::size_t i = 0; i < exact->parameters().size(); ++i)
            exact->parameters()[i].value.copy_(single->parameters()[i].value);
        const model::Batch batch = some_tokens(3, 40);
        test::next_token_loss(*single, batch).backward();
        test::next_token_loss(*exact, batch).backward();
        CHECK(largest_difference(single->gradients().unsqueeze(0), exact->gradients().unsqueeze(0)) <
              kGradientError * largest_value(exact->gradients()));
    }
}

TEST_CASE("Gradients in bfloat16 are those of float64 to its eight bits", "[native][gradients]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const std::string config = stack_config({mixer, "standard", mixer}, {{"initializer_range", 0.2}}).dump();
        const auto half = Trainable::create(config, 1, at::kBFloat16);
        const auto exact = Trainable::create(config, 1, at::kDouble);
        for (std::size_t i = 0; i < exact->parameters().size(); ++i)
            exact->parameters()[i].value.copy_(half->parameters()[i].value);
        const model::Batch batch = some_tokens(2, 24);
        test::next_token_loss(*half, batch).backward();
        test::next_token_loss(*exact, batch).backward();
        const at::Tensor error = half->gradients().to(at::kDouble) - exact->gradients();
        // Mixers with a state round about twice as often: gates, decays and norms of heads surround it.
        const double roundings = is_recurrent(mixer) ? 8 : 4;
        CHECK(error.norm().item<double>() < roundings * test::kBfloatError * exact->gradients().norm().item<double>());
    }
}

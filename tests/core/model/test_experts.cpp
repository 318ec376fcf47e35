// SPDX-License-Identifier: GPL-3.0-or-later
// Mixtures of experts by themselves; whole models with them are in test_golden.cpp.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "core/model/experts.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;

namespace {

at::Tensor noise(std::vector<std::int64_t> shape, std::uint64_t seed) {
    return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

model::Experts some_experts(std::int64_t count, std::int64_t per_token) {
    constexpr std::int64_t hidden = 7, inner = 5;
    model::Experts experts;
    experts.router = noise({count, hidden}, 1);
    experts.router_bias = noise({count}, 2);
    experts.gate_up = noise({count, hidden, 2 * inner}, 3);
    experts.gate_up_bias = noise({count, 2 * inner}, 4);
    experts.down = noise({count, inner, hidden}, 5);
    experts.down_bias = noise({count, hidden}, 6);
    experts.per_token = per_token;
    experts.limit = 1.5;
    experts.slope = 1.702;
    return experts;
}

/// One token at a time, one number of the router at a time.
at::Tensor by_the_book(const model::Experts& experts, const at::Tensor& x) {
    const at::Tensor logits = at::linear(x, experts.router, experts.router_bias);
    at::Tensor result = at::zeros_like(x);
    for (std::int64_t row = 0; row < x.size(0); ++row) {
        std::vector<std::pair<float, std::int64_t>> order;
        for (std::int64_t e = 0; e < logits.size(1); ++e) order.push_back({logits[row][e].item<float>(), e});
        std::sort(order.rbegin(), order.rend());
        double total = 0;
        for (std::int64_t n = 0; n < experts.per_token; ++n)
            total += std::exp(order[static_cast<std::size_t>(n)].first);
        for (std::int64_t n = 0; n < experts.per_token; ++n) {
            const auto [logit, e] = order[static_cast<std::size_t>(n)];
            const at::Tensor both = x[row].matmul(experts.gate_up[e]) + experts.gate_up_bias[e];
            const at::Tensor gate = both.slice(0, 0, std::nullopt, 2).clamp_max(experts.limit);
            const at::Tensor up = both.slice(0, 1, std::nullopt, 2).clamp(-experts.limit, experts.limit);
            const at::Tensor inner = (up + 1) * gate * at::sigmoid(experts.slope * gate);
            result[row] += (inner.matmul(experts.down[e]) + experts.down_bias[e]) * (std::exp(logit) / total);
        }
    }
    return result;
}

}  // namespace

TEST_CASE("Each token goes through its own experts", "[model][experts]") {
    for (const auto& [count, per_token] : {std::pair{1, 1}, {5, 2}, {5, 5}, {9, 1}}) {
        const model::Experts experts = some_experts(count, per_token);
        const at::Tensor x = noise({33, 7}, 7);
        const at::Tensor expected = by_the_book(experts, x);
        CHECK(test::largest_difference(experts(x, nullptr).unsqueeze(0), expected.unsqueeze(0)) <
              test::kFloatError * test::largest_value(expected));
    }
}

TEST_CASE("Sigmoids choose among the best groups, and a bias counts in the choice alone", "[model][experts]") {
    constexpr std::int64_t count = 12, groups = 4, kept = 2, per_token = 3, hidden = 7, inner = 5;
    model::Experts experts;
    experts.router = noise({count, hidden}, 1);
    experts.choice_bias = noise({count}, 2);
    experts.gate_up = noise({count, 2 * inner, hidden}, 3);
    experts.down = noise({count, hidden, inner}, 4);
    experts.per_token = per_token;
    experts.routing.sigmoid = experts.routing.choice_bias = true;
    experts.routing.groups = groups;
    experts.routing.groups_per_token = kept;
    experts.routing.best_of_group = 2;
    experts.routing.scale = 2.5;
    const at::Tensor x = noise({33, hidden}, 5);
    for (const bool shares_of_chosen : {true, false}) {
        experts.shares_of_chosen = shares_of_chosen;
        at::Tensor expected = at::zeros_like(x);
        for (std::int64_t row = 0; row < x.size(0); ++row) {
            std::vector<std::pair<double, std::int64_t>> order, by_group;
            std::vector<double> weights, choice;
            for (std::int64_t e = 0; e < count; ++e) {
                weights.push_back(at::sigmoid(experts.router[e].dot(x[row])).item<double>());
                choice.push_back(weights.back() + experts.choice_bias[e].item<double>());
            }
            for (std::int64_t g = 0; g < groups; ++g) {
                std::vector<double> own(choice.begin() + g * 3, choice.begin() + g * 3 + 3);
                std::sort(own.rbegin(), own.rend());
                by_group.push_back({own[0] + own[1], g});
            }
            std::sort(by_group.rbegin(), by_group.rend());
            for (std::int64_t n = 0; n < kept; ++n) {
                for (std::int64_t e = by_group[static_cast<std::size_t>(n)].second * 3, last = e + 3; e < last; ++e)
                    order.push_back({choice[static_cast<std::size_t>(e)], e});
            }
            std::sort(order.rbegin(), order.rend());
            order.resize(per_token);
            double total = 0;
            for (const auto& [_, e] : order) total += weights[static_cast<std::size_t>(e)];
            for (const auto& [_, e] : order) {
                const at::Tensor both = at::linear(x[row], experts.gate_up[e]);
                const at::Tensor gate = both.narrow(0, 0, inner);
                const at::Tensor output =
                    at::linear(gate * at::sigmoid(gate) * both.narrow(0, inner, inner), experts.down[e]);
                expected[row] += output * (2.5 * weights[static_cast<std::size_t>(e)] / (shares_of_chosen ? total : 1));
            }
        }
        CHECK(test::largest_difference(experts(x, nullptr).unsqueeze(0), expected.unsqueeze(0)) <
              test::kFloatError * test::largest_value(expected));
    }
}

TEST_CASE("A weight may multiply what an expert reads", "[model][experts]") {
    constexpr std::int64_t count = 4, hidden = 7, inner = 5;
    model::Experts experts;
    experts.router = noise({count, hidden}, 1);
    experts.gate_up = noise({count, hidden, 2 * inner}, 3);
    experts.down = noise({count, inner, hidden}, 4);
    experts.per_token = count;
    experts.input_first = true;
    experts.shares_of_chosen = false;
    experts.routing.sigmoid = experts.routing.weighs_input = true;
    const at::Tensor x = noise({9, hidden}, 5);
    at::Tensor expected = at::zeros_like(x);
    for (std::int64_t e = 0; e < count; ++e) {
        const at::Tensor read = x * at::sigmoid(x.matmul(experts.router[e])).unsqueeze(1);
        const at::Tensor both = read.matmul(experts.gate_up[e]);
        const at::Tensor gate = both.narrow(1, 0, inner);
        expected += (gate * at::sigmoid(gate) * both.narrow(1, inner, inner)).matmul(experts.down[e]);
    }
    CHECK(test::largest_difference(experts(x, nullptr).unsqueeze(0), expected.unsqueeze(0)) <
          test::kFloatError * test::largest_value(expected));
}

TEST_CASE("Long texts go through experts in chunks without a seam, and can be stopped", "[model][experts]") {
    const model::Experts experts = some_experts(5, 2);
    const at::Tensor x = noise({1, 5000, 7}, 8);
    model::Routing all, first, second;
    const at::Tensor whole = experts(x, nullptr, &all);
    const at::Tensor parts = at::cat(
        {experts(x.narrow(1, 0, 1234), nullptr, &first), experts(x.narrow(1, 1234, 3766), nullptr, &second)}, 1);
    CHECK(test::largest_difference(whole, parts) < test::kFloatError * test::largest_value(whole));
    CHECK(all.chosen.sizes() == at::IntArrayRef{1, 5000, 2});
    CHECK(test::largest_difference(all.shares, at::cat({first.shares, second.shares}, 1)) < test::kFloatError);
    CHECK((all.chosen.ne(at::cat({first.chosen, second.chosen}, 1)).sum().item<std::int64_t>()) == 0);
    Cancellation cancellation;
    cancellation.request();
    CHECK_THROWS_AS(experts(x, &cancellation), Stopped);
}

TEST_CASE("Experts and weights are those that transformers hands to its experts", "[model][experts][golden]") {
    std::ifstream file(test::golden_file("expert_routing.json"));
    REQUIRE(file.good());
    const auto golden = nlohmann::json::parse(file);
    for (const auto& [name, layers] : golden.items()) {
        INFO(name);
        const test::GoldenModel tiny = test::golden_model(name);
        const auto model = tiny.checkpoint.build();
        test::RecordingProbe probe(false, {"expert_index", "expert_weight"});
        model::ForwardOptions options;
        options.probe = &probe;
        options.beyond_positions = true;
        model->forward(tiny.batch, options);
        REQUIRE(static_cast<std::int64_t>(layers.size()) == model->config().layers);
        for (std::int64_t layer = 0; layer < model->config().layers; ++layer) {
            const auto& theirs = layers.at(static_cast<std::size_t>(layer));
            const bool announced = probe.values.count({"expert_weight", layer}) == 1;
            REQUIRE(announced == !theirs.is_null());
            if (!announced) continue;
            const auto [weight, order] = at::sort(probe.at("expert_weight", layer), true, -1, true);
            REQUIRE(weight.sizes() ==
                    at::IntArrayRef{tiny.batch.ids.size(0), tiny.batch.ids.size(1), model->config().experts_per_token});
            const at::Tensor index = probe.at("expert_index", layer).gather(-1, order);
            const auto numbers = [&](const char* key, at::ScalarType type) {
                return at::tensor(theirs.at(key).get<std::vector<double>>(), at::kDouble).to(type).view(weight.sizes());
            };
            CHECK(index.ne(numbers("index", at::kLong)).sum().item<std::int64_t>() == 0);
            CHECK(test::largest_difference(weight, numbers("weight", at::kDouble)) < test::kFloatError);
        }
    }
}

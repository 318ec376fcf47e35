// SPDX-License-Identifier: GPL-3.0-or-later
// Values that heads give for a key, against numpy (tests/oracle/generate/rollout_numpy.py).
#include "core/analysis/value_products.h"
#include "tests/oracle/golden.h"

#include <ATen/ops/tensor.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace headscope;

TEST_CASE("Products of what heads give for a key are those of values times projection", "[analysis][norms]") {
    std::ifstream in(test::golden_file("rollout_numpy.json"));
    const nlohmann::json file = nlohmann::json::parse(in);
    const std::int64_t heads = file.at("heads"), size = file.at("size"), tokens = file.at("tokens");
    for (const auto& layer : file.at("cases").front().at("layers")) {
        const at::Tensor value =
            at::tensor(layer.at("value").get<std::vector<float>>()).view({file.at("groups"), tokens, size});
        const at::Tensor output =
            at::tensor(layer.at("output").get<std::vector<float>>()).view({file.at("width"), heads * size});
        const auto wanted = layer.at("products").get<std::vector<float>>();
        // As files have it, and as a transposed view (GPT-2).
        for (const at::Tensor& weight : {output, output.t().contiguous().t()}) {
            const auto found = analysis::value_products(value, weight, heads, Cancellation());
            REQUIRE(found.size() == wanted.size());
            for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == Approx(wanted[i]).margin(1e-5));
        }
    }
}

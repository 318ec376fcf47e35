// SPDX-License-Identifier: GPL-3.0-or-later
// What a probe keeps of layers with two branches, and of biases and offsets.
#include <catch2/catch.hpp>

#include <ATen/ops/arange.h>
#include <algorithm>
#include <cmath>

#include "core/training/trainer/probe_run.h"
#include "tests/core/analysis/fake_model.h"

using namespace headscope;

namespace {

const std::vector<double>* values_of(const training::ProbeResult& result, const std::string& name) {
    const auto found = std::find_if(result.indicators.begin(), result.indicators.end(),
                                    [&](const auto& indicator) { return indicator.name == name; });
    return found == result.indicators.end() ? nullptr : &found->values;
}

}  // namespace

TEST_CASE("The probe keeps the softmax fraction of each head, and what is of implicit matrices", "[training]") {
    tests::FakeModel::Options options;
    options.two_branches = true;
    tests::FakeModel model(options);
    const at::Tensor ids = at::arange(2 * 10, at::kLong).view({2, 10}).remainder(40);
    const auto result = training::measure(model, {ids, {}, {}}, Cancellation());
    const auto* fraction = values_of(result, "softmax_fraction");
    REQUIRE(fraction);
    REQUIRE(fraction->size() == 4 * 4);  // three layers, one of them two sites
    for (std::int64_t h = 0; h < 4; ++h) {
        double softmax = 0;
        for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t c = 0; c < 3; ++c) softmax += tests::FakeModel::type_of(b, h, c) == 0 ? 1 : 0;
        CHECK((*fraction)[static_cast<std::size_t>(3 * 4 + h)] == Approx(softmax / 6));
        CHECK(std::isnan((*fraction)[static_cast<std::size_t>(2 * 4 + h)]));
        const auto at = static_cast<std::size_t>(3 * 4 + h);
        CHECK(values_of(result, "entropy")->at(at) > 0);
        CHECK(values_of(result, "entropy")->at(at) ==
              Approx(10 * values_of(result, "entropy_row_mean")->at(at)).epsilon(1e-12));
        CHECK(std::isfinite(values_of(result, "concentration")->at(at)));
        CHECK(std::isnan(values_of(result, "sink")->at(at)));
    }
    tests::FakeModel plain({});
    CHECK(values_of(training::measure(plain, {ids, {}, {}}, Cancellation()), "softmax_fraction") == nullptr);
}

TEST_CASE("The probe keeps offsets, and biases of some distances", "[training]") {
    tests::FakeModel::Options options;
    options.distances = true;
    tests::FakeModel model(options);
    const at::Tensor ids = at::arange(2 * 10, at::kLong).view({2, 10}).remainder(40);
    const auto result = training::measure(model, {ids, {}, {}}, Cancellation());
    const auto *offset = values_of(result, "offset"), *near = values_of(result, "bias_1");
    REQUIRE(offset);
    REQUIRE(near);
    CHECK(values_of(result, "bias_0"));
    CHECK(values_of(result, "bias_4") == nullptr);  // three distances
    for (std::int64_t h = 0; h < 4; ++h) {
        CHECK(offset->at(static_cast<std::size_t>(2 * 4 + h)) == double{tests::FakeModel::offset_of(h)});
        CHECK(std::isnan(offset->at(static_cast<std::size_t>(4 + h))));
        CHECK(near->at(static_cast<std::size_t>(h)) == double{tests::FakeModel::bias_of(h, 1)});
        CHECK(std::isnan(near->at(static_cast<std::size_t>(4 + h))));
    }
    tests::FakeModel plain({});
    CHECK(values_of(training::measure(plain, {ids, {}, {}}, Cancellation()), "offset") == nullptr);
}

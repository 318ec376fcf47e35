// SPDX-License-Identifier: GPL-3.0-or-later
// AdamW and the norm of gradients against float64 by the formulas; the same bits for every thread count.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/backend.h"
#include "kernels/optimizer.h"
#include "kernels/parallel.h"

using namespace headscope::kernels;

namespace {

constexpr double kEpsilon = 0x1p-24;

float from_half(std::uint16_t x) {
    return std::bit_cast<float>(std::uint32_t{x} << 16);
}

std::uint16_t to_half(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// Parameters with their gradients, drawn from a sine; sizes that are no multiple of anything.
struct Problem {
    explicit Problem(std::int64_t size) : weights(static_cast<std::size_t>(size)), gradients(weights.size()) {
        for (std::size_t n = 0; n < weights.size(); ++n) {
            weights[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.7));
            gradients[n] = static_cast<float>(std::sin(static_cast<double>(n) * 0.31 + 1.0)) * 0.01F;
        }
        first.resize(weights.size());
        second.resize(weights.size());
    }
    FlatParameters view(std::int64_t decayed) {
        return {static_cast<std::int64_t>(weights.size()),
                decayed,
                ElementType::float32,
                weights.data(),
                nullptr,
                ElementType::float32,
                gradients.data(),
                first.data(),
                second.data()};
    }
    std::vector<float> weights, gradients, first, second;
};

/// One weight, updated by the formula in float64.
struct Book {
    double weight = 0.0, first = 0.0, second = 0.0;
    void update(double gradient, const AdamWSettings& s, bool decays) {
        gradient *= s.gradient_scale;
        first = s.beta1 * first + (1.0 - s.beta1) * gradient;
        second = s.beta2 * second + (1.0 - s.beta2) * gradient * gradient;
        const double t = static_cast<double>(s.step);
        const double mean = first / (1.0 - std::pow(s.beta1, t));
        const double root = std::sqrt(second / (1.0 - std::pow(s.beta2, t)));
        weight -= s.rate * (mean / (root + s.epsilon) + (decays ? s.decay * weight : 0.0));
    }
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("AdamW follows its formula, with decay where it is due", "[optimizer]") {
    const std::int64_t decayed = 131;
    Problem problem(1000);
    std::vector<Book> books(problem.weights.size());
    for (std::size_t n = 0; n < books.size(); ++n) books[n].weight = double{problem.weights[n]};
    AdamWSettings settings{3e-3, 0.9, 0.95, 1e-8, 0.1};
    settings.gradient_scale = 0.5;
    for (settings.step = 1; settings.step <= 20; ++settings.step) {
        for (std::size_t n = 0; n < books.size(); ++n)
            books[n].update(double{problem.gradients[n]}, settings, n < static_cast<std::size_t>(decayed));
        adamw_step(problem.view(decayed), settings);
    }
    for (std::size_t n = 0; n < books.size(); ++n) {
        INFO("weight " << n);
        // Each step rounds the weight once, and its own size by a few units.
        CHECK(std::abs(double{problem.weights[n]} - books[n].weight) <= 20.0 * kEpsilon * (1.0 + 16.0 * settings.rate));
        CHECK(double{problem.first[n]} == Approx(books[n].first).epsilon(1e-5).margin(1e-9));
    }
    CHECK(problem.weights[5] != Approx(std::sin(5 * 0.7)));
}

TEST_CASE("bfloat16 weights are the rounded copy of float32 ones, and gradients are cleared on request",
          "[optimizer]") {
    Problem single(777);
    std::vector<std::uint16_t> weights, gradients;
    for (std::size_t n = 0; n < single.weights.size(); ++n) {
        weights.push_back(to_half(single.weights[n]));
        gradients.push_back(to_half(single.gradients[n]));
        single.gradients[n] = from_half(gradients.back());
    }
    Problem master(777);
    FlatParameters flat = master.view(400);
    flat.type = flat.gradient_type = ElementType::bfloat16;
    flat.weights = weights.data();
    flat.master = master.weights.data();
    flat.gradients = gradients.data();
    AdamWSettings settings{1e-2, 0.9, 0.999, 1e-8, 0.1};
    adamw_step(single.view(400), settings);
    settings.clear_gradients = true;
    adamw_step(flat, settings);
    CHECK(same(master.weights, single.weights));
    for (std::size_t n = 0; n < weights.size(); ++n) {
        REQUIRE(weights[n] == to_half(master.weights[n]));
        REQUIRE(gradients[n] == 0);
        REQUIRE(single.gradients[n] != 0.0F);
    }
}

TEST_CASE("updates and norms have the same bits for every thread count", "[optimizer]") {
    const AdamWSettings settings{1e-3, 0.9, 0.999, 1e-8, 0.1};
    Problem first(200'001);
    double norm = 0.0;
    for (const int number : {1, 2, 7}) {
        set_threads(number);
        Problem problem(200'001);
        const double found = squared_norm(problem.gradients.data(), ElementType::float32, 200'001);
        adamw_step(problem.view(150'000), settings);
        if (number == 1) {
            first = problem;
            norm = found;
        }
        CHECK(same(problem.weights, first.weights));
        CHECK(found == norm);
    }
    set_threads(0);
}

TEST_CASE("the norm is the sum of squares, and shows what is not finite", "[optimizer]") {
    for (const std::int64_t size : {0, 1, 15, 16, 17, 70'000}) {
        Problem problem(size);
        double expected = 0.0;
        for (const float g : problem.gradients) expected += double{g} * double{g};
        CHECK(squared_norm(problem.gradients.data(), ElementType::float32, size) == Approx(expected).epsilon(1e-12));
    }
    std::vector<std::uint16_t> half{to_half(1.5F), to_half(-2.0F), to_half(0.25F)};
    CHECK(squared_norm(half.data(), ElementType::bfloat16, 3) == 1.5 * 1.5 + 4.0 + 0.0625);
    Problem problem(100);
    problem.gradients[99] = std::numeric_limits<float>::infinity();
    CHECK(std::isinf(squared_norm(problem.gradients.data(), ElementType::float32, 100)));
    problem.gradients[42] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(squared_norm(problem.gradients.data(), ElementType::float32, 100)));
}

TEST_CASE("the optimiser refuses what does not fit together", "[optimizer]") {
    Problem problem(10);
    const AdamWSettings settings{1e-3};
    CHECK_THROWS_AS(adamw_step(problem.view(11), settings), Error);
    FlatParameters flat = problem.view(10);
    flat.master = problem.first.data();
    CHECK_THROWS_AS(adamw_step(flat, settings), Error);
    AdamWSettings wrong = settings;
    wrong.step = 0;
    CHECK_THROWS_AS(adamw_step(problem.view(10), wrong), Error);
    wrong = settings;
    wrong.rate = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(adamw_step(problem.view(10), wrong), Error);
    wrong = settings;
    wrong.beta2 = 1.0;
    CHECK_THROWS_AS(adamw_step(problem.view(10), wrong), Error);
}

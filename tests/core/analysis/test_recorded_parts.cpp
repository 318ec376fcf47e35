// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of a file that some models have: linear branches, head embeddings, biases by distance, hashes, experts, norms.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/analysis/analysis_requests.h"
#include "tests/core/analysis/fake_model.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using tests::analyse;
using tests::files_in;
using tests::float_epsilon;
using tests::request_for;
using tests::require_same_numbers;

TEST_CASE("Of a linear branch the file has its types, its matrix and what follows from it", "[analysis]") {
    tests::FakeModel::Options two;
    two.two_branches = true;
    tests::FakeModel model(two);
    const test::TemporaryFolder folder;
    auto request = request_for({11, 7, 11});
    std::vector<std::pair<std::int64_t, std::int64_t>> told;
    request.site_done = [&](std::int64_t s, std::int64_t site) { told.emplace_back(s, site); };
    const auto plain = analyse(model, request, folder / "plain.headscope.h5");
    CHECK(told.size() == 12);
    CHECK(std::count(told.begin(), told.end(), std::pair<std::int64_t, std::int64_t>{1, 3}) == 1);
    CHECK(plain->done_sites().size() == 12);
    CHECK(plain->header().type_chunk == 4);
    CHECK_FALSE(plain->has_implicit(0, 3));
    CHECK(std::isnan(plain->thumbnail("mean", 0, 3).data[0]));
    CHECK_FALSE(plain->branch_weights(0, 2).has_value());

    request.record.implicit = request.record.branches = true;
    const auto file = analyse(model, request, folder / "all.headscope.h5");
    require_same_numbers(*plain, 0, *file, 0);
    const auto entropy = file->indicator("entropy"), row_mean = file->indicator("entropy_row_mean"),
               concentration = file->indicator("concentration"), fraction = file->indicator("softmax_fraction");
    for (std::int64_t s = 0; s < 3; ++s) {
        const std::int64_t length = s == 1 ? 7 : 11, chunks = (length + 3) / 4, b = s == 2 ? 1 : 0;
        const auto types = file->token_types(s, 3).value();
        CHECK(file->implicit_deviation(s, 3) == tests::FakeModel::kDeviation);
        for (std::int64_t h = 0; h < 4; ++h) {
            const auto at = static_cast<std::size_t>((s * 4 + 3) * 4 + h);
            double softmax = 0;
            for (std::int64_t c = 0; c < 3; ++c) {
                const double type = types.data[static_cast<std::size_t>(h * 3 + c)];
                CHECK(type == (c < chunks ? tests::FakeModel::type_of(b, h, c) : -1));
                softmax += type == 0 ? 1 : 0;
            }
            CHECK(fraction.data[at] == softmax / static_cast<double>(chunks));
            CHECK(std::isnan(fraction.data[at - 4]));
            const auto matrix = file->implicit(s, 3, h, {0, length}, {0, length}).value();
            const auto expected = tests::implicit_statistics_of(matrix, 1, length);
            // Float64 sums over float32 coefficients: the same terms in another order.
            CHECK(entropy.data[at] == Approx(expected.entropy[0]).epsilon(1e-12));
            CHECK(row_mean.data[at] == Approx(expected.entropy_row_mean[0]).epsilon(1e-12));
            CHECK(concentration.data[at] == Approx(expected.concentration[0]).epsilon(1e-12));
            CHECK(std::isnan(file->indicator("sink").data[at]));
            CHECK(file->thumbnail("mean", s, 3).data[static_cast<std::size_t>((h * 11 + 6) * 11 + 2)] ==
                  static_cast<double>(matrix[static_cast<std::size_t>(6 * length + 2)]));
        }
        const auto weights = file->branch_weights(s, 2).value();
        CHECK(weights.data[static_cast<std::size_t>((11 + 4) * 2)] == Approx(0.8));
        CHECK(weights.data[static_cast<std::size_t>((11 + 4) * 2 + 1)] == Approx(0.2));
    }
    request.layers = {0};
    const auto first = analyse(model, request, folder / "first.headscope.h5");
    CHECK(first->done_sites().size() == 3);
    CHECK(first->token_types(0, 3)->data == std::vector<double>(12, -1));
}

TEST_CASE("Head embeddings are kept, once for all texts", "[analysis]") {
    tests::FakeModel::Options embedded;
    embedded.head_embeddings = true;
    tests::FakeModel model(embedded);
    const test::TemporaryFolder folder;
    const auto file = analyse(model, request_for({11, 7}), folder / "a.headscope.h5");
    CHECK(file->header().head_embedding_size == 8);
    const auto stored = file->parameters("head_embedding").value();
    REQUIRE(stored.shape == std::vector<std::int64_t>{3, 3, 4, 8});
    constexpr std::size_t kOfSite = 3 * 4 * 8;
    CHECK(std::isnan(stored.data[0]));
    for (std::size_t i = 0; i < kOfSite; ++i) CHECK(stored.data[2 * kOfSite + i] == static_cast<double>(i) / 8);
    tests::FakeModel plain({});
    CHECK_FALSE(analyse(plain, request_for({5}), folder / "b.headscope.h5")->parameters("head_embedding").has_value());
}

TEST_CASE("Biases by distance, slopes and offsets are kept, once for all texts", "[analysis]") {
    tests::FakeModel::Options distances;
    distances.distances = true;
    tests::FakeModel model(distances);
    const test::TemporaryFolder folder;
    auto request = request_for({11, 7});
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    const auto& header = file->header();
    CHECK(header.bias_window == 3);
    CHECK(header.bias_first == 0);
    const auto bias = file->parameters("distance_bias").value(), slope = file->parameters("slope").value(),
               offset = file->parameters("offset").value();
    REQUIRE(bias.shape == std::vector<std::int64_t>{3, 4, 3});
    for (std::int64_t h = 0; h < 4; ++h) {
        for (std::int64_t d = 0; d < 3; ++d) {
            CHECK(bias.data[static_cast<std::size_t>(h * 3 + d)] == double{tests::FakeModel::bias_of(h, d)});
            CHECK(std::isnan(bias.data[static_cast<std::size_t>((4 + h) * 3 + d)]));
        }
        CHECK(slope.data[static_cast<std::size_t>(4 + h)] == double{tests::FakeModel::slope_of(h)});
        CHECK(std::isnan(slope.data[static_cast<std::size_t>(h)]));
        CHECK(offset.data[static_cast<std::size_t>(2 * 4 + h)] == double{tests::FakeModel::offset_of(h)});
        CHECK(std::isnan(offset.data[static_cast<std::size_t>(h)]));
    }
    // Heads with an offset release mass, and have zeros.
    CHECK(file->indicator("zero_fraction").data[2 * 4] > 0);
    request.layers = {1};
    const auto second = analyse(model, request, folder / "b.headscope.h5");
    CHECK(std::isnan(second->parameters("distance_bias")->data[0]));
    CHECK(second->parameters("slope")->data[4] == double{tests::FakeModel::slope_of(0)});
    tests::FakeModel plain({});
    CHECK_FALSE(analyse(plain, request_for({5}), folder / "c.headscope.h5")->parameters("slope").has_value());
}

TEST_CASE("What a model without recurrent layers cannot have recorded is refused", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    for (const bool implicit : {true, false}) {
        auto request = request_for({5});
        (implicit ? request.record.implicit : request.record.branches) = true;
        try {
            analyse(model, request, folder / "a.headscope.h5");
            FAIL("was run");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            CHECK(error.where() == (implicit ? "--record implicit" : "--record branch-weights"));
        }
    }
    CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("A file of hashed words has their bits", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({3, 2});
    CHECK_FALSE(analyse(model, request, folder / "plain.headscope.h5")->header().hashed());
    request.sequences[0].hashes = {"", "b9386d96710ddd52bc49ff0033ead10f", ""};
    request.sequences[1].hashes = {"", ""};
    const auto file = analyse(model, request, folder / "hashed.headscope.h5");
    CHECK(file->header().hashed());
    for (std::size_t s = 0; s < 2; ++s) CHECK(file->header().sequences[s].hashes == request.sequences[s].hashes);
    request.sequences[1].hashes = {""};
    CHECK_THROWS_AS(analyse(model, request, folder / "wrong.headscope.h5"), Error);
}

TEST_CASE("Experts are kept in order of weight, of measured layers that have some", "[analysis]") {
    tests::FakeModel model({.layers = 4, .experts = 7});
    const test::TemporaryFolder folder;
    auto request = request_for({9, 5, 9});
    request.record.experts = true;
    request.layers = {0, 1, 2};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    CHECK(file->header().experts == 7);
    CHECK(file->header().experts_per_token == 2);
    for (std::int64_t s = 0; s < 3; ++s) {
        const auto& ids = request.sequences[static_cast<std::size_t>(s)].ids;
        for (std::int64_t layer = 0; layer < 4; ++layer) {
            const auto experts = file->experts(s, layer);
            REQUIRE(experts->index.data.size() == 18);
            for (std::size_t i = 0; i < 9; ++i) {
                const bool there = (layer == 1 || layer == 2) && i < ids.size();
                const double share = there ? ids[i] / 100.0 : 0;
                CHECK(experts->index.data[2 * i] == (there ? (ids[i] + layer) % 7 : -1));
                CHECK(experts->index.data[2 * i + 1] == (there ? ids[i] % 7 : -1));
                REQUIRE(std::isnan(experts->weight.data[2 * i]) == !there);
                if (there) CHECK(experts->weight.data[2 * i] == Approx(1 - share).epsilon(4 * float_epsilon));
                if (there) CHECK(experts->weight.data[2 * i + 1] == Approx(share).epsilon(4 * float_epsilon));
            }
        }
    }
}

TEST_CASE("Without an output projection that reads heads there are no norms", "[analysis][norms]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({12});
    request.record.maps = request.record.norms = true;
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    REQUIRE(file->header().record.norms);
    const auto products = file->value_products(0, 0);
    REQUIRE(products);
    REQUIRE((products->shape == std::vector<std::int64_t>{12, 4, 4}));
    for (const double value : products->data) REQUIRE(std::isnan(value));
}

TEST_CASE("What the first layer reads is kept where layer 0 is left out", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({12});
    request.record.states = true;
    const auto whole = analyse(model, request, folder / "a.headscope.h5");
    request.skip_layers = {0};
    const auto skipped = analyse(model, request, folder / "b.headscope.h5");
    CHECK(skipped->state("hidden_norm", 0, 0)->data == whole->state("hidden_norm", 0, 0)->data);
    CHECK(std::isnan(skipped->state("hidden_norm", 0, 1)->data[0]));
    CHECK(std::isfinite(skipped->state("hidden_norm", 0, 2)->data[0]));
}

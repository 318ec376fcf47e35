// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of an analysis: batches, layers, agreement of what is recorded, failures and progress.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/analysis/request.h"
#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "kernels/attention.h"
#include "kernels/statistics.h"
#include "tests/core/analysis/analysis_requests.h"
#include "tests/core/analysis/fake_model.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using tests::analyse;
using tests::files_in;
using tests::float_epsilon;
using tests::request_for;
using tests::require_same_numbers;

TEST_CASE("Sequences of equal length run together and come out as if alone", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({9, 5, 9, 9, 5, 1});
    request.batch_tokens = 20;
    const auto all = analyse(model, request, folder / "all.headscope.h5");
    REQUIRE(model.batch_sizes == std::vector<std::int64_t>{2, 2, 1, 1});
    for (std::size_t s = 0; s < request.sequences.size(); ++s) {
        analysis::AnalysisRequest alone;
        alone.sequences = {request.sequences[s]};
        const auto one = analyse(model, alone, folder / "one.headscope.h5");
        require_same_numbers(*all, static_cast<std::int64_t>(s), *one, 0);
        const auto x = all->loss(static_cast<std::int64_t>(s)).data, y = one->loss(0).data;
        for (std::size_t i = 0; i < 9; ++i) {
            const bool exists = i + 1 < request.sequences[s].ids.size();
            REQUIRE(std::isnan(x[i]) == !exists);
            if (exists) REQUIRE(x[i] == Approx(y[i]).epsilon(256 * float_epsilon));
        }
    }
}

TEST_CASE("Maps, dense rows, states and logits agree with one another", "[analysis]") {
    const bool causal = GENERATE(true, false);
    tests::FakeModel model({.causal = causal});
    const test::TemporaryFolder folder;
    auto request = request_for({17, 33, 17});
    request.record = {true, true, true, true, false};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    const auto entropy = file->indicator("entropy"), sink = file->indicator("sink");
    const auto low = file->score_statistic("minimum"), high = file->score_statistic("maximum");
    for (std::int64_t s = 0; s < 3; ++s) {
        const auto length = static_cast<std::int64_t>(request.sequences[static_cast<std::size_t>(s)].ids.size());
        for (std::int64_t site = 0; site < 3; ++site) {
            const auto map = file->map(s, site);
            REQUIRE(map.has_value());
            const auto norms = file->state("q_norm", s, site);
            for (std::int64_t h = 0; h < 4; ++h) {
                const auto at = static_cast<std::size_t>((s * 3 + site) * 4 + h);
                // Scores and row constants are float32: a weight is off by that much, relative to itself.
                const double relative =
                    4 * float_epsilon * (1 + std::max(std::abs(low.data[at]), std::abs(high.data[at])));
                const auto rows = file->attention_rows(s, site, h, 0, length);
                REQUIRE(rows.has_value());
                std::vector<float> again(static_cast<std::size_t>(length * length));
                kernels::attention_weights(map->input(), map->row_constant, 0, h, 0, length, 0, length, again.data());
                double plain_entropy = 0, first = 0;
                for (std::int64_t i = 0; i < length; ++i) {
                    double sum = 0;
                    for (std::int64_t j = 0; j < length; ++j) {
                        const double weight = rows->data[static_cast<std::size_t>(i * length + j)];
                        REQUIRE(weight == Approx(again[static_cast<std::size_t>(i * length + j)]).epsilon(relative));
                        sum += weight;
                        if (weight > 0) plain_entropy -= weight * std::log(weight);
                    }
                    REQUIRE(sum == Approx(1).epsilon(4 * float_epsilon));  // whatever the scores are
                    first += rows->data[static_cast<std::size_t>(i * length)];
                    // The fake model's rows of q are what it announced: no rotary in between.
                    double square = 0;
                    for (std::int64_t c = 0; c < 8; ++c) {
                        const double x = map->query[static_cast<std::size_t>((h * length + i) * 8 + c)];
                        square += x * x;
                    }
                    REQUIRE(norms->data[static_cast<std::size_t>(h * 33 + i)] ==
                            Approx(std::sqrt(square)).epsilon(16 * float_epsilon));
                }
                // d(-w log w) = -(log w + 1) dw, summed over a row: at most relative * (entropy + 1).
                REQUIRE(entropy.data[at] ==
                        Approx(plain_entropy).margin(relative * (plain_entropy + static_cast<double>(length))));
                REQUIRE(sink.data[at] == Approx(first / static_cast<double>(length)).epsilon(relative));
            }
        }
        const auto logits = file->logits(s, 0, 33)->data;
        const auto loss = file->loss(s).data;
        for (std::int64_t i = 0; i < 33; ++i) {
            const bool exists = causal && i + 1 < length;
            REQUIRE(std::isnan(logits[static_cast<std::size_t>(i * 40)]) == (i >= length));
            REQUIRE(std::isnan(loss[static_cast<std::size_t>(i)]) == !exists);
            if (!exists) continue;
            double sum = 0;
            for (std::size_t v = 0; v < 40; ++v) sum += std::exp(logits[static_cast<std::size_t>(i * 40) + v]);
            const auto next = static_cast<std::size_t>(
                request.sequences[static_cast<std::size_t>(s)].ids[static_cast<std::size_t>(i + 1)]);
            const double expected = std::log(sum) - logits[static_cast<std::size_t>(i * 40) + next];
            REQUIRE(loss[static_cast<std::size_t>(i)] ==
                    Approx(expected).epsilon(64 * float_epsilon).margin(64 * float_epsilon * 40));
        }
        for (std::int64_t boundary = 0; boundary <= 3; ++boundary) {
            REQUIRE(
                std::isfinite(file->state("hidden_variance", s, boundary)->data[static_cast<std::size_t>(length - 1)]));
        }
    }
}

TEST_CASE("Only the layers asked for are measured, and skipped ones are left out", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    auto request = request_for({12});
    request.record.maps = request.record.states = true;
    request.layers = {0, 1};
    request.skip_layers = {1};
    const auto file = analyse(model, request, folder / "a.headscope.h5");
    const auto sink = file->indicator("sink");
    for (std::int64_t site = 0; site < 3; ++site) {
        REQUIRE(file->site_done(0, site) == (site == 0));
        REQUIRE(std::isnan(sink.data[static_cast<std::size_t>(site * 4)]) == (site != 0));
        REQUIRE(file->map(0, site).has_value() == (site == 0));
        REQUIRE(std::isnan(file->state("v_norm", 0, site)->data[0]) == (site != 0));
    }
    REQUIRE(std::isfinite(file->loss(0).data[0]));
    request.layers = {3};
    CHECK_THROWS_AS(analyse(model, request, folder / "b.headscope.h5"), Error);
    request.layers = {1};
    CHECK_THROWS_AS(analyse(model, request, folder / "b.headscope.h5"), Error);  // asked for and left out
    REQUIRE(files_in(folder.path()) == 1);
}

TEST_CASE("Histograms count every allowed pair, of sampled rows where the text is long", "[analysis]") {
    tests::FakeModel model({.layers = 1, .positions = 0});
    const test::TemporaryFolder folder;
    const auto counted = [&](std::int64_t length, bool all_rows) {
        auto request = request_for({length});
        request.all_rows = all_rows;
        const auto file = analyse(model, request, folder / "a.headscope.h5");
        const auto counts = file->histogram(0, 0).data;
        return std::pair(std::accumulate(counts.begin(), counts.begin() + kernels::kHistogramBins, 0.0),
                         file->histogram_row_step());
    };
    REQUIRE(counted(1024, false) == std::pair(1024.0 * 1025 / 2, std::int64_t{1}));
    REQUIRE(counted(1025, true) == std::pair(1025.0 * 1026 / 2, std::int64_t{1}));
    double sampled = 0;
    for (int i = 7; i < 1025; i += 8) sampled += i + 1;
    REQUIRE(counted(1025, false) == std::pair(sampled, std::int64_t{8}));
}

TEST_CASE("A cancelled run ends in Stopped and leaves nothing", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    Cancellation cancellation;
    NoProgress progress;
    model.before_layer = [&](std::int64_t layer) {
        REQUIRE(files_in(folder.path()) == 1);  // the partial file
        if (layer == 2) cancellation.request();
    };
    CHECK_THROWS_AS(analysis::run(model, request_for({12}), folder / "a.headscope.h5", {}, progress, cancellation),
                    Stopped);
    REQUIRE(files_in(folder.path()) == 0);
}

TEST_CASE("A run that fails is one Error and leaves nothing", "[analysis]") {
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    model.before_layer = [](std::int64_t layer) {
        if (layer == 1) throw std::bad_alloc();
    };
    try {
        analyse(model, request_for({12}), folder / "a.headscope.h5");
        FAIL("went through");
    } catch (const Error& error) {
        REQUIRE(error.code() == ErrorCode::memory);
    }
    REQUIRE(files_in(folder.path()) == 0);
}

TEST_CASE("What cannot be analysed is refused before a file appears", "[analysis]") {
    tests::FakeModel model({.head = false});
    bool ran = false;
    model.before_layer = [&](std::int64_t) { ran = true; };
    const test::TemporaryFolder folder;
    const auto refused = [&](const analysis::AnalysisRequest& request) {
        CHECK_THROWS_AS(analyse(model, request, folder / "a.headscope.h5"), Error);
    };
    refused(request_for({}));
    refused(request_for({5, 0}));
    refused(request_for({5, 65}));  // beyond the positions
    auto request = request_for({5});
    request.sequences[0].ids[3] = 40;
    refused(request);
    request = request_for({5});
    request.record.logits = true;
    refused(request);
    request = request_for({5});
    request.record.experts = true;
    refused(request);
    CHECK_FALSE(ran);
    REQUIRE(files_in(folder.path()) == 0);
}

TEST_CASE("Progress grows evenly and ends at its total", "[analysis]") {
    struct Recorder final : Progress {
        void advance(double done, double total, const std::string& what) override {
            REQUIRE(done >= last);
            CHECK_FALSE(what.empty());
            last = done;
            REQUIRE((of == 0 || of == total));
            of = total;
            ++calls;
        }
        double last = 0, of = 0;
        int calls = 0;
    } recorder;
    tests::FakeModel model({});
    const test::TemporaryFolder folder;
    const Cancellation cancellation;
    analysis::run(model, request_for({12, 30, 12}), folder / "a.headscope.h5", {}, recorder, cancellation);
    REQUIRE(recorder.calls == 8);  // two batches of three layers and a loss
    REQUIRE(recorder.last == Approx(recorder.of));
}

TEST_CASE("NaN is reported by the first place of each kind, and stored", "[analysis][problems]") {
    const test::TemporaryFolder folder;
    tests::FakeModel good({}), bad({});
    REQUIRE(analyse(good, request_for({9, 9}), folder / "good.h5")->problems().empty());
    bad.loaded().not_finite = {{"layers.1.value", 1, 1024}, {"layers.2.value", 3, 1024}};
    bad.spoil(1);
    const auto file = analyse(bad, request_for({9, 9}), folder / "bad.h5");
    const std::vector<std::string> expected{
        "weights: 1 of 1 024 numbers of layers.1.value are NaN or infinite, and some of 1 tensor more",
        "activations: NaN or infinite, first in \"hidden\" of layer 1, token 0 of sequence 0; so are 1 more",
        "scores: NaN or infinite, first in layer 2, head 0 of sequence 0; so are 7 more",
        "loss: NaN or infinite, first in token 0 of sequence 0; so are 1 more"};
    REQUIRE(file->problems() == expected);
    file->check();
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/evaluation/scripted_model.h"

#include <cmath>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include "core/base/error.h"
#include "core/evaluation/score.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using Ids = std::vector<std::int64_t>;

namespace {

data::DataBatch batch_of(std::int64_t sequences, std::int64_t length, Ids ids, Ids targets) {
    data::DataBatch batch;
    batch.sequences = sequences;
    batch.length = length;
    batch.ids = std::move(ids);
    batch.targets = std::move(targets);
    return batch;
}

/// Eight tokens; behind token i the logits fall from token i on: 0, -1, -2, ... going round.
at::Tensor falling() {
    at::Tensor logits = at::zeros({8, 8});
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) logits[i][j] = -static_cast<double>((j - i + 8) % 8);
    return logits;
}

}  // namespace

TEST_CASE("Losses and hits are those of the logits' softmax", "[evaluation]") {
    test::ScriptedModel model(falling());
    double z = 0;
    for (int k = 0; k < 8; ++k) z += std::exp(-k);
    const auto scores = evaluation::score(
        model, batch_of(2, 3, {0, 1, 2, 5, 6, 7}, {0, 2, data::no_target, 2, 3, data::no_target}), {});
    REQUIRE(scores.size() == 2);
    CHECK(scores[0].targets == 2);  // distances 0 and 1
    CHECK(scores[0].loss == Approx(2 * std::log(z) + 0 + 1).epsilon(1e-6));
    CHECK(scores[0].correct == 1);
    CHECK(scores[0].in_five == 2);
    CHECK(scores[1].loss == Approx(2 * std::log(z) + 5 + 5).epsilon(1e-6));
    CHECK(scores[1].correct == 0);
    CHECK(scores[1].in_five == 0);  // each is the sixth
}

TEST_CASE("A fixed token is read where the model was trained to read it, and targets stay", "[evaluation]") {
    test::ScriptedModel model(falling());
    evaluation::ScoreOptions options;
    const data::DataBatch batch = batch_of(2, 3, {0, 1, 2, 5, 6, 7}, {0, 2, 4, 2, 3, data::no_target});
    const auto as_read = [&](Ids ids) {
        data::DataBatch other = batch;
        other.ids = std::move(ids);
        return evaluation::score(model, other, {});
    };
    for (const auto& [position, ids] :
         std::vector<std::pair<std::int64_t, Ids>>{{1, {0, 4, 2, 5, 4, 7}}, {3, batch.ids}}) {
        options.fixed_token = data::FixedToken{position, 4};
        const auto scores = evaluation::score(model, batch, options), expected = as_read(ids);
        const auto losses = evaluation::target_losses(model, batch, options);
        for (std::size_t s = 0; s < 2; ++s) {
            CHECK(scores[s].loss == expected[s].loss);
            CHECK(scores[s].targets == expected[s].targets);
        }
        CHECK(losses[0][1] - losses[0][0] == Approx(position == 1 ? 6 : 1).epsilon(1e-5));
    }
}

TEST_CASE("A model that says the same of every token is right about none", "[evaluation]") {
    test::ScriptedModel model(at::zeros({8, 8}));
    const auto scores = evaluation::score(model, batch_of(1, 2, {0, 1}, {0, 1}), {});
    CHECK(scores[0].correct == 0);
    CHECK(scores[0].in_five == 0);
    CHECK(scores[0].loss == Approx(2 * std::log(8.0)));
}

TEST_CASE("Logits that are no numbers are right about nothing", "[evaluation]") {
    test::ScriptedModel model(at::zeros({8, 8}).fill_(std::nan("")));
    const auto scores = evaluation::score(model, batch_of(1, 2, {0, 1}, {0, 1}), {});
    CHECK(scores[0].correct == 0);
    CHECK(scores[0].in_five == 0);
    CHECK(std::isnan(scores[0].loss));
}

TEST_CASE("A real model's losses are those of float64 logits", "[evaluation]") {
    const test::GoldenModel golden = test::golden_model("llama");
    const auto model = golden.checkpoint.build();
    const std::int64_t sequences = golden.batch.ids.size(0), length = golden.batch.ids.size(1);
    data::DataBatch batch;
    batch.sequences = sequences;
    batch.length = length;
    const at::Tensor logarithms = at::log_softmax(golden.logits, 2);
    std::vector<double> wanted;
    for (std::int64_t s = 0; s < sequences; ++s) {
        double loss = 0;
        for (std::int64_t i = 0; i < length; ++i) {
            const auto id = golden.batch.ids[s][i].item<std::int64_t>();
            batch.ids.push_back(id);
            const bool last = i + 1 == length;
            batch.targets.push_back(last ? data::no_target : golden.batch.ids[s][i + 1].item<std::int64_t>());
            if (!last) loss -= logarithms[s][i][batch.targets.back()].item<double>();
        }
        wanted.push_back(loss);
    }
    const auto scores = evaluation::score(*model, batch, {});
    for (std::int64_t s = 0; s < sequences; ++s)
        CHECK(scores[static_cast<std::size_t>(s)].loss ==
              Approx(wanted[static_cast<std::size_t>(s)]).epsilon(test::kFloatError));
}

TEST_CASE("Targets beyond the vocabulary are refused", "[evaluation]") {
    test::ScriptedModel model(falling());
    CHECK_THROWS_AS(evaluation::score(model, batch_of(1, 1, {0}, {8}), {}), Error);
}

TEST_CASE("A stop is heeded", "[evaluation]") {
    test::ScriptedModel model(falling());
    Cancellation cancellation;
    cancellation.request();
    evaluation::ScoreOptions options;
    options.cancellation = &cancellation;
    CHECK_THROWS_AS(evaluation::score(model, batch_of(1, 1, {0}, {1}), options), Stopped);
}

TEST_CASE("Standard errors are those of independent sequences", "[evaluation]") {
    evaluation::TokenScores scores;
    scores.add({2.0, 2, 1, 2});
    CHECK(std::isnan(scores.loss_error()));
    scores.add({6.0, 2, 0, 1});
    scores.add({4.0, 2, 2, 2});
    scores.add({});  // no target: it does not count
    CHECK(scores.sequences() == 3);
    CHECK(scores.loss() == Approx(2.0));
    // Means 1, 3, 2 of equal weight: deviation 1, over the square root of 3.
    CHECK(scores.loss_error() == Approx(1 / std::sqrt(3.0)));
    CHECK(scores.accuracy() == Approx(0.5));
    CHECK(scores.accuracy_error() == Approx(0.5 / std::sqrt(3.0)));
    CHECK(scores.in_five() == Approx(5.0 / 6));
}

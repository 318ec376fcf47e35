// SPDX-License-Identifier: GPL-3.0-or-later
// The passes of a step: their gradients are one sum, whatever the type of the weights.
#include "tests/core/training/training_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/training/trainer/job_model.h"
#include "core/training/trainer/learner.h"
#include "kernels/parallel.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using namespace headscope::training;

namespace {

constexpr std::int64_t kVocabulary = 257, kPasses = 4;

data::DataBatch batch_of(std::int64_t number) {
    data::DataBatch batch;
    batch.sequences = 2;
    batch.length = 16;
    for (std::int64_t i = 0; i < batch.sequences * batch.length; ++i) {
        batch.ids.push_back((i * i + 31 * number) % kVocabulary);
        batch.targets.push_back((i * 7 + number) % kVocabulary);
    }
    batch.counted = batch.sequences * batch.length;
    return batch;
}

/// The sequences of both in one pass.
data::DataBatch joined(data::DataBatch first, const data::DataBatch& second) {
    first.sequences += second.sequences;
    first.counted += second.counted;
    first.ids.insert(first.ids.end(), second.ids.begin(), second.ids.end());
    first.targets.insert(first.targets.end(), second.targets.begin(), second.targets.end());
    return first;
}

/// Losses of 20 updates by the same four sequences, in one part or in two.
std::vector<double> losses_of_run(const JobFile& job, bool two_parts, int threads) {
    kernels::set_threads(threads);
    Learner learner(model::Trainable::create(model_config(job, kVocabulary), 1, weight_type(job)), job);
    std::vector<data::DataBatch> parts{batch_of(0), batch_of(1)};
    if (!two_parts) parts = {joined(parts[0], parts[1])};
    std::vector<double> losses;
    for (std::int64_t step = 1; step <= 20; ++step) {
        losses.push_back(learner.gradients(parts, step).mean());
        learner.update(1e-3, learner.gradient_norm(), step);
    }
    kernels::set_threads(1);
    return losses;
}

Learner learner_of(const test::TemporaryFolder& folder, const std::string& precision, std::int64_t passes) {
    const JobFile job =
        test::small_job(folder, {"training.precision=" + precision, "training.accumulate=" + std::to_string(passes)});
    return {model::Trainable::create(model_config(job, kVocabulary), 1, weight_type(job)), job};
}

}  // namespace

TEST_CASE("Gradients of several bfloat16 passes are added up in float32", "[training][learner]") {
    const test::TemporaryFolder folder;
    std::vector<data::DataBatch> parts;
    for (std::int64_t i = 0; i < kPasses; ++i) parts.push_back(batch_of(i));
    Learner all = learner_of(folder, "bfloat16", kPasses), one = learner_of(folder, "bfloat16", 1);
    CHECK(one.summed_gradients().scalar_type() == at::kBFloat16);
    // A power of two of passes with as many targets each: their shares of the sum are the gradients of each alone.
    at::Tensor expected = at::zeros({one.summed_gradients().numel()}, at::kFloat);
    double loss = 0;
    for (const auto& part : parts) {
        loss += one.gradients({part}, 1).sum.value();
        expected += one.summed_gradients().to(at::kFloat) / kPasses;
    }
    for (int again = 0; again < 2; ++again) CHECK(all.gradients(parts, 1).sum.value() == Approx(loss));
    const at::Tensor sums = all.summed_gradients();
    REQUIRE(sums.scalar_type() == at::kFloat);
    CHECK(at::equal(sums, expected));
    CHECK_FALSE(at::equal(sums, sums.to(at::kBFloat16).to(at::kFloat)));  // bfloat16 could not say them
    CHECK(all.gradient_norm() == Approx(std::sqrt(sums.to(at::kDouble).square().sum().item<double>())));
    const at::Tensor before = all.model().weights().clone();
    all.update(1e-3, all.gradient_norm(), 1);
    CHECK(all.weights_finite());
    CHECK_FALSE(at::equal(all.model().weights(), before));
}

TEST_CASE("Gradients of float32 passes need no second sum", "[training][learner]") {
    const test::TemporaryFolder folder;
    Learner learner = learner_of(folder, "float32", kPasses);
    CHECK(learner.summed_gradients().is_same(learner.model().gradients()));
}

TEST_CASE("Dropped attention weights depend on neither threads nor passes", "[training][learner]") {
    const test::TemporaryFolder folder;
    const data::DataBatch first = batch_of(0), second = batch_of(1);
    const data::DataBatch both = joined(first, second);
    const JobFile job = test::small_job(folder, {"training.attention_dropout=0.3"});
    Learner learner(model::Trainable::create(model_config(job, kVocabulary), 1, weight_type(job)), job);
    kernels::set_threads(1);
    const double whole = learner.gradients({both}, 1).sum.value();
    const at::Tensor gradients = learner.summed_gradients().clone();
    for (const int threads : {2, 5}) {
        kernels::set_threads(threads);
        CHECK(learner.gradients({both}, 1).sum.value() == whole);
        CHECK(at::equal(learner.summed_gradients(), gradients));
    }
    kernels::set_threads(1);
    CHECK(learner.gradients({first, second}, 1).sum.value() == whole);
    CHECK(at::equal(learner.summed_gradients(), gradients));
    CHECK(learner.gradients({second, first}, 1).sum.value() !=
          Approx(whole).epsilon(1e-6));  // other places, other weights
    CHECK(learner.gradients({both}, 2).sum.value() != whole);
    CHECK(learner.evaluate(both).sum.value() == learner.evaluate(both).sum.value());
    const JobFile plain = test::small_job(folder);
    Learner undropped(model::Trainable::create(model_config(plain, kVocabulary), 1, weight_type(plain)), plain);
    CHECK(undropped.evaluate(both).sum.value() == learner.evaluate(both).sum.value());  // evaluation drops nothing
    CHECK(undropped.gradients({both}, 1).sum.value() != whole);
}

TEST_CASE("Learners with attention dropout have the same losses for batch 4 and 2 x 2", "[training][learner]") {
    const test::TemporaryFolder folder;
    const JobFile job = test::small_job(folder, {"training.attention_dropout=0.3"});
    const std::vector<double> whole = losses_of_run(job, false, 1);
    for (const int threads : {1, 2, 5}) CHECK(losses_of_run(job, true, threads) == whole);
    for (const int threads : {2, 5}) CHECK(losses_of_run(job, false, threads) == whole);
    CHECK(whole.back() < whole.front());
    const JobFile half = test::small_job(folder, {"training.attention_dropout=0.3", "training.precision=bfloat16"});
    CHECK(losses_of_run(half, true, 1) == losses_of_run(half, false, 1));
}

TEST_CASE("Runs with attention dropout have the same weights for batch 4, 2 x 2 and 1 x 4", "[training][learner]") {
    const test::TemporaryFolder folder;
    std::string texts;  // of different lengths: what is padded depends on the batch
    for (std::size_t n = 0; n < 60; ++n)
        texts += "{\"text\": \"" + std::string(1 + n * 7 % 23, static_cast<char>('a' + n % 3)) +
                 "\", \"label\": " + std::to_string(n % 3) + "}\n";
    test::write_file(folder / "classes.jsonl", texts);
    const std::vector<std::string> classes = {"objective.kind=classify", "objective.classes=3",
                                              "data.text=" + (folder / "classes.jsonl").string()};
    const std::vector<std::string> encoder = {"objective.kind=masked", "objective.mask=0.3",
                                              "model.preset=nano-mhe-encoder", "model.mixer=mhe_mul"};
    for (const auto& kind : {std::vector<std::string>{}, classes, encoder}) {
        const test::TemporaryFolder runs;
        std::vector<double> expected;
        for (const std::int64_t batch : {4, 2, 1}) {
            INFO((kind.empty() ? "next_token" : kind.front()) << ", batch " << batch);
            std::vector<std::string> lines = kind;
            lines.insert(lines.end(),
                         {"training.attention_dropout=0.3", "training.dropout=0.1", "probe.every=0", "sample.every=0",
                          "evaluation.every=0", "training.batch=" + std::to_string(batch),
                          "training.accumulate=" + std::to_string(4 / batch)});
            const std::filesystem::path run = runs / std::to_string(batch);
            std::vector<double> losses;
            for (const Step& step : test::run(test::fresh(test::small_job(folder, lines), run)).all<Step>())
                losses.push_back(step.loss);
            REQUIRE(losses.size() == 12);
            if (expected.empty()) expected = losses;
            CHECK(losses == expected);
            CHECK(test::weights_of(run, 12) == test::weights_of(runs / "4", 12));
        }
    }
}

TEST_CASE("Attention dropout is refused for models without attention weights", "[training][learner]") {
    const test::TemporaryFolder folder;
    for (const std::string mixer : {"gated_deltanet", "approximate", "non_approximate", "mlp"}) {
        const JobFile job =
            test::small_job(folder, {"model.mixer=" + mixer, "model.layout=uniform", "training.attention_dropout=0.1"});
        CHECK_THROWS_WITH(model_config(job, kVocabulary),
                          Catch::Contains("training.attention_dropout") && Catch::Contains("found \"" + mixer));
    }
    const JobFile mixed =
        test::small_job(folder, {"model.layers=[\"standard\", \"gated_deltanet\"]", "training.attention_dropout=0.1"});
    const auto model = model::Trainable::create(model_config(mixed, kVocabulary), 1, weight_type(mixed));
    CHECK(mixers_without_weights(mixed, std::as_const(*model).model().config()) ==
          std::vector<std::string>{"gated_deltanet"});
}

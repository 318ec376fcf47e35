// SPDX-License-Identifier: GPL-3.0-or-later
// Every decoder family that opens trains, on the loss that evaluation reports: through its own head (scale, projection,
// bias, soft cap), with its own attention.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>

#include "core/checkpoint/checkpoint.h"
#include "core/data/data_set.h"
#include "core/evaluation/score.h"
#include "core/model/objectives/objective.h"
#include "core/model/trainable.h"
#include "core/run/run_folder.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/core/training/training_run.h"

using namespace headscope;
using namespace headscope::training;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

/// From tests/oracle/models/data: each decoder family, and its special heads, layouts and files.
const std::vector<std::string> kDecoders{
    "gpt2",
    "gpt2-old-file",
    "llama",
    "llama-tied-bf16-sharded",
    "qwen2",
    "qwen2-windows",
    "opt",
    "opt-old-file",
    "opt-plain-norms",
    "opt-small-embedding-post-norm",
    "bloom",
    "bloom-old-file",
    "neox",
    "neox-serial-old",
    "neox-plain-tied",
    "mistral",
    "mistral-no-window-old",
    "qwen3",
    "qwen3-windows-biases",
    "gemma2",
    "gemma2-uncapped-old",
    "phi",
    "phi-key-norm-old",
    "gptj",
    "gptj-tied-old",
    "olmo2",
    "olmo2-biases-old",
    "gpt-oss",
    "gpt-oss-limit-old",
    "gpt-oss-packed",
    "gemma",
    "gemma3",
    "gemma3-images-old",
    "phi3",
    "smollm3",
    "olmo",
    "olmo3",
    "granite",
    "starcoder2",
    "stablelm",
    "stablelm-key-norms-parallel-old",
    "glm",
    "glm4-unsaid-old",
    "cohere",
    "cohere-key-norms-old",
    "cohere2",
    "falcon",
    "falcon-groups",
    "falcon-alibi",
    "mpt",
    "nemotron",
    "exaone4",
    "ministral",
    "ministral3-images",
    "seed-oss",
    "apertus",
    "mixtral",
    "mixtral-stacked-old",
    "qwen2-moe",
    "qwen3-moe",
    "olmoe",
    "granitemoe",
    "native-standard",
    "native-standard-sparsemax",
    "native-lazy",
    "native-lazy-entmax",
    "native-all-mixers",
};

constexpr std::int64_t kLength = 12;

JobFile job_from(const fs::path& checkpoint) {
    JobFile job = read_job("[data]\ngenerator = { name = \"markov\", symbols = 8 }\n", "job");
    for (const std::string& line :
         {"model.from=" + checkpoint.string(), std::string("data.sequence_length=12"), std::string("training.steps=2"),
          std::string("training.batch=4"), std::string("training.threads=1"), std::string("evaluation.batches=2"),
          std::string("optimizer.learning_rate=1e-2"), std::string("probe.sequences=1"), std::string("probe.length=8"),
          std::string("sample.tokens=2"), std::string("snapshots.every=2")})
        set_key(job, line);
    return job;
}

/// `evaluate`'s result for the sequences of a validation.
double evaluated(const JobFile& job, const fs::path& folder) {
    NoProgress progress;
    const Cancellation cancellation;
    const auto data = data::DataSet::prepare(job.data, {job.base, {}}, progress, cancellation);
    const auto source = data->source(data::Split::validation, static_cast<std::uint64_t>(job.seed));
    const auto model = model::Model::build(*checkpoint::Checkpoint::open(folder), checkpoint::LoadAs::float32);
    return evaluation::score_source(*model, *source, 8, {}).loss();
}

}  // namespace

TEST_CASE("The first and the last validation of a run from any decoder are what evaluation says of the same tokens",
          "[training][families]") {
    for (const std::string& name : kDecoders) {
        DYNAMIC_SECTION(name) {
            const TemporaryFolder folder;
            const fs::path source = folder / "model";
            fs::create_directory(source);
            golden_model(name).checkpoint.write(source);
            const JobFile job = job_from(source);
            const Told told = run(fresh(job, folder / "run"));
            CHECK(told.outcome.state == RunState::finished);
            const auto validations = told.all<Validation>();
            REQUIRE(validations.size() >= 2);
            // Both sum float32 logits of the same weights; the order of sums in products differs.
            const double before = evaluated(job, source);
            CHECK(validations.front().step == 0);
            CHECK(validations.front().tokens == 8 * kLength);
            CHECK(std::abs(validations.front().loss - before) < kFloatError * std::max(1.0, before));

            const fs::path snapshot = RunFolder{folder / "run"}.snapshots() / snapshot_name(2);
            const double after = evaluated(job, snapshot);
            CHECK(validations.back().step == 2);
            CHECK(std::abs(validations.back().loss - after) < kFloatError * std::max(1.0, after));
            CHECK(std::abs(after - before) > 1e-3);
        }
    }
}

TEST_CASE("A Llama whose layers become lazy is trained on, and goes on to the bit", "[training][families][resume]") {
    const TemporaryFolder folder;
    fs::create_directory(folder / "model");
    golden_model("llama").checkpoint.write(folder / "model");
    JobFile job = job_from(folder / "model");
    for (const char* line : {"model.mixer=lazy", "training.steps=5", "training.dropout=0.1"}) set_key(job, line);
    const Told whole = run(fresh(job, folder / "whole"));
    const auto mixers = whole.all<Started>().front().mixers;
    CHECK(std::all_of(mixers.begin(), mixers.end(), [](const std::string& mixer) { return mixer == "lazy"; }));
    TrainRequest request = fresh(job, folder / "parts");
    request.stop_after = [](std::int64_t step) { return step == 3; };
    run(request);
    CHECK(run(resumed(folder / "parts")).outcome.validation == whole.outcome.validation);
    CHECK(weights_of(folder / "parts", 5) == weights_of(folder / "whole", 5));
    CHECK(optimizer_of(folder / "parts", 5) == optimizer_of(folder / "whole", 5));
}

namespace {

/// Encoders and encoder-decoders, and what their files and heads do of their own.
const std::vector<std::string> kOthers{
    "bert",
    "bert-old-names",
    "bert-untied",
    "roberta",
    "xlm-roberta-bf16",
    "camembert",
    "distilbert",
    "albert",
    "modernbert",
    "data2vec-text",
    "modernbert-biases",
    "t5",
    "t5-saved-untied",
    "mt5",
    "t5-three-embeddings",
    "bart",
    "bart-untied-f16",
    "marian",
    "marian-two-vocabularies",
    "marian-old-tables",
    "m2m-100",
    "blenderbot-small",
    "umt5",
};

bool is_pair(const std::string& name) {
    const std::vector<std::string> stems{"t5", "bart", "marian", "m2m", "blenderbot"};
    return std::any_of(stems.begin(), stems.end(),
                       [&name](const std::string& stem) { return name.find(stem) != std::string::npos; });
}

/// Some tokens, padded sequences among them where a model reads such, and labels for a third of what the head is asked.
model::Batch labelled(bool pair) {
    const at::Tensor count = at::arange(2 * kLength, at::kLong);
    model::Batch batch;
    batch.ids = ((count * 7 + count.square()) % 13 + 3).view({2, kLength});
    batch.lengths = {kLength, kLength - 4};
    at::Tensor read = batch.ids;
    if (pair) {
        batch.target = ((count * 3 + count.square()) % 13 + 3).view({2, kLength}).narrow(1, 0, 7).contiguous();
        batch.target_lengths = {7, 5};
        read = batch.target;
    }
    const at::Tensor place = at::arange(read.numel(), at::kLong).view(read.sizes());
    batch.labels = ((place * 5 + 3) % 13).masked_fill(place % 3 != 1, -1);
    const auto& lengths = batch.predicted_lengths();
    for (std::int64_t b = 0; b < 2; ++b) {
        const std::int64_t length = lengths[static_cast<std::size_t>(b)];
        batch.labels.select(0, b).narrow(0, length, read.size(1) - length).fill_(-1);
    }
    return batch;
}

/// Three numbers of each tensor, so that no part is left out, against the loss a little above and below.
void check_gradients(const model::Trainable& model, const std::function<at::Tensor()>& loss) {
    loss().backward();
    const at::Tensor gradient = model.gradients().clone();
    double* weights = model.weights().mutable_data_ptr<double>();
    constexpr double step = 1e-5;
    double largest = 0;
    for (const at::Tensor& leaf : model.leaves()) {
        const std::int64_t first = leaf.storage_offset(), size = leaf.numel();
        for (const std::int64_t i : {first, first + size / 3, first + size - 1}) {
            const double here = weights[i];
            weights[i] = here + step;
            const double above = loss().item<double>();
            weights[i] = here - step;
            const double below = loss().item<double>();
            weights[i] = here;
            const double expected = (above - below) / (2 * step);
            const double found = gradient[i].item<double>();
            INFO("element " << i);
            CHECK(found == Approx(expected).epsilon(1e-4).margin(1e-6));
            largest = std::max(largest, std::abs(found));
        }
    }
    CHECK(largest > 1e-2);
}

std::unique_ptr<model::Trainable> opened(const fs::path& folder, const std::string& name, at::ScalarType type) {
    fs::create_directory(folder / "model");
    golden_checkpoint(name).write(folder / "model");
    return model::Trainable::open(*checkpoint::Checkpoint::open(folder / "model"), type);
}

}  // namespace

TEST_CASE("Gradients of every decoder family agree with finite differences", "[training][families]") {
    for (const std::string& name : kDecoders) {
        DYNAMIC_SECTION(name) {
            const TemporaryFolder folder;
            const auto model = opened(folder.path(), name, at::kDouble);
            const at::Tensor count = at::arange(2 * kLength, at::kLong);
            const model::Batch batch{((count * 7 + count.square()) % 17).view({2, kLength}), {}, {}};
            const at::Tensor targets = (count * 5 + 3) % 17;
            check_gradients(*model, [&] { return model->loss(model->forward(batch).flatten(0, 1), targets).sum; });
        }
    }
}

TEST_CASE("Gradients of encoders and encoder-decoders agree with finite differences", "[training][families]") {
    for (const std::string& name : kOthers) {
        DYNAMIC_SECTION(name) {
            const TemporaryFolder folder;
            const auto model = opened(folder.path(), name, at::kDouble);
            const model::Batch batch = labelled(is_pair(name));
            const model::TrainingForward training;
            check_gradients(
                *model, [&] { return model::token_labels()->losses(*model, batch, {}, &training).front().loss.sum; });
        }
    }
}

TEST_CASE("A tiny encoder and a tiny encoder-decoder fit a batch", "[training][families]") {
    for (const std::string& name : kOthers) {
        DYNAMIC_SECTION(name) {
            const TemporaryFolder folder;
            const auto model = opened(folder.path(), name, at::kFloat);
            const model::Batch batch = labelled(is_pair(name));
            const auto objective = model::token_labels();
            const model::TrainingForward training;
            const at::Tensor weights = model->weights(), gradients = model->gradients();
            double first = 0, last = 0;
            // Adam, in its plainest form.
            at::Tensor mean = at::zeros_like(gradients), square = at::zeros_like(gradients);
            for (int step = 1; step <= 60; ++step) {
                gradients.zero_();
                const auto losses = objective->losses(*model, batch, {}, &training);
                REQUIRE(losses.size() == objective->names().size());
                last = losses.front().loss.cross_entropy.value() / static_cast<double>(losses.front().loss.rows);
                if (step == 1) first = last;
                losses.front().loss.sum.backward();
                const at::NoGradGuard no_gradient;
                mean.mul_(0.9).add_(gradients, 0.1);
                square.mul_(0.99).add_(gradients.square(), 0.01);
                weights.sub_(0.01 * (mean / (1 - std::pow(0.9, step))) /
                             ((square / (1 - std::pow(0.99, step))).sqrt() + 1e-8));
            }
            INFO("from " << first << " to " << last);
            CHECK(first > 1.0);
            CHECK(last < 0.1 * first);
            // The same loss as from the logits that anybody else sees, and from the checkpoint that is written.
            const double after = objective->losses(*model, batch, {}, nullptr).front().loss.cross_entropy.value();
            NoProgress progress;
            model->save(folder / "saved", {}, progress, {});
            const auto read = model::Model::build(*checkpoint::Checkpoint::open(folder / "saved"));
            const at::Tensor logits = read->logits(read->forward(batch).flatten(0, 1)).to(at::kDouble);
            const at::Tensor labels = batch.labels.flatten(), counted = labels >= 0;
            const at::Tensor chosen = logits.log_softmax(-1).gather(1, labels.clamp_min(0).unsqueeze(1)).squeeze(1);
            const double expected = -chosen.masked_select(counted).sum().item<double>();
            CHECK(after == Approx(expected).epsilon(1e-4).margin(1e-4));
        }
    }
}

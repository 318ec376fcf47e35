// SPDX-License-Identifier: GPL-3.0-or-later
// The forward pass as a whole: padding, skipped layers, cancelling, progress, loss.
#include "tests/catch_with_torch.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::golden_model;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;

namespace {

void check_close(const at::Tensor& a, const at::Tensor& b) {
    CHECK(largest_difference(a, b) <= test::kFloatError * largest_value(b));
}

/// `ids` [1, L] padded to `width` beside a full sequence of that width.
model::Batch padded_beside(const at::Tensor& ids, std::int64_t width) {
    const std::int64_t length = ids.size(1);
    const at::Tensor short_one = at::cat({ids, at::zeros({1, width - length}, at::kLong)}, 1);
    const at::Tensor full = at::zeros({1, width}, at::kLong) + 3;
    return {at::cat({full, short_one}, 0), {width, length}, {}};
}

}  // namespace

TEST_CASE("A padded sequence gives what it gives alone, measured or not", "[model][stack]") {
    for (const char* name :
         {"gpt2",        "llama",  "qwen2-windows", "bert",  "roberta",    "albert",
          "modernbert",  "opt",    "bloom",         "neox",  "gemma2",     "olmo2",
          "gpt-oss",     "gemma3", "smollm3",       "olmo",  "granite",    "stablelm-key-norms-parallel-old",
          "deepseek-v3", "llama4", "electra",       "mpnet", "nomic-bert", "esm",
          "fnet"}) {
        const GoldenModel golden = golden_model(name);
        const auto model = golden.checkpoint.build();
        const at::Tensor ids = golden.batch.ids.narrow(0, 0, 1).narrow(1, 0, 7);
        RecordingProbe alone_probe(true, {"nothing"}), batch_probe(true, {"nothing"});
        model::ForwardOptions alone_options, batch_options;
        alone_options.probe = &alone_probe;
        batch_options.probe = &batch_probe;
        const model::Batch batch = padded_beside(ids, 12);
        const at::Tensor alone = model->forward({ids, {}, {}}, alone_options);
        for (const at::Tensor& together : {model->forward(batch), model->forward(batch, batch_options)}) {
            check_close(together.narrow(0, 1, 1).narrow(1, 0, 7), alone);
            CHECK(together.isfinite().all().item<bool>());
        }
        const auto heads = static_cast<std::size_t>(model->config().heads);
        for (std::size_t site = 0; site < alone_probe.sites.size(); ++site) {
            for (std::size_t head = 0; head < heads; ++head) {
                CHECK(batch_probe.sites[site].statistics.entropy[heads + head] ==
                      Approx(alone_probe.sites[site].statistics.entropy[head]).epsilon(1e-5));
            }
        }
    }
}

TEST_CASE("Skipped layers are left out whole", "[model][stack]") {
    const GoldenModel golden = golden_model("qwen2");
    const auto model = golden.checkpoint.build();
    RecordingProbe probe(false, {"embedding", "hidden", "feed_forward_output", "attention_output"});
    model::ForwardOptions options;
    options.probe = &probe;
    options.skip_layers = {1};
    model->forward(golden.batch, options);
    CHECK(probe.values.count({"hidden", 1}) == 0);
    check_close(probe.at("hidden", 2),
                probe.at("hidden", 0) + probe.at("attention_output", 2) + probe.at("feed_forward_output", 2));
    options.skip_layers = {0, 1, 2};
    RecordingProbe none(false, {"embedding", "hidden"});
    options.probe = &none;
    model->forward(golden.batch, options);
    CHECK(none.order.size() == 1);
}

TEST_CASE("A run can be followed and stopped between layers", "[model][stack]") {
    const GoldenModel golden = golden_model("llama");
    const auto model = golden.checkpoint.build();
    std::vector<int> done;
    Cancellation cancellation;
    model::ForwardOptions options;
    options.cancellation = &cancellation;
    options.after_layer = [&](int layer) { done.push_back(layer); };
    model->forward(golden.batch, options);
    const std::vector<int> both{0, 1};
    CHECK(done == both);
    done.clear();
    options.after_layer = [&](int layer) {
        done.push_back(layer);
        cancellation.request();
    };
    CHECK_THROWS_AS(model->forward(golden.batch, options), Stopped);
    CHECK(done == std::vector<int>{0});
    const Cancellation* stop = &cancellation;
    CHECK_THROWS_AS(model->next_token_loss(golden.batch, at::zeros({2, 11, 20}), {}, stop), Stopped);
}

TEST_CASE("The loss is the cross-entropy of the next token, NaN at each end", "[model][stack]") {
    const GoldenModel golden = golden_model("llama");
    const auto model = golden.checkpoint.build();
    model::Batch batch = golden.batch;
    batch.lengths = {11, 6};
    const at::Tensor hidden = model->forward(batch);
    std::int64_t rows_seen = 0;
    const at::Tensor loss =
        model->next_token_loss(batch, hidden, [&](std::int64_t, std::int64_t, const at::Tensor& rows) {
            rows_seen += rows.size(0);
            CHECK(rows.size(1) == 37);
        });
    CHECK(rows_seen == 17);
    for (std::int64_t s = 0; s < 2; ++s) {
        const std::int64_t length = batch.lengths[static_cast<std::size_t>(s)];
        const at::Tensor logits = model->logits(hidden.select(0, s));
        for (std::int64_t i = 0; i + 1 < length; ++i) {
            const at::Tensor row = logits.select(0, i).to(at::kDouble);
            const double expected =
                row.logsumexp(0).item<double>() - row[batch.ids[s][i + 1].item<std::int64_t>()].item<double>();
            CHECK(loss[s][i].item<float>() == Approx(expected).epsilon(1e-5));
        }
        for (std::int64_t i = length - 1; i < 11; ++i) CHECK(std::isnan(loss[s][i].item<float>()));
    }
}

TEST_CASE("Chunks of logits stay below 64 MB", "[model][stack]") {
    const auto model = golden_model("llama").checkpoint.build();
    const std::int64_t bytes = model->logit_rows() * 37 * 4;
    CHECK(bytes <= 64 << 20);
    CHECK(bytes > 63 << 20);
}

TEST_CASE("Many rows are worked off in chunks that join without a seam", "[model][stack]") {
    for (const char* name : {"llama", "bert"}) {
        test::TinyCheckpoint checkpoint = golden_model(name).checkpoint;
        checkpoint.config["max_position_embeddings"] = 2100;
        if (name == std::string("bert")) checkpoint.tensors["bert.embeddings.position_embeddings.weight"] = {2100, 20};
        const auto model = checkpoint.build();
        const at::Tensor ids = at::arange(2 * 2100, at::kLong).mul(11).remainder(37).view({2, 2100});
        const at::Tensor together = model->forward({ids, {}, {}});  // 4200 rows: more than a chunk has
        for (std::int64_t s = 0; s < 2; ++s) {
            check_close(together.narrow(0, s, 1), model->forward({ids.narrow(0, s, 1), {}, {}}));
        }
    }
}

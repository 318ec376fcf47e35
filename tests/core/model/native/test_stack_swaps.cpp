// SPDX-License-Identifier: GPL-3.0-or-later
// Mixers and heads of native stacks and of transformers' BERT that are replaced when a folder is opened for training.
#include "tests/catch_with_torch.h"

#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <nlohmann/json.hpp>

#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native/manner_stacks.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Trainable;
using nlohmann::json;
using test::IsError;
using test::some_tokens;
using test::native_stacks::stack_config;

TEST_CASE("Mixers of an encoder's and of a decoder's layers are swapped by their number", "[native][swap]") {
    const test::TemporaryFolder folder;
    NoProgress progress;
    const Cancellation cancellation;
    const json config = stack_config("both", {"mqa", "standard", "standard"});
    Trainable::create(config.dump(), 3, at::kFloat)->save(folder / "own", {}, progress, cancellation);
    const auto file = checkpoint::Checkpoint::open(folder / "own");
    const auto swapped = Trainable::open(*file, at::kFloat, {{{0, "fnet"}, {2, "mhe_add"}}}, 5);
    CHECK(swapped->model().mixers() == std::vector<std::string>{"fnet", "standard", "mhe_add"});
    CHECK(test::find_parameter(*swapped, "model.encoder.layers.0.self_attn.q_proj.weight") == nullptr);
    CHECK(test::find_parameter(*swapped, "model.decoder.layers.1.cross_attn.k_head_embedding") != nullptr);
    CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{0, "lazy"}}}), Error,
                         IsError(ErrorCode::unsupported, "of an encoder one of"));
    CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{1, "mlp"}}}), Error,
                         IsError(ErrorCode::unsupported, "with cross-attention one of"));
}

TEST_CASE("A head for a task replaces that of pre-training, with fresh weights", "[native][swap]") {
    const test::TemporaryFolder folder;
    NoProgress progress;
    const Cancellation cancellation;
    model::MixerSwap swap;
    swap.head = R"({"kind": "sequence_classes", "classes": 3})";
    for (const char* mixer : {"standard", "mhe_mul"}) {  // under BERT's names and under native ones
        INFO(mixer);
        const auto made = Trainable::create(stack_config("encoder", {mixer, mixer}).dump(), 3, at::kFloat);
        made->save(folder / mixer, {}, progress, cancellation);
        const auto file = checkpoint::Checkpoint::open(folder / mixer);
        const auto tuned = Trainable::open(*file, at::kFloat, swap, 7);
        CHECK(tuned->model().has_classes());
        CHECK(tuned->model().config().classes == 3);
        CHECK(tuned->model().config().layout == made->model().config().layout);
        const std::string dense = *mixer == 's' ? "bert.pooler.dense" : "head.dense";
        REQUIRE(test::find_parameter(*tuned, dense + ".weight") != nullptr);
        REQUIRE(test::find_parameter(*tuned, "classifier.weight") != nullptr);
        if (const auto* before = test::find_parameter(*made, dense + ".weight"))
            CHECK_FALSE(at::equal(before->value, test::find_parameter(*tuned, dense + ".weight")->value));
        for (const char* gone : {"lm_head.bias", "head.norm.weight", "cls.predictions.decoder.bias"})
            CHECK(test::find_parameter(*tuned, gone) == nullptr);
        const model::Batch batch = some_tokens(2, 7);
        CHECK(at::equal(tuned->model().forward(batch), made->model().forward(batch)));
        // The same head once more is the one that was trained.
        tuned->save(folder / (std::string(mixer) + "-tuned"), {}, progress, cancellation);
        const auto again = Trainable::open(*checkpoint::Checkpoint::open(folder / (std::string(mixer) + "-tuned")),
                                           at::kFloat, swap, 8);
        CHECK(at::equal(again->weights(), tuned->weights()));
        model::MixerSwap wrong;
        wrong.head = R"({"kind": "tail"})";
        CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, wrong), Error, IsError(ErrorCode::unsupported, "kind"));
    }
}

TEST_CASE("A head for a task replaces that of transformers' BERT, whose tensors keep their names", "[native][swap]") {
    model::MixerSwap swap;
    swap.head = R"({"kind": "sequence_classes", "classes": 3})";
    const test::TemporaryFolder folder;
    test::golden_checkpoint("bert").write(folder.path());
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const auto own = Trainable::open(*file, at::kFloat), tuned = Trainable::open(*file, at::kFloat, swap, 7);
    CHECK(tuned->model().config().classes == 3);
    CHECK(json::parse(tuned->config_json()).at("architectures")[0] == "BertForSequenceClassification");
    REQUIRE(test::find_parameter(*tuned, "bert.pooler.dense.weight") != nullptr);
    CHECK(test::find_parameter(*tuned, "cls.predictions.transform.dense.weight") == nullptr);
    const model::Batch batch = some_tokens(2, 7);
    CHECK(at::equal(tuned->model().forward(batch), own->model().forward(batch)));
    // Only missing tensors of heads get fresh weights.
    test::TinyCheckpoint lacking = test::golden_checkpoint("bert");
    REQUIRE(lacking.tensors.erase("bert.encoder.layer.0.attention.self.query.weight") == 1);
    const test::TemporaryFolder without;
    lacking.write(without.path());
    CHECK_THROWS_MATCHES(Trainable::open(*checkpoint::Checkpoint::open(without.path()), at::kFloat, swap), Error,
                         IsError(ErrorCode::mismatch, "found no such tensor"));
    const test::TemporaryFolder other;
    test::golden_checkpoint("distilbert").write(other.path());
    CHECK_THROWS_MATCHES(Trainable::open(*checkpoint::Checkpoint::open(other.path()), at::kFloat, swap), Error,
                         IsError(ErrorCode::unsupported, "found distilbert"));
}

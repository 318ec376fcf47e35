// SPDX-License-Identifier: GPL-3.0-or-later
// Heads for classes of texts against transformers in float64 (tests/oracle/models/class_heads.py).
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include "core/base/progress.h"
#include "core/model/heads/text_rows.h"
#include "core/model/objectives/objective.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using checkpoint::LoadAs;
using test::golden_model;
using test::GoldenModel;
using test::IsError;
using test::TinyCheckpoint;

namespace {

const std::vector<std::string> kTexts{"bert",         "bert-number",   "bert-unnamed",  "roberta",    "xlm-roberta",
                                      "camembert",    "data2vec",      "distilbert",    "electra",    "albert",
                                      "mpnet",        "esm",           "nomic-bert",    "modernbert", "modernbert-mean",
                                      "eurobert-bos", "eurobert-mean", "eurobert-late", "llama",      "llama-number",
                                      "gpt2",         "mistral",       "qwen2",         "qwen3"};

at::Tensor logits_of(model::Model& model, const model::Batch& batch) {
    return model::text_logits(model, model.forward(batch), batch);
}

double difference(const at::Tensor& ours, const at::Tensor& theirs) {
    REQUIRE(ours.sizes() == theirs.sizes());
    return (ours.to(at::kDouble) - theirs.to(at::kDouble)).abs().max().item<double>();
}

/// One text of a batch, without its padding.
model::Batch alone(const model::Batch& batch, std::int64_t text) {
    const std::int64_t length = batch.lengths.at(static_cast<std::size_t>(text));
    model::Batch one;
    one.ids = batch.ids.narrow(0, text, 1).narrow(1, 0, length).contiguous();
    if (batch.token_types.defined())
        one.token_types = batch.token_types.narrow(0, text, 1).narrow(1, 0, length).contiguous();
    return one;
}

TinyCheckpoint with(const std::string& name, const std::string& key, const nlohmann::json& value) {
    TinyCheckpoint checkpoint = golden_model(name + "-text-classes").checkpoint;
    checkpoint.config[key] = value;
    return checkpoint;
}

void refuses(const TinyCheckpoint& checkpoint, ErrorCode code, const std::string& part) {
    CAPTURE(part);
    CHECK_THROWS_MATCHES(checkpoint.build(), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("Classes of texts equal those of transformers, padded and alone", "[model][golden][classes]") {
    for (const std::string& name : kTexts) {
        DYNAMIC_SECTION(name) {
            const GoldenModel golden = golden_model(name + "-text-classes");
            const double bound = test::kFloatError * test::largest_value(golden.text_logits);
            REQUIRE(test::largest_value(golden.text_logits) > 0.01);
            for (const LoadAs precision : {LoadAs::float32, LoadAs::float64}) {
                const auto model = golden.checkpoint.build(precision);
                CHECK(model->has_classes());
                CHECK_FALSE(model->has_head());
                CHECK(model->config().classes == golden.text_logits.size(1));
                CHECK(difference(logits_of(*model, golden.batch), golden.text_logits) < bound);
                for (std::int64_t text = 0; text < golden.text_logits.size(0); ++text)
                    CHECK(difference(logits_of(*model, alone(golden.batch, text)),
                                     golden.text_logits.narrow(0, text, 1)) < bound);
            }
        }
    }
}

TEST_CASE("A decoder's classes do not depend on the rest of the batch", "[model][golden][classes]") {
    const GoldenModel golden = golden_model("llama-text-classes");
    const auto model = golden.checkpoint.build();
    CHECK(model->config().text_pooling == model::TextPooling::last);
    const at::Tensor all = logits_of(*model, golden.batch);
    const double bound = test::kFloatError * test::largest_value(golden.text_logits);
    // Other padding, and more of it.
    model::Batch wide = golden.batch;
    wide.ids = at::ones({3, 20}, at::kLong) * 7;
    for (std::int64_t text = 0; text < 3; ++text) {
        const std::int64_t length = golden.batch.lengths[static_cast<std::size_t>(text)];
        wide.ids[text].narrow(0, 0, length).copy_(golden.batch.ids[text].narrow(0, 0, length));
    }
    CHECK(difference(logits_of(*model, wide), all) < bound);
    model::Batch two = golden.batch;
    two.ids = golden.batch.ids.narrow(0, 1, 2).contiguous();
    two.lengths.erase(two.lengths.begin());
    CHECK(difference(logits_of(*model, two), all.narrow(0, 1, 2)) < bound);
}

TEST_CASE("A classifier is trained and written under its own names", "[model][classes]") {
    for (const std::string& name : kTexts) {
        DYNAMIC_SECTION(name) {
            const GoldenModel golden = golden_model(name + "-text-classes");
            const test::TemporaryFolder folder;
            std::filesystem::create_directory(folder / "model");
            golden.checkpoint.write(folder / "model");
            const auto file = checkpoint::Checkpoint::open(folder / "model");
            const auto model = model::Trainable::open(*file, at::kFloat);
            const std::int64_t classes = golden.text_logits.size(1);
            const auto objective = model::make_objective("classify", classes);
            objective->check(std::as_const(*model).model().config());
            model::Batch batch = golden.batch;
            if (classes == 1)
                batch.values = at::zeros({3}, at::kFloat);
            else
                batch.labels = at::ones({3}, at::kLong);
            if (name == "eurobert-late") {
                CHECK_THROWS_MATCHES(objective->losses(*model, batch, {}, nullptr), Error,
                                     IsError(ErrorCode::unsupported, "whose logits are averaged"));
            } else {
                const auto losses = objective->losses(*model, batch, {}, nullptr);
                const at::Tensor theirs = classes == 1 ? golden.text_logits.square().sum()
                                                       : -at::log_softmax(golden.text_logits, 1).select(1, 1).sum();
                CHECK(losses.at(0).loss.cross_entropy.value() == Approx(theirs.item<double>()).epsilon(1e-5));
            }
            // Every tensor of the file is written again, except unused ones.
            std::vector<std::string> written;
            for (const auto& tensor : model->output_tensors()) written.push_back(tensor.plan.name);
            for (const auto& [tensor, shape] : golden.checkpoint.tensors) {
                if (tensor.find("inv_freq") != std::string::npos || tensor.find("contact_head") != std::string::npos)
                    continue;
                CAPTURE(tensor);
                CHECK(std::find(written.begin(), written.end(), tensor) != written.end());
            }
            NoProgress progress;
            model->save(folder / "again", {}, progress, Cancellation());
            const auto again = model::Model::build(*checkpoint::Checkpoint::open(folder / "again"), LoadAs::float32);
            CHECK(difference(logits_of(*again, golden.batch), logits_of(model->model(), golden.batch)) == 0);
            const auto config = nlohmann::json::parse(model->config_json());
            for (const char* key : {"architectures", "id2label", "problem_type", "classifier_pooling"})
                CHECK(config.value(key, nlohmann::json()) == golden.checkpoint.config.value(key, nlohmann::json()));
        }
    }
}

TEST_CASE("Labels and problem types that do not fit are refused by their key", "[model][classes]") {
    refuses(with("bert", "num_labels", 2), ErrorCode::mismatch, "config.json: num_labels] expected 3, as many as");
    refuses(with("bert", "id2label", nlohmann::json::object()), ErrorCode::mismatch, "config.json: id2label]");
    refuses(with("bert", "problem_type", "ranking"), ErrorCode::unsupported, "config.json: problem_type]");
    refuses(with("bert-number", "problem_type", "single_label_classification"), ErrorCode::mismatch,
            "config.json: problem_type] expected regression, for one label");
    refuses(with("modernbert", "classifier_pooling", "max"), ErrorCode::unsupported,
            "config.json: classifier_pooling] expected one of cls, mean");
    // Read and analyzed, but not by the classes of texts that have one each.
    const auto several = with("roberta", "problem_type", "multi_label_classification").build();
    CHECK(several->has_classes());
    CHECK_THROWS_MATCHES(model::make_objective("classify", 3)->check(several->config()), Error,
                         IsError(ErrorCode::unsupported, "found multi_label_classification"));
    const auto numbers = with("roberta", "problem_type", "regression").build();
    CHECK_THROWS_MATCHES(model::make_objective("classify", 3)->check(numbers->config()), Error,
                         IsError(ErrorCode::unsupported, "found regression"));
}

TEST_CASE("A head that no recipe reads is refused by name, not taken for the vocabulary's", "[model][classes]") {
    TinyCheckpoint spans = golden_model("llama-tied-bf16-sharded").checkpoint;
    spans.config["architectures"] = {"LlamaForQuestionAnswering"};
    spans.tensors["qa_outputs.weight"] = {2, 20};
    const auto model = spans.build();
    CHECK_FALSE(model->has_head());
    CHECK_FALSE(model->has_classes());
    const auto& notes = model->report().notes;
    CHECK(std::find(notes.begin(), notes.end(), "the head of LlamaForQuestionAnswering is not read") != notes.end());
    CHECK_THROWS_MATCHES(model::make_objective("classify", 1)->check(golden_model("bert").checkpoint.build()->config()),
                         Error, IsError(ErrorCode::unsupported, "found a head for the vocabulary"));
    TinyCheckpoint questions = golden_model("bert").checkpoint;
    questions.config["architectures"] = {"BertForQuestionAnswering"};
    CHECK_THROWS_MATCHES(model::make_objective("classify", 2)->check(questions.build()->config()), Error,
                         IsError(ErrorCode::unsupported, "found a head for answers"));
    questions.config["num_labels"] = 3;
    refuses(questions, ErrorCode::unsupported, "num_labels] expected 2");
}

TEST_CASE("A head for answers is trained and written under its own names", "[model][classes]") {
    for (const char* name : {"bert", "roberta", "distilbert", "electra", "albert"}) {
        DYNAMIC_SECTION(name) {
            const GoldenModel golden = golden_model(std::string(name) + "-spans");
            const test::TemporaryFolder folder;
            std::filesystem::create_directory(folder / "model");
            golden.checkpoint.write(folder / "model");
            const auto file = checkpoint::Checkpoint::open(folder / "model");
            const auto model = model::Trainable::open(*file, at::kFloat);
            const auto objective = model::make_objective("spans", 2);
            objective->check(std::as_const(*model).model().config());
            model::Batch batch = golden.batch;
            batch.labels = at::ones({batch.ids.size(0), 2}, at::kLong);
            const model::TrainingForward training;
            const auto loss = objective->losses(*model, batch, {}, &training).front().loss;
            CHECK(loss.rows == batch.ids.size(0));
            loss.sum.backward();
            CHECK(model->gradients().abs().max().item<double>() > 0);
            NoProgress progress;
            model->save(folder / "again", {}, progress, Cancellation());
            const auto again = checkpoint::Checkpoint::open(folder / "again");
            for (const auto& [tensor, shape] : golden.checkpoint.tensors) {
                CAPTURE(tensor);
                CHECK(again->tensors().contains(tensor));
            }
            const auto built = model::Model::build(*again, LoadAs::float32);
            const at::Tensor logits = built->logits(built->forward(golden.batch).flatten(0, 1));
            CHECK(test::largest_difference(logits.view(golden.logits.sizes()), golden.logits, golden.batch.lengths) <
                  test::kFloatError * test::largest_value(golden.logits));
            CHECK(nlohmann::json::parse(model->config_json()).at("architectures") ==
                  golden.checkpoint.config.at("architectures"));
        }
    }
}

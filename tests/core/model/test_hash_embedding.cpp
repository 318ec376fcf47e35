// SPDX-License-Identifier: GPL-3.0-or-later
// Vectors of hashed words against numpy in float64 (tests/oracle/generate/word_hashes.py), and the configurations that
// ask for them.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/embedding/hash_embedding.h"
#include "core/model/embedding/hash_features.h"
#include "core/model/fresh/flat_weights.h"
#include "core/model/load/build.h"
#include "core/model/load/native_config.h"
#include "core/model/random_fill.h"
#include "core/model/towers/stack.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using nlohmann::json;

namespace {

const json& golden() {
    static const json all = [] {
        std::ifstream file(test::golden_file("word_hashes.json"));
        return json::parse(file);
    }();
    return all;
}

at::Tensor tensor_of(const json& one) {
    return at::tensor(one.at("values").get<std::vector<double>>(), at::kDouble)
        .view(one.at("shape").get<std::vector<std::int64_t>>());
}

model::HashEmbedding embedding_of(const json& one) {
    static const std::map<std::string, tokenizer::EmbeddingKind> kinds = {
        {"pool", tokenizer::EmbeddingKind::pool},
        {"add", tokenizer::EmbeddingKind::add},
        {"proj", tokenizer::EmbeddingKind::proj},
        {"linear", tokenizer::EmbeddingKind::linear},
        {"characters", tokenizer::EmbeddingKind::characters}};
    model::HashEmbedding made;
    made.settings.kind = kinds.at(one.at("kind"));
    made.settings.bits = one.value("bits", 0);
    made.settings.group_bits = one.value("group_bits", 0);
    made.settings.functions = one.value("hash_functions", 0);
    made.settings.buckets = one.value("buckets", 0);
    const std::map<std::string, at::Tensor*> places = {{"special", &made.special}, {"codes", &made.codes},
                                                       {"parts", &made.parts},     {"bits", &made.bits},
                                                       {"axes", &made.axes},       {"buckets", &made.buckets}};
    for (const auto& [name, value] : one.at("tensors").items()) *places.at(name) = tensor_of(value);
    return made;
}

model::Batch batch_of(const json& one) {
    model::Batch batch;
    batch.ids = at::tensor(one.at("ids").get<std::vector<std::int64_t>>(), at::kLong).unsqueeze(0);
    std::vector<std::int64_t> numbers;
    if (one.contains("points")) {
        batch.features = at::tensor(one.at("points").get<std::vector<std::int64_t>>(), at::kLong).view({1, -1, 1});
    } else {
        for (const json& row : one.at("rows"))
            for (const json& bit : row) numbers.push_back(bit.get<std::int64_t>());
        batch.features = at::tensor(numbers, at::kLong).to(at::kByte).view({1, batch.ids.size(1), -1});
    }
    return batch;
}

at::Tensor expected_of(const json& one) {
    std::vector<double> numbers;
    for (const json& row : one.at("vectors"))
        for (const json& number : row) numbers.push_back(number.get<double>());
    return at::tensor(numbers, at::kDouble).view({1, -1, one.at("hidden").get<std::int64_t>()});
}

double farthest(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
}

/// A sum of some 20 numbers below 5, in another order.
constexpr double kTolerance = 1e-13;

json config(const std::string& embedding, const std::string& others = "") {
    return json::parse(R"({"model_type": "headscope", "hidden_size": 16, "intermediate_size": 20,
                           "num_hidden_layers": 1, "num_attention_heads": 2, "rope_theta": 10000.0, "embedding": )" +
                       embedding + others + "}");
}

/// A model without a head, as one that reads no vocabulary is, with fresh weights.
struct Built {
    explicit Built(const json& text) {
        const auto fill = [this](model::TensorPlan& plan) {
            weights = std::make_unique<model::FlatWeights>(plan, nullptr, at::kFloat, 7, nullptr, nullptr);
        };
        stack = std::make_unique<model::Stack>(model::make_blueprint(text, nullptr), model::TensorPlan(), fill);
    }
    std::unique_ptr<model::FlatWeights> weights;
    std::unique_ptr<model::Stack> stack;
};

}  // namespace

TEST_CASE("A hash embedding's vectors are numpy's", "[hashed]") {
    REQUIRE(golden().at("embeddings").size() >= 7);
    for (const json& one : golden().at("embeddings")) {
        INFO(one.at("kind"));
        const model::HashEmbedding embedding = embedding_of(one);
        const model::Batch batch = batch_of(one);
        const at::Tensor expected = expected_of(one);
        CHECK(farthest(embedding(batch, nullptr), expected) < kTolerance);
        // Enough words that a pool's table is weighted whole.
        model::Batch many = batch;
        many.ids = batch.ids.repeat({9, 1});
        many.features = batch.features.repeat({9, 1, 1});
        CHECK(farthest(embedding(many, nullptr), expected.repeat({9, 1, 1})) < kTolerance);
    }
}

TEST_CASE("Gradients of a hash embedding are those of finite differences", "[hashed]") {
    for (const json& one : golden().at("embeddings")) {
        INFO(one.at("kind"));
        const at::AutoGradMode recording(true);
        model::HashEmbedding embedding = embedding_of(one);
        const model::Batch batch = batch_of(one);
        const at::Tensor weights = expected_of(one).sin();
        const auto loss = [&] { return (embedding(batch, nullptr) * weights).sum(); };
        std::size_t tensors = 0;
        for (at::Tensor* tensor : {&embedding.special, &embedding.codes, &embedding.parts, &embedding.bits,
                                   &embedding.axes, &embedding.buckets}) {
            if (!tensor->defined()) continue;
            ++tensors;
            *tensor = tensor->clone().set_requires_grad(true);
            loss().backward();
            const at::Tensor gradient = tensor->grad().flatten().clone();
            *tensor = tensor->detach();
            const at::Tensor flat = tensor->view({-1});
            for (const std::int64_t place : {std::int64_t{1}, flat.numel() / 2, flat.numel() - 1}) {
                constexpr double step = 1e-5;  // errors of step^2 and of 1e-16 / step
                const double before = flat[place].item<double>();
                flat[place].fill_(before + step);
                const double above = loss().item<double>();
                flat[place].fill_(before - step);
                const double below = loss().item<double>();
                flat[place].fill_(before);
                CHECK((above - below) / (2 * step) == Approx(gradient[place].item<double>()).margin(1e-8));
            }
        }
        CHECK(tensors >= 2);
    }
}

TEST_CASE("Features of tokens are their bits or code points", "[hashed]") {
    tokenizer::HashSettings settings;
    settings.kind = tokenizer::EmbeddingKind::add;
    settings.hash = tokenizer::WordHashKind::md5;
    settings.bits = 128;
    const tokenizer::WordHash hash(settings);
    const std::vector<std::int32_t> ids = {0, 5, 2};
    const std::vector<std::string> pieces = {"<s>", "the", "</s>"};
    const at::Tensor bits = model::hash_features(hash, ids, pieces);
    CHECK(bits.sizes() == at::IntArrayRef({1, 3, 128}));
    CHECK(bits.sum({0, 2}).equal(at::tensor(std::vector<std::int64_t>{0, 66, 0}, at::kLong)));
    const std::string hex = hash.hex("the");
    CHECK(model::stored_features(settings, ids, pieces, {"", hex, ""}).equal(bits));
    CHECK_THROWS_AS(model::stored_features(settings, ids, pieces, {"", hex.substr(1), ""}), Error);
    CHECK_THROWS_AS(model::stored_features(settings, ids, pieces, {}), Error);

    settings = {};
    settings.kind = tokenizer::EmbeddingKind::characters;
    const at::Tensor points = model::stored_features(settings, ids, {"<s>", "\u4e2d", "</s>"}, {});
    CHECK(points.equal(at::tensor(std::vector<std::int64_t>{0, 0x4E2D, 0}, at::kLong).view({1, 3, 1})));
    CHECK_THROWS_AS(model::stored_features(settings, ids, {"<s>", "ab", "</s>"}, {}), Error);
}

TEST_CASE("Numbers of a cut normal are within two deviations and spread as it", "[hashed]") {
    const at::Tensor drawn = at::empty({40'000}, at::kDouble);
    model::fill_cut_normal(drawn, 3, 0.5);
    CHECK(drawn.abs().max().item<double>() <= 1);
    CHECK(drawn.abs().max().item<double>() > 0.99);
    // 1 - 4 phi(2) / (2 Phi(2) - 1); a sample's deviates by 0.005 of it in 40 000.
    const double variance = 0.25 * 0.7737;
    CHECK(drawn.square().mean().item<double>() == Approx(variance).epsilon(0.03));
}

TEST_CASE("A native stack reads hashed words in place of a table", "[hashed]") {
    struct Case {
        std::string embedding;
        std::vector<std::string> tensors;
        std::int64_t parameters;  ///< of these
    };
    const Case cases[] = {
        {R"({"kind": "emb", "hash": "md5", "rows": 40})", {"model.embed_tokens.weight"}, 45 * 16},
        {R"({"kind": "pool", "hash": "lsh", "bits": 9, "group_bits": 4, "ngrams": 30})",
         {"model.embed_codes.weight", "model.embed_parts.weight", "model.embed_special.weight", "model.hash_normal"},
         (16 + 3 + 6) * 16},
        {R"({"kind": "add", "hash": "md5"})",
         {"model.embed_bits.weight", "model.embed_special.weight"},
         (256 + 6) * 16},
        {R"({"kind": "proj", "hash": "lsh", "bits": 7, "ngrams": 30})",
         {"model.embed_axes.weight", "model.embed_special.weight", "model.hash_normal"},
         (7 + 6) * 16},
        {R"({"kind": "linear", "hash": "lsh", "bits": 7, "ngrams": 30})",
         {"model.embed_axes.weight", "model.embed_special.weight", "model.hash_normal"},
         (7 + 5) * 16},
        {R"({"kind": "characters", "hash_functions": 4, "buckets": 11})",
         {"model.embed_buckets.weight", "model.embed_special.weight"},
         (11 + 5) * 16},
    };
    for (const Case& one : cases) {
        INFO(one.embedding);
        const Built built(config(one.embedding));
        std::vector<std::string> names;
        std::int64_t embedding = 0, all = 0;
        for (const model::Parameter& parameter : built.weights->parameters()) {
            if (parameter.trained) all += parameter.value.numel();
            if (parameter.name.find("embed_") == std::string::npos && parameter.name != "model.hash_normal") continue;
            names.push_back(parameter.name);
            if (parameter.trained) embedding += parameter.value.numel();
        }
        std::sort(names.begin(), names.end());
        CHECK(names == one.tensors);
        CHECK(embedding == one.parameters);
        model::Stack& stack = *built.stack;
        CHECK(stack.parameters() == all);
        // Counts per-word tables; rows of special tokens are only in emb's table.
        const bool in_table = stack.config().hashed.kind == tokenizer::EmbeddingKind::emb;
        CHECK(stack.embedding_parameters() == embedding - (in_table ? 0 : tokenizer::kSpecialTokens * 16));
        CHECK_FALSE(stack.has_head());
        const json written = model::saved_json(stack.config(), at::kFloat);
        const json asked = json::parse(one.embedding);
        for (const auto& [key, value] : asked.items())
            if (key != "ngrams") CHECK(written.at("embedding").at(key) == value);

        const tokenizer::HashSettings& hashed = stack.config().hashed;
        model::Batch batch;
        batch.ids = at::tensor(std::vector<std::int64_t>{0, 5, 5, 2}, at::kLong).view({2, 2});
        const bool reads_features = hashed.kind != tokenizer::EmbeddingKind::emb;
        if (reads_features) CHECK_THROWS_AS(stack.forward(batch, {}), Error);
        if (hashed.bits > 0)  // not all equal: proj would give 0
            batch.features = at::arange(4 * hashed.bits, at::kLong).remainder(2).to(at::kByte).view({2, 2, -1});
        if (hashed.functions > 0) batch.features = at::ones({2, 2, 1}, at::kLong);
        const at::Tensor hidden = stack.forward(batch, {});
        CHECK(hidden.sizes() == at::IntArrayRef({2, 2, 16}));
        CHECK(hidden.isfinite().all().item<bool>());
        const model::TrainingForward training;
        model::ForwardOptions recorded;
        recorded.training = &training;
        stack.forward(batch, recorded).sum().backward();
        for (const model::Parameter& parameter : built.weights->parameters()) {
            if (!parameter.trained || parameter.name.find("embed_") == std::string::npos) continue;
            INFO(parameter.name);
            const at::Tensor& gradients = built.weights->gradients();
            const at::Tensor own = gradients.narrow(0, parameter.value.storage_offset(), parameter.value.numel());
            CHECK(own.abs().max().item<double>() > 0);
        }
        if (!reads_features) continue;
        batch.features = batch.features.clone();
        batch.features[0][1][0] = hashed.bits > 0 ? 2 : 0x110000;
        CHECK_THROWS_AS(stack.forward(batch, {}), Error);
    }
}

TEST_CASE("What a hash embedding cannot be with is refused by its key", "[hashed]") {
    const auto refused = [](const json& text, const std::string& line) {
        INFO(text);
        CHECK_THROWS_MATCHES(model::make_blueprint(text, nullptr), Error, Catch::Message(line));
    };
    const std::string emb = R"({"kind": "emb", "hash": "md5", "rows": 9})";
    refused(config(emb, R"(, "vocab_size": 14)"),
            "[config.json: vocab_size] expected 0, or no such key, for a hash embedding has no vocabulary; found 14");
    refused(config(emb, R"(, "tie_word_embeddings": true)"),
            "[config.json: tie_word_embeddings] expected false, for a hash embedding has no vocabulary; found true");
    refused(config(R"({"kind": "characters", "hash_functions": 3, "buckets": 4})"),
            "[config.json: hidden_size] expected a multiple of embedding.hash_functions (3); found 16");
    refused(config(R"({"kind": "add", "hash": "md5", "bits": 99})"),
            "[config.json: embedding.bits] expected 128, the bits that MD5 has; found 99");
    refused(config(R"({"kind": "table"})"),
            "[config.json: vocab_size] expected a whole number from 1 to 2^31 - 1; found none");
    refused(config(emb, R"(, "layers": ["fixed_seq_qk"])"),
            "[config.json: layers] expected no fixed_seq_qk, whose guide is of a vocabulary's tokens; "
            "found [\"fixed_seq_qk\"]");
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Native encoders, encoder-decoders and decoders in other manners than Qwen2's: against
// tests/oracle/random/native_oracle.py (native_models.py) and transformers (native_layouts.py), saving, caches and
// gradients.
#include "tests/catch_with_torch.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <nlohmann/json.hpp>

#include "core/mixers/shared/attend.h"
#include "core/mixers/types/type.h"
#include "core/model/load/presets.h"
#include "core/model/towers/cache.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native/manner_stacks.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::Trainable;
using nlohmann::json;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::some_tokens;
using test::native_stacks::stack_config;

namespace {

/// A case of native_models.py or native_layouts.py, of one tower or two.
struct GoldenStack {
    test::TinyCheckpoint checkpoint;
    model::Batch batch;
    json all;

    explicit GoldenStack(const std::string& name) : checkpoint(test::golden_checkpoint("native-" + name)) {
        std::ifstream file(test::golden_model_file("native-" + name));
        REQUIRE(file.good());
        all = json::parse(file);
        batch.ids = row("ids");
        if (all.contains("target")) batch.target = row("target");
    }

    at::Tensor row(const char* key) const {
        return at::tensor(all.at(key)[0].get<std::vector<std::int64_t>>(), at::kLong).unsqueeze(0);
    }
    static at::Tensor numbers(const json& list) { return at::tensor(list.get<std::vector<double>>(), at::kDouble); }
};

/// The head's output for every row; without a head the rows themselves. [rows, columns]
at::Tensor said_by(model::Model& model, const model::Batch& batch) {
    const at::Tensor hidden = model.forward(batch).flatten(0, 1);
    return model.has_head() || model.has_classes() ? model.logits(hidden) : hidden;
}

void compare_logits(const GoldenStack& golden) {
    for (const LoadAs precision : {LoadAs::float32, LoadAs::float64}) {
        const auto model = golden.checkpoint.build(precision);
        const at::Tensor expected = GoldenStack::numbers(golden.all.at("logits"));
        at::Tensor found = said_by(*model, golden.batch);
        // With a head of text classes, transformers returns one row: the first, or a decoder's last.
        if (found.numel() > expected.numel())
            found = found.narrow(0, model->config().causal ? found.size(0) - 1 : 0, 1);
        REQUIRE(found.numel() == expected.numel());
        CHECK(largest_difference(found, expected.view(found.sizes())) < test::kFloatError * largest_value(expected));
    }
}

void compare_sites(const GoldenStack& golden) {
    const auto model = golden.checkpoint.build();
    test::RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden.batch, options);
    std::map<std::int64_t, at::Tensor> found;
    for (const auto& site : probe.sites) {
        const std::int64_t keys = site.key.size(2);
        const at::Tensor unit = at::eye(keys, at::kFloat).expand({1, site.key.size(1), keys, keys});
        found[site.site] = mixers::dense_attention(site.query, site.key, unit, site.rule);
        CHECK(site.description.causal ==
              (site.description.stack != "encoder" && site.description.kind == "self" && model->config().causal));
    }
    for (const auto& site : probe.implicits) found[site.site] = site.weights;
    const json& expected = golden.all.at("attention");
    REQUIRE(found.size() == expected.size());
    auto next = expected.begin();
    for (const auto& [site, weights] : found) {
        INFO("site " << site);
        const at::Tensor theirs = GoldenStack::numbers(*next++);
        REQUIRE(theirs.numel() == weights.numel());
        CHECK(largest_difference(weights, theirs.view(weights.sizes())) < test::kFloatError * largest_value(theirs));
    }
}

std::vector<std::string> encoder_mixers() {
    return mixers::names_where([](const mixers::MixerType& type) { return type.in_encoders; });
}

std::vector<std::string> cross_mixers() {
    return mixers::names_where([](const mixers::MixerType& type) { return type.in_cross; });
}

model::Batch some_pair(std::int64_t sequences, std::int64_t source, std::int64_t target) {
    model::Batch batch = some_tokens(sequences, source);
    batch.target = (some_tokens(sequences, target).ids * 5 + 3).remainder(29);
    return batch;
}

/// Every manner with every mixer and head that goes with it.
std::vector<json> all_stacks() {
    std::vector<json> list;
    for (const std::string& mixer : encoder_mixers())
        list.push_back(stack_config("encoder", {mixer, "standard", mixer}));
    for (const std::string& mixer : cross_mixers()) {
        list.push_back(stack_config("both", {"standard", mixer, mixer}));
        list.push_back(stack_config("decoder", {mixer, mixer}));
    }
    for (const json& head : {json{{"kind", "token_classes"}, {"classes", 3}},
                             json{{"kind", "sequence_classes"}, {"classes", 1}}, json{{"kind", "language"}}})
        list.push_back(stack_config("encoder", {"standard", "skv"}, {{"head", head}}));
    for (const char* mixer : {"standard", "gated_deltanet"})
        list.push_back(
            stack_config("decoder", {"standard", mixer},
                         {{"head", {{"kind", "sequence_classes"}, {"classes", 2}}}, {"tie_word_embeddings", false}}));
    list.push_back(stack_config("both", {"sha", "mqa", "standard"},
                                {{"norm_place", "pre"},
                                 {"positions", "rotary"},
                                 {"feed_forward", "gated"},
                                 {"qk_norm", true},
                                 {"embedding_norm", true},
                                 {"num_key_value_heads", 1},
                                 {"tie_word_embeddings", false}}));
    list.push_back(stack_config("decoder", {"rnd_emb_qk", "fixed_seq_qk", "static_emb_qk"},
                                {{"norm_place", "post"}, {"head_bias", true}}));
    list.push_back(stack_config("encoder", {"standard", "standard"}));
    list.push_back(stack_config("both", {"standard", "standard", "standard"},
                                {{"positions", "learned"}, {"embedding_norm", true}, {"embedding_scale", 1.0}}));
    return list;
}

model::Batch batch_of(const json& config, std::int64_t length) {
    return config.value("stack", "") == "encoder_decoder" ? some_pair(2, length, length - 2) : some_tokens(2, length);
}

/// Sum of cross-entropies of every row's logits, against targets that depend on nothing.
model::LossSum loss_of(const Trainable& model, const at::Tensor& hidden) {
    const at::Tensor rows = hidden.flatten(0, 1);
    const std::int64_t columns = model.model().config().head_columns();
    return model.loss(rows, at::arange(rows.size(0), at::kLong).remainder(columns));
}

}  // namespace

TEST_CASE("Native stacks of every manner, mixer and head are what the oracle says", "[native][golden]") {
    for (const std::string& mixer : encoder_mixers()) {
        INFO(mixer);
        const GoldenStack golden("encoder-" + mixer);
        compare_logits(golden);
        compare_sites(golden);
    }
    for (const std::string& mixer : cross_mixers()) {
        INFO(mixer);
        const GoldenStack golden("both-" + mixer);
        compare_logits(golden);
        compare_sites(golden);
    }
    for (const char* name : {"classic-decoder-standard", "classic-decoder-mhe_mul", "classic-decoder-gated_deltanet",
                             "encoder-other-choices", "decoder-guides-post", "both-other-choices"}) {
        INFO(name);
        const GoldenStack golden(name);
        compare_logits(golden);
        compare_sites(golden);
    }
    for (const char* name : {"bart", "encoder-token-classes", "encoder-text-classes", "decoder-classes"}) {
        INFO(name);
        compare_logits(GoldenStack(name));
    }
}

TEST_CASE("Stacks that transformers knows are read under its names, and written so again", "[native][golden]") {
    for (const std::string name :
         {"bert", "bert-one-type", "bert-token-classes", "bert-text-classes", "bert-spans", "bert-none", "gpt2",
          "gpt2-untied", "gpt2-token-classes", "gpt2-text-classes", "gpt2-none", "bart", "bart-scaled"}) {
        INFO(name);
        const GoldenStack golden("layout-" + name);
        compare_logits(golden);
        const test::TemporaryFolder folder;
        golden.checkpoint.write(folder.path());
        const auto file = checkpoint::Checkpoint::open(folder.path());
        const model::Inspection inspection = model::inspect(*file);
        CHECK(inspection.config.family == "headscope");
        CHECK(inspection.config.layout == name.substr(0, 4));
        CHECK(inspection.report.left_over.empty());
        if (name.ends_with("none")) {
            CHECK_FALSE(inspection.has_head);
            CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat), Error,
                                 IsError(ErrorCode::unsupported, "found none"));
            continue;
        }
        CHECK(json::parse(Trainable::open(*file, at::kFloat)->config_json()) == golden.checkpoint.config);
        CHECK_THROWS_MATCHES(Trainable::open(*file, at::kFloat, {{{0, "mhe_add"}}}), Error,
                             IsError(ErrorCode::unsupported, "native names"));
        // Another stack than model_type says.
        test::TinyCheckpoint other = golden.checkpoint;
        other.config["headscope"]["norm"] = "rms";
        CHECK_THROWS_MATCHES(other.build(), Error, IsError(ErrorCode::mismatch, "config.json: headscope"));
    }
}

TEST_CASE("A native stack is opened as it was saved", "[native][trainable]") {
    const test::TemporaryFolder folder;
    NoProgress progress;
    const Cancellation cancellation;
    int number = 0;
    for (const json& config : all_stacks()) {
        INFO(config.dump());
        const auto made = Trainable::create(config.dump(), 3, at::kFloat);
        const auto path = folder.path() / std::to_string(number++);
        made->save(path, {}, progress, cancellation);
        const auto file = checkpoint::Checkpoint::open(path);
        const auto again = Trainable::open(*file, at::kFloat);
        CHECK(at::equal(again->weights(), made->weights()));
        CHECK(again->config_json() == made->config_json());
        CHECK(again->model().sites().size() == made->model().sites().size());
        const model::Batch batch = batch_of(config, 9);
        CHECK(at::equal(said_by(again->model(), batch), said_by(made->model(), batch)));
        // Multiplying part of a matrix in place rounds by its position in memory.
        const bool in_place = config.at("layers").dump().find("\"linear\"") != std::string::npos;
        const at::Tensor states = made->model().forward(batch);
        CHECK(largest_difference(model::Model::build(*file)->forward(batch), states) <=
              (in_place ? test::kFloatError * largest_value(states) : 0));
        const std::string layout = made->model().config().layout;
        CHECK(file->config().at("model_type") == (layout.empty() ? "headscope" : layout));
    }
    const auto layout = [](const json& config) { return model::inspect_config(config.dump()).config.layout; };
    CHECK(layout(stack_config("encoder", {"standard", "standard"})) == "bert");
    CHECK(layout(stack_config("decoder", {"standard", "standard"})) == "gpt2");
    CHECK(layout(stack_config("both", {"standard", "standard", "standard"})).empty());
    CHECK(layout(all_stacks().back()) == "bart");
    CHECK(layout(stack_config("encoder", {"standard", "mhe_mul"})).empty());
}

TEST_CASE("Gradients of native stacks agree with finite differences", "[native][gradients]") {
    for (const json& config : all_stacks()) {
        INFO(config.dump());
        const auto model = Trainable::create(config.dump(), 1, at::kDouble);
        const model::Batch batch = batch_of(config, 6);
        loss_of(*model, model->forward(batch)).sum.backward();
        const at::Tensor gradient = model->gradients().clone();
        const auto value = [&] {
            const c10::InferenceMode inference;
            return loss_of(*model, model->model().forward(batch)).sum.item<double>();
        };
        double* weights = model->weights().mutable_data_ptr<double>();
        for (const model::Parameter& parameter : model->parameters()) {
            if (!parameter.trained) continue;
            INFO(parameter.name);
            // An element of every tensor; of positions' tables and maps one that a short text reads.
            const bool first = parameter.name.find("position") != std::string::npos ||
                               parameter.name.find("wpe") != std::string::npos ||
                               parameter.name.find("token_proj") != std::string::npos;
            const std::int64_t i = parameter.value.storage_offset() + (first ? 1 : parameter.value.numel() / 2);
            constexpr double step = 1e-5;
            const double here = weights[i];
            weights[i] = here + step;
            const double above = value();
            weights[i] = here - step;
            const double below = value();
            weights[i] = here;
            CHECK(gradient[i].item<double>() == Approx((above - below) / (2 * step)).epsilon(2e-5).margin(2e-7));
        }
    }
}

TEST_CASE("A padded text or pair gives what it gives alone, in every native stack", "[native]") {
    for (const json& config : all_stacks()) {
        INFO(config.dump());
        const auto made = Trainable::create(config.dump(), 3, at::kFloat);
        model::Model& model = made->model();
        model::Batch both = batch_of(config, 12), alone;
        both.lengths = {12, 7};
        alone.ids = both.ids.narrow(0, 1, 1).narrow(1, 0, 7);
        std::int64_t rows = 7;
        if (both.target.defined()) {
            rows = 4;
            both.target_lengths = {10, rows};
            alone.target = both.target.narrow(0, 1, 1).narrow(1, 0, rows);
        }
        const at::Tensor expected = model.forward(alone), together = model.forward(both);
        CHECK(together.isfinite().all().item<bool>());
        CHECK(largest_difference(together.narrow(0, 1, 1).narrow(1, 0, rows), expected) <
              3 * test::kFloatError * largest_value(expected));
    }
}

TEST_CASE("A target read in pieces is the target read at once, with every mixer in cross-attention",
          "[native][decoding]") {
    for (const std::string& mixer : cross_mixers()) {
        INFO(mixer);
        const auto made = Trainable::create(stack_config("both", {"standard", mixer, mixer}).dump(), 3, at::kFloat);
        model::Model& model = made->model();
        const model::Batch whole = some_pair(2, 11, 9);
        const at::Tensor expected = model.forward(whole);
        const auto cache = model.new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        std::vector<at::Tensor> parts;
        for (std::int64_t at = 0; at < 9; at += 3) {
            model::Batch piece;
            if (at == 0) piece.ids = whole.ids;
            piece.target = whole.target.narrow(1, at, 3);
            parts.push_back(model.forward(piece, options));
        }
        CHECK(largest_difference(at::cat(parts, 1), expected) < 3 * test::kFloatError * largest_value(expected));
    }
    // Keys and values that all heads share are held once.
    const auto bytes = [](const std::string& mixer) {
        const auto made = Trainable::create(stack_config("both", {"standard", mixer, mixer}).dump(), 3, at::kFloat);
        const auto cache = made->model().new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        made->model().forward(some_pair(1, 64, 64), options);
        return cache->bytes();
    };
    CHECK(bytes("standard") == 3 * bytes("mhe_add"));
    CHECK(bytes("mhe_mul") == bytes("sha"));
    CHECK(bytes("el_att") == bytes("skv"));
}

TEST_CASE("An encoder sees all of its text, and a decoder what came before", "[native]") {
    const auto changed = [](const json& config) {
        const auto made = Trainable::create(config.dump(), 3, at::kFloat);
        model::Batch batch = some_tokens(1, 8);
        const at::Tensor before = made->model().forward(batch).clone();
        batch.ids = batch.ids.clone();
        batch.ids[0][7] = (batch.ids[0][7] + 1).remainder(29);
        return largest_difference(made->model().forward(batch).narrow(1, 0, 1), before.narrow(1, 0, 1));
    };
    for (const std::string& mixer : encoder_mixers()) {
        INFO(mixer);
        const bool mixes = mixer != "mlp";
        CHECK((changed(stack_config("encoder", {mixer})) > 1e-4) == mixes);
    }
    for (const std::string& mixer : cross_mixers()) {
        INFO(mixer);
        CHECK(changed(stack_config("decoder", {mixer})) < 1e-6);
    }
}

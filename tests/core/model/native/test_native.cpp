// SPDX-License-Identifier: GPL-3.0-or-later
// Native models of every mixer that there is against tests/oracle/random/native_oracle.py; their padding, sizes and
// sites. test_native_decoding.cpp has their caches, test_native_gradients.cpp their gradients.
#include "tests/catch_with_torch.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/model/load/presets.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/golden_matrices.h"
#include "tests/core/model/native/mixer_stacks.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using namespace headscope::test::native_mixers;
using model::Trainable;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::some_tokens;

namespace {

void compare(const std::string& name) {
    INFO(name);
    const GoldenModel golden = test::golden_model(name);
    for (const auto precision : {checkpoint::LoadAs::float32, checkpoint::LoadAs::float64}) {
        const auto model = golden.checkpoint.build(precision);
        const at::Tensor hidden = model->forward(golden.batch);
        const at::Tensor logits = model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
        CHECK(largest_difference(logits, golden.logits) < test::kFloatError * largest_value(golden.logits));
    }
    test::compare_matrices(golden);
}

}  // namespace

TEST_CASE("Native models of every mixer are what the oracle says", "[native][golden]") {
    for (const std::string& mixer : all_mixers()) {
        compare("native-" + mixer);
        compare("native-" + mixer + "-norms");
    }
    for (const char* mixer :
         {"gated_deltanet", "deltanet", "retnet", "gla", "lightning", "kda", "natsl", "mamba2", "ttt_linear", "titans"})
        compare(std::string("native-") + mixer + "-options");
    for (const char* ablation : {"softmax-inside", "linear-inside", "kept-whole", "one-norm", "no-weights"})
        compare(std::string("native-natsl-") + ablation);
    for (const char* baseline : {"sigmoid-bias", "alibi-six-heads", "streaming-llm-text", "streaming-llm-cache"})
        compare(std::string("native-") + baseline);
    compare("native-deltanet-plain");
    compare("native-mamba2-alone");
    compare("native-standard-sparsemax");
    for (const char* ablation : {"small-window", "no-bias", "constant", "fixed", "softmax", "sparsemax", "entmax"})
        compare(std::string("native-lazy-") + ablation);
}

TEST_CASE("A padded text gives what it gives alone, for every mixer", "[native]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer, "standard", mixer}).dump(), 3, at::kFloat);
        const model::Batch both = {some_tokens(2, 12).ids, {12, 7}, {}};
        const at::Tensor alone = trainable->model().forward({both.ids.narrow(0, 1, 1).narrow(1, 0, 7), {}, {}});
        const at::Tensor together = trainable->model().forward(both);
        CHECK(together.isfinite().all().item<bool>());
        CHECK(largest_difference(together.narrow(0, 1, 1).narrow(1, 0, 7), alone) <
              test::kFloatError * largest_value(alone));
    }
}

TEST_CASE("Mixers without a state have as many parameters as their maps, but for the guide", "[native]") {
    const auto count = [](const std::string& mixer, const nlohmann::json& options) {
        nlohmann::json config = stack_config({mixer, mixer, mixer}, options);
        config["attention_bias"] = options.value("attention_bias", false);
        return model::inspect_config(config.dump()).parameters;
    };
    const std::int64_t standard = count("standard", {{"qk_norm", false}});
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        // Per layer, beside the output projection: {weights, biases and norms}. The maps of `mlp` have neither biases
        // nor norms; `lazy` has 512 distances and an offset for each of three heads.
        static const std::map<std::string, std::pair<std::int64_t, std::int64_t>> others{
            {"mlp", {432, 0}},      {"sink_logits", {435, 36}}, {"sha", {144, 12}},
            {"mqa", {240, 20}},     {"skv", {288, 24}},         {"el_att", {144, 12}},
            {"mhe_add", {180, 12}}, {"mhe_mul", {180, 12}},     {"lazy", {432 + 3 * 513, 36}}};
        const auto found = others.find(mixer);
        const auto [weights, biases] =
            found == others.end() ? std::pair<std::int64_t, std::int64_t>{432, 36} : found->second;
        if (!is_recurrent(mixer)) {
            CHECK(count(mixer, {{"qk_norm", false}}) == standard + 3 * (weights - 432));
            CHECK(count(mixer, {{"attention_bias", true}}) == standard + 3 * (weights - 432 + biases));
        }
        const auto made = Trainable::create(stack_config({mixer, mixer}).dump(), 1, at::kFloat);
        std::int64_t trained = 0, given = 0;
        for (const model::Parameter& one : made->parameters()) (one.trained ? trained : given) += one.value.numel();
        CHECK(trained == made->model().parameters());
        CHECK(given == (mixer == "rnd_emb_qk" ? 320 * 12 : mixer == "fixed_seq_qk" ? 320 : 0));
    }
}

TEST_CASE("A layer without a matrix has a place among the sites and is never measured", "[native]") {
    const auto trainable = Trainable::create(stack_config({"standard", "mlp"}).dump(), 1, at::kFloat);
    model::Model& model = trainable->model();
    REQUIRE(model.sites().size() == 2);
    CHECK(model.sites()[0].has_matrix);
    CHECK_FALSE(model.sites()[1].has_matrix);
    test::RecordingProbe probe(true);
    model::ForwardOptions options;
    options.probe = &probe;
    model.forward(some_tokens(1, 5), options);
    CHECK(probe.sites.size() == 1);
}

TEST_CASE("The implicit matrix of a state makes a head's output of its values", "[native]") {
    for (const std::string& mixer : all_mixers()) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({"standard", mixer}).dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        if (!model.sites()[1].has_implicit) continue;
        CHECK_FALSE(model.sites()[1].has_matrix);
        for (const std::int64_t length : {1, 63, 64, 65}) {
            INFO(length);
            test::RecordingProbe probe(true, {"value", "head_output"});
            model::ForwardOptions options;
            options.probe = &probe;
            model.forward(some_tokens(2, length), options);
            REQUIRE(probe.implicits.size() == 1);
            const auto& [site, weights, statistics, deviation] = probe.implicits.front();
            CHECK(site == 1);
            CHECK(weights.triu(1).abs().max().item<double>() == 0);
            const at::Tensor& output = probe.at("head_output", 1);
            CHECK(largest_difference(weights.matmul(probe.at("value", 1)), output) <
                  test::kFloatError * largest_value(output));
            CHECK(deviation < test::kFloatError * largest_value(output));
            CHECK(statistics.entropy.size() == static_cast<std::size_t>(2 * output.size(1)));
        }
    }
}

TEST_CASE("A state that learns has neither a matrix nor an implicit one", "[native]") {
    for (const char* mixer : kLearners) {
        INFO(mixer);
        const auto trainable = Trainable::create(stack_config({mixer}).dump(), 1, at::kFloat);
        model::Model& model = trainable->model();
        REQUIRE(model.sites().size() == 1);
        CHECK_FALSE(model.sites()[0].has_matrix);
        CHECK_FALSE(model.sites()[0].has_implicit);
        test::RecordingProbe probe(true, {"value", "head_output"});
        model::ForwardOptions options;
        options.probe = &probe;
        model.forward(some_tokens(2, 21), options);
        CHECK(probe.implicits.empty());
        CHECK(probe.at("value", 0).sizes() == std::vector<std::int64_t>{2, 3, 21, 16});
        CHECK(probe.at("head_output", 0).sizes() == std::vector<std::int64_t>{2, 3, 21, 16});
    }
}

TEST_CASE("Sizes of a mixer with a state that do not fit are refused by their option", "[native]") {
    const auto refuses = [](const std::string& mixer, const nlohmann::json& options, ErrorCode code,
                            const std::string& part, const nlohmann::json& more = nlohmann::json::object()) {
        CAPTURE(mixer, part);
        nlohmann::json config = native_config({mixer}, more);
        config["mixers"][mixer] = options;
        CHECK_THROWS_MATCHES(Trainable::create(config.dump(), 1, at::kFloat), Error, test::IsError(code, part));
    };
    refuses("gated_deltanet", {{"num_value_heads", 4}}, ErrorCode::mismatch, "gated_deltanet.num_value_heads");
    refuses("deltanet", {{"expand_v", 0.3}}, ErrorCode::mismatch, "deltanet.expand_v");
    refuses("gla", {{"num_key_value_heads", 2}}, ErrorCode::mismatch, "gla.num_key_value_heads");
    refuses("gla", {{"clamp_min", 1}}, ErrorCode::mismatch, "clamp_min");
    refuses("retnet", {{"head_dim", 3}}, ErrorCode::mismatch, "retnet.head_dim");
    refuses("deltanet", {{"qk_norm", "l1"}}, ErrorCode::mismatch, "qk_norm");
    refuses("kda", {{"expand_v", 0.3}}, ErrorCode::mismatch, "kda.expand_v");
    refuses("ttt_linear", {{"mini_batch_size", 0}}, ErrorCode::mismatch, "mini_batch_size");
    refuses("titans", {{"base_lr", 0}}, ErrorCode::mismatch, "base_lr");
    refuses("titans", {{"expand_v", 2.0}}, ErrorCode::mismatch, "expand_v");
    // Heads as large as the model's, which no option bounds.
    refuses("lightning", {{"num_heads", 2}}, ErrorCode::mismatch, "lightning.head_dim", {{"head_dim", 1 << 27}});
    refuses("deltanet", {{"num_heads", 2}, {"expand_v", 1024}}, ErrorCode::mismatch, "deltanet.expand_v",
            {{"head_dim", 1 << 20}});
    refuses("mamba2", nlohmann::json::object(), ErrorCode::mismatch, "mamba2.head_dim", {{"head_dim", 1 << 27}});
    refuses("gla", {{"head_dim", 65537}}, ErrorCode::mismatch, "head_dim");
    refuses("mamba2", {{"state_size", std::int64_t{1} << 31}}, ErrorCode::mismatch, "state_size");
    refuses("standard", nlohmann::json::object(), ErrorCode::mismatch, "head_dim",
            {{"head_dim", std::int64_t{1} << 31}});
    refuses("retnet", {{"use_gate", false}}, ErrorCode::unsupported, "retnet",
            {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}});
}

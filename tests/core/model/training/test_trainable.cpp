// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <cmath>
#include <set>

#include <ATen/ops/equal.h>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/objectives/objective.h"
#include "core/model/training_forward.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/native_model.h"

using namespace headscope;
using model::Trainable;

namespace {

nlohmann::json tiny(const std::string& type) {
    return {{"model_type", type},       {"vocab_size", 19},       {"hidden_size", 12},
            {"intermediate_size", 20},  {"num_hidden_layers", 3}, {"num_attention_heads", 3},
            {"num_key_value_heads", 3}, {"head_dim", 4},          {"max_position_embeddings", 40},
            {"initializer_range", 0.2}};
}

model::Batch ids(std::int64_t sequences, std::int64_t length) {
    return test::some_tokens(sequences, length, 19);
}

const model::Parameter& parameter(const Trainable& model, const std::string& name) {
    const model::Parameter* found = test::find_parameter(model, name);
    INFO(name);
    REQUIRE(found != nullptr);
    return *found;
}

}  // namespace

TEST_CASE("Fresh models have the names, decays and beginnings of the specification", "[trainable]") {
    nlohmann::json config = tiny("qwen2");
    const auto model = Trainable::create(config.dump(), 5, at::kFloat);
    std::set<std::string> names;
    std::int64_t elements = 0;
    for (const model::Parameter& one : model->parameters()) {
        names.insert(one.name);
        elements += one.value.numel();
        CHECK(one.decays == (one.value.dim() > 1));
    }
    CHECK(names.size() == 3 * 12 + 3);
    CHECK(elements == model->model().parameters());
    CHECK(names.count("model.layers.2.self_attn.k_proj.bias") == 1);
    CHECK(names.count("lm_head.weight") == 1);
    CHECK(parameter(*model, "model.norm.weight").value.eq(1).all().item<bool>());
    CHECK(parameter(*model, "model.layers.0.self_attn.q_proj.bias").value.eq(0).all().item<bool>());
    const at::Tensor table = parameter(*model, "model.embed_tokens.weight").value;
    // 228 numbers: their mean is within 0.2 / sqrt(228) * 5 of 0, their deviation within a quarter of 0.2.
    CHECK(std::abs(table.mean().item<double>()) < 0.07);
    CHECK(table.std().item<double>() == Approx(0.2).epsilon(0.25));
    CHECK(model->decayed() < model->weights().numel());
    CHECK(model->gradients().sizes() == model->weights().sizes());
}

TEST_CASE("A tensor's beginning depends on the seed and its name alone", "[trainable]") {
    nlohmann::json config = tiny("qwen3");
    const auto three = Trainable::create(config.dump(), 5, at::kFloat);
    config["num_hidden_layers"] = 4;
    const auto four = Trainable::create(config.dump(), 5, at::kFloat);
    const auto other = Trainable::create(config.dump(), 6, at::kFloat);
    for (const model::Parameter& one : three->parameters()) {
        INFO(one.name);
        CHECK(at::equal(one.value, parameter(*four, one.name).value));
        if (one.decays) CHECK_FALSE(at::equal(one.value, parameter(*other, one.name).value));
    }
}

TEST_CASE("Gradients arrive in the flat vector, add up, and agree with finite differences", "[trainable]") {
    const nlohmann::json latent{{"qk_nope_head_dim", 2},
                                {"qk_rope_head_dim", 4},
                                {"v_head_dim", 3},
                                {"kv_lora_rank", 5},
                                {"q_lora_rank", 6},
                                {"n_routed_experts", 4},
                                {"n_group", 2},
                                {"topk_group", 1},
                                {"num_experts_per_tok", 2},
                                {"moe_intermediate_size", 5},
                                {"first_k_dense_replace", 1}};
    const nlohmann::json pieces{{"num_local_experts", 3},      {"attention_chunk_size", 3},
                                {"no_rope_layer_interval", 2}, {"floor_scale", 2},
                                {"intermediate_size_mlp", 7},  {"interleave_moe_layer_step", 2}};
    for (const char* type : {"llama", "qwen2", "qwen3", "gpt2", "deepseek_v3", "llama4_text"}) {
        INFO(type);
        nlohmann::json config = tiny(type);
        if (config["model_type"] == "deepseek_v3") config.update(latent);
        if (config["model_type"] == "llama4_text") config.update(pieces);
        if (config["model_type"] == "gpt2")
            config = {{"model_type", "gpt2"}, {"vocab_size", 19}, {"n_embd", 12},     {"n_layer", 2},
                      {"n_head", 3},          {"n_inner", 20},    {"n_positions", 40}};
        const auto model = Trainable::create(config.dump(), 1, at::kDouble);
        const model::Batch batch = ids(2, 7);
        test::next_token_loss(*model, batch).backward();
        const at::Tensor gradient = model->gradients().clone();
        test::next_token_loss(*model, batch).backward();
        CHECK((model->gradients() - 2 * gradient).abs().max().item<double>() < 1e-12);
        const std::int64_t size = gradient.numel();
        for (std::int64_t i = 0; i < size; i += size / 41) {
            CHECK(gradient[i].item<double>() ==
                  Approx(test::finite_difference(*model, batch, i)).epsilon(1e-5).margin(1e-8));
        }
    }
}

TEST_CASE("Dropout is a function of its seed, and takes its share", "[trainable]") {
    const auto model = Trainable::create(tiny("llama").dump(), 1, at::kDouble);
    const model::Batch batch = ids(3, 12);
    const auto value = [&](double share, std::uint64_t seed) {
        return test::next_token_loss(*model, batch, {share, seed}).item<double>();
    };
    CHECK(value(0.3, 7) == value(0.3, 7));
    CHECK(value(0.3, 7) != value(0.3, 8));
    CHECK(value(0.0, 7) == value(0.0, 8));
}

TEST_CASE("Fused attention drops the weights that the formula drops", "[trainable]") {
    const model::Batch batch = ids(3, 12);
    for (const char* mixer : {"standard", "sigmoid", "lazy", "rnd_emb_qk", "static_emb_qk"}) {
        nlohmann::json config = tiny("headscope");
        config["layers"] = std::vector<std::string>(3, mixer);
        INFO(mixer);
        const auto single = Trainable::create(config.dump(), 1, at::kFloat);
        const auto wide = Trainable::create(config.dump(), 1, at::kDouble);
        model::TrainingForward training;
        training.attention_dropout = 0.3;
        training.attention_seed = 5;
        const auto loss = [&](Trainable& model) {
            model.gradients().zero_();
            const at::Tensor sum = test::next_token_loss(model, batch, training);
            sum.backward();
            return sum.item<double>();
        };
        CHECK(loss(*single) == Approx(loss(*wide)).epsilon(1e-5));
        const at::Tensor expected = wide->gradients();
        // Sums of a few dozen float32 products in three layers; one wrong pair is off by a third of a gradient.
        CHECK((single->gradients().to(at::kDouble) - expected).abs().max().item<double>() <
              1e-4 * expected.abs().max().item<double>());
        const double dropped = loss(*single);
        training.step_sequence = 1;
        CHECK(loss(*single) != dropped);
        training.attention_dropout = 0;
        training.attention_seed = 6;
        CHECK(loss(*single) == test::next_token_loss(*single, batch).item<double>());
    }
}

TEST_CASE("Parts of a pass drop what the whole pass drops", "[trainable]") {
    const auto model = Trainable::create(tiny("llama").dump(), 1, at::kDouble);
    const model::Batch batch = ids(3, 5);
    const auto hidden = [&](std::int64_t begin, std::int64_t count, std::int64_t first) {
        const model::TrainingForward training{0.3, 7, first};
        return model->forward({batch.ids.narrow(0, begin, count).contiguous(), {}, {}}, training).detach();
    };
    const at::Tensor whole = hidden(0, 3, 0);
    constexpr double kRounding = 1e-13;  // sums of 20 float64 numbers near 1, in three layers
    const auto difference = [&](const at::Tensor& part, std::int64_t begin) {
        return (part - whole.narrow(0, begin, part.size(0))).abs().max().item<double>();
    };
    CHECK(difference(hidden(0, 1, 0), 0) < kRounding);
    CHECK(difference(hidden(1, 2, 1), 1) < kRounding);
    CHECK(difference(hidden(1, 2, 0), 1) > 0.01);  // as the first sequences it is another draw
}

TEST_CASE("A saved model is opened with the same weights, and with the config that transformers reads", "[trainable]") {
    const test::TemporaryFolder folder;
    NoProgress progress;
    const Cancellation cancellation;
    const std::pair<nlohmann::json, std::string> kinds[] = {
        {{{"attention_bias", true}}, "qwen2"},      {{{"qk_norm", true}}, "qwen3"},
        {{{"tie_word_embeddings", true}}, "llama"}, {{{"qk_norm", true}, {"attention_bias", true}}, "headscope"},
        {{{"rotary", false}}, "headscope"},         {{{"hidden_size", 22}, {"head_dim", 6}}, "mistral"},
    };
    for (const auto& [choice, written] : kinds) {
        nlohmann::json config = tiny("headscope");
        config["num_key_value_heads"] = 1;
        config.update(choice);
        INFO(choice.dump());
        const auto model = Trainable::create(config.dump(), 3, at::kFloat);
        const auto path = folder.path() / choice.dump().substr(2, 5) / written;
        std::filesystem::create_directories(path.parent_path());
        model->save(path, {}, progress, cancellation);
        const auto file = checkpoint::Checkpoint::open(path);
        CHECK(file->config().at("model_type") == written);
        const auto again = Trainable::open(*file, at::kFloat);
        CHECK(at::equal(again->weights(), model->weights()));
        const model::Batch read_ids = ids(2, 9);
        CHECK(at::equal(again->model().forward(read_ids), model->model().forward(read_ids)));
        const auto read = model::Model::build(*file);
        CHECK(at::equal(read->forward(read_ids), model->model().forward(read_ids)));
        // One pass under autograd is the same computation up to the order of sums.
        CHECK((model->forward(read_ids).detach() - read->forward(read_ids)).abs().max().item<double>() < 1e-5);
    }
}

TEST_CASE("Biases of experts begin at zero and take no weight decay", "[trainable]") {
    nlohmann::json config = tiny("gpt_oss");
    config.update({{"num_local_experts", 3}, {"num_experts_per_tok", 2}});
    const auto model = Trainable::create(config.dump(), 1, at::kFloat);
    const model::Parameter& bias = parameter(*model, "model.layers.1.mlp.experts.down_proj_bias");
    CHECK(bias.shape == std::vector<std::int64_t>{3, 12});
    CHECK_FALSE(bias.decays);
    CHECK(bias.value.eq(0).all().item<bool>());
    CHECK_FALSE(parameter(*model, "model.layers.1.self_attn.sinks").decays);
    CHECK(parameter(*model, "model.layers.1.mlp.experts.down_proj").decays);
}

TEST_CASE("What cannot be trained is refused by name", "[trainable]") {
    nlohmann::json config;
    const auto encoder = Trainable::create(tiny("bert").dump(), 1, at::kFloat);
    CHECK_THROWS_WITH(model::next_token()->check(std::as_const(*encoder).model().config()),
                      Catch::Contains("found an encoder"));
    CHECK_THROWS_AS(Trainable::create(R"({"model_type": "t5"})", 1, at::kFloat), Error);
    CHECK_THROWS_AS(Trainable::create("[", 1, at::kFloat), Error);
    CHECK_THROWS_AS(Trainable::create(tiny("llama").dump(), 1, at::kHalf), Error);
    config = tiny("headscope");
    config["layers"] = {"standard", "standard", "nothing"};
    CHECK_THROWS_WITH(Trainable::create(config.dump(), 1, at::kFloat), Catch::Contains("nothing"));
}

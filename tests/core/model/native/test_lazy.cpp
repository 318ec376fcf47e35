// SPDX-License-Identifier: GPL-3.0-or-later
// Lazy Attention beyond what test_native.cpp asks of every mixer: its ablations, gradients, and what is measured.
#include "tests/catch_with_torch.h"

#include <fstream>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using model::Trainable;
using nlohmann::json;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::some_tokens;

namespace {

const std::vector<std::pair<std::string, json>> kAblations{
    {"as it is", json::object()},
    {"a window shorter than the text", {{"window", 17}}},
    {"no bias", {{"distance_bias", false}}},
    {"a constant offset from -1/2", {{"offset", "constant"}, {"offset_init", -0.5}}},
    {"an offset from 0", {{"offset_init", 0.0}}},
    {"a fixed offset", {{"offset", "fixed"}}},
    {"softmax", {{"normaliser", "softmax"}}},
    {"sparsemax", {{"normaliser", "sparsemax"}}},
    {"entmax", {{"normaliser", "entmax"}}},
    {"ALiBi's slopes", {{"slopes", "fixed"}}},
    {"trained slopes", {{"slopes", "trained"}, {"window", 17}}},
    {"trained slopes alone", {{"slopes", "trained"}, {"distance_bias", false}}},
};

json lazy(const json& options, const json& more = json::object()) {
    json all = {{"mixers", {{"lazy", options}}}};
    all.update(more);
    return native_config({"lazy", "lazy"}, all);
}

/// A model whose biases and offsets are spread.
std::unique_ptr<Trainable> made(const json& options, at::ScalarType type = at::kFloat,
                                const json& more = json::object()) {
    auto model = Trainable::create(lazy(options, more).dump(), 3, type);
    for (const model::Parameter& one : model->parameters()) {
        const at::Tensor places = at::arange(one.value.numel(), at::kDouble).view(one.value.sizes());
        if (one.name.ends_with("distance_bias")) one.value.copy_((places * 0.7).sin());
        if (one.name.ends_with("self_attn.offset")) one.value.copy_(-1.2 + 0.4 * places);
    }
    return model;
}

const model::Parameter& parameter(const Trainable& model, const std::string& name) {
    const model::Parameter* found = test::find_parameter(model, "model.layers.0.self_attn." + name);
    REQUIRE(found != nullptr);
    return *found;
}

test::RecordingProbe recorded(model::Model& model, const model::Batch& batch) {
    test::RecordingProbe probe(true, {"head_output"});
    model::ForwardOptions options;
    options.probe = &probe;
    model.forward(batch, options);
    return probe;
}

}  // namespace

TEST_CASE("Gradients of Lazy Attention are the golden ones, of bias and offset too", "[lazy][gradients]") {
    std::ifstream stream(test::golden_file("lazy_gradients.json"));
    for (const json& one : json::parse(stream)) {
        const auto name = one.at("model").get<std::string>();
        test::GoldenModel golden = test::golden_model(name);
        golden.checkpoint.config["rotary"] = false;  // angles are float32 whatever the type
        const test::TemporaryFolder folder;
        golden.checkpoint.write(folder.path());
        for (const auto type : {at::kDouble, at::kFloat}) {
            INFO(name << ", " << (type == at::kDouble ? "exact" : "float32"));
            const auto model = Trainable::open(*checkpoint::Checkpoint::open(folder.path()), type);
            test::next_token_loss(*model, golden.batch).backward();
            for (const auto& [tensor, numbers] : one.at("gradients").items()) {
                INFO(tensor);
                const at::Tensor expected = at::tensor(numbers.get<std::vector<double>>(), at::kDouble);
                const model::Parameter* own = test::find_parameter(*model, tensor);
                REQUIRE(own != nullptr);
                const at::Tensor found = model->gradients().narrow(0, own->value.storage_offset(), expected.numel());
                // The golden numbers have nine digits, in sums that cancel; float32 as in
                // test_native_gradients.cpp.
                const double error = type == at::kDouble ? 4e-8 : 8 * test::kFloatError;
                CHECK(largest_value(found.to(at::kDouble) - expected) < error * largest_value(expected));
            }
        }
    }
}

TEST_CASE("Lazy Attention in bfloat16 is that of float64 to its eight bits, for every ablation", "[lazy][gradients]") {
    const json louder = {{"initializer_range", 0.2}};
    for (const auto& [name, options] : kAblations) {
        INFO(name);
        const auto half = made(options, at::kBFloat16, louder), exact = made(options, at::kDouble, louder);
        for (std::size_t i = 0; i < exact->parameters().size(); ++i)
            exact->parameters()[i].value.copy_(half->parameters()[i].value);
        const model::Batch batch = some_tokens(2, 70);
        const auto hidden = [&](Trainable& model) { return model.model().forward(batch).to(at::kDouble); };
        const at::Tensor states = hidden(*exact);
        CHECK((hidden(*half) - states).norm().item<double>() < 4 * test::kBfloatError * states.norm().item<double>());
        test::next_token_loss(*half, batch).backward();
        test::next_token_loss(*exact, batch).backward();
        const at::Tensor error = half->gradients().to(at::kDouble) - exact->gradients();
        CHECK(error.norm().item<double>() < 4 * test::kBfloatError * exact->gradients().norm().item<double>());
    }
}

TEST_CASE("Lazy Attention read in pieces is what it is read at once, for every ablation", "[lazy][decoding]") {
    for (const auto& [name, options] : kAblations) {
        const auto trainable = made(options);
        model::Model& model = trainable->model();
        for (const std::int64_t length : {1, 2, 63, 64, 65, 300}) {
            INFO(name << ", " << length);
            const at::Tensor ids = some_tokens(2, length).ids;
            const at::Tensor whole = model.forward({ids, {}, {}});
            const auto cache = model.new_cache();
            model::ForwardOptions cached;
            cached.cache = cache.get();
            at::Tensor hidden = at::zeros(whole.sizes(), whole.options());
            for (std::int64_t done = 0; done < length;) {
                const std::int64_t count = done == 0 ? (length + 1) / 2 : 1;
                hidden.narrow(1, done, count).copy_(model.forward({ids.narrow(1, done, count), {}, {}}, cached));
                done += count;
            }
            CHECK(largest_difference(hidden, whole) < 3 * test::kFloatError * largest_value(whole));
        }
    }
}

TEST_CASE("A padded lazy text is what it is alone: i counts the keys that a query sees", "[lazy]") {
    for (const auto& [name, options] : kAblations) {
        INFO(name);
        const auto trainable = made(options, at::kFloat, {{"num_key_value_heads", 1}, {"qk_norm", true}});
        const model::Batch both = {some_tokens(2, 40).ids, {40, 23}, {}};
        const at::Tensor alone = trainable->model().forward({both.ids.narrow(0, 1, 1).narrow(1, 0, 23), {}, {}});
        const at::Tensor together = trainable->model().forward(both);
        CHECK(largest_difference(together.narrow(0, 1, 1).narrow(1, 0, 23), alone) <
              test::kFloatError * largest_value(alone));
    }
}

TEST_CASE("Fresh Lazy Attention releases mass, and the first token's output is exactly 0", "[lazy]") {
    const auto trainable = Trainable::create(lazy(json::object()).dump(), 3, at::kFloat);
    const auto probe = recorded(trainable->model(), some_tokens(2, 40));
    const at::Tensor output = probe.at("head_output", 0);  // [B, H, L, d]
    CHECK(output.select(2, 0).abs().max().item<double>() == 0);
    CHECK(output.abs().max().item<double>() > 0);
    REQUIRE(probe.sites.size() == 2);
    for (const auto& measured : probe.sites) {
        const kernels::Statistics& statistics = measured.statistics;
        for (std::size_t n = 0; n < statistics.sparsity.size(); ++n) {
            CHECK(statistics.sparsity[n] > 0.2);
            CHECK(statistics.zero_fraction[n] > 0.2);
            CHECK(statistics.sink[n] + statistics.density[n] + statistics.sparsity[n] == Approx(1.0).epsilon(1e-12));
        }
    }
}

TEST_CASE("Bias and offset begin as the options say, take no weight decay, and are there where they are learned",
          "[lazy]") {
    const auto model = Trainable::create(lazy({{"window", 9}, {"offset_init", -0.5}}).dump(), 3, at::kFloat);
    const model::Parameter& bias = parameter(*model, "distance_bias");
    CHECK(bias.value.sizes().vec() == std::vector<std::int64_t>{3, 9});
    CHECK(bias.value.abs().max().item<double>() == 0);
    CHECK_FALSE(bias.decays);
    CHECK(bias.trained);
    const model::Parameter& offset = parameter(*model, "offset");
    CHECK(offset.value.sizes().vec() == std::vector<std::int64_t>{3});
    CHECK((offset.value == -0.5).all().item<bool>());
    CHECK_FALSE(offset.decays);
    CHECK(offset.trained);
    const auto has = [](const json& options, const char* name) {
        const auto fresh = Trainable::create(lazy(options).dump(), 3, at::kFloat);
        return test::find_parameter(*fresh, std::string("model.layers.0.self_attn.") + name) != nullptr;
    };
    CHECK_FALSE(has({{"distance_bias", false}}, "distance_bias"));
    CHECK_FALSE(has({{"offset", "fixed"}}, "offset"));
    CHECK_FALSE(has({{"normaliser", "entmax"}}, "offset"));
    CHECK(has({{"offset", "constant"}}, "offset"));
}

TEST_CASE("Trained slopes begin as ALiBi's, take no weight decay, and are there where they are learned",
          "[lazy][alibi]") {
    const auto slopes_of = [](const Trainable& model) {
        return test::find_parameter(model, "model.layers.0.self_attn.slopes");
    };
    for (const json& config :
         {lazy({{"slopes", "trained"}}), native_config({"alibi"}, {{"mixers", {{"alibi", {{"trained", true}}}}}})}) {
        const auto model = Trainable::create(config.dump(), 3, at::kFloat);
        const model::Parameter* slopes = slopes_of(*model);
        REQUIRE(slopes != nullptr);
        CHECK(at::equal(slopes->value, at::tensor(std::vector<float>{1.0F / 16, 1.0F / 256, 1.0F / 4})));
        CHECK(slopes->trained);
        CHECK_FALSE(slopes->decays);
    }
    for (const json& config : {lazy({{"slopes", "fixed"}}), native_config({"alibi"})})
        CHECK(slopes_of(*Trainable::create(config.dump(), 3, at::kFloat)) == nullptr);
}

TEST_CASE("Gradients of slopes are finite differences of the loss, alone and besides a learned bias",
          "[lazy][alibi][gradients]") {
    const model::Batch batch = some_tokens(2, 40);
    const std::vector<std::pair<std::string, json>> models{
        {"alibi", native_config({"alibi", "alibi"}, {{"mixers", {{"alibi", {{"trained", true}}}}}})},
        {"lazy, a short window",
         lazy({{"slopes", "trained"}, {"window", 9}, {"offset_init", -0.9}}, {{"rotary", false}})},
        {"lazy, a long window", lazy({{"slopes", "trained"}, {"offset_init", -0.9}}, {{"rotary", false}})},
        {"lazy, softmax", lazy({{"slopes", "trained"}, {"normaliser", "softmax"}, {"distance_bias", false}})}};
    for (const auto& [name, config] : models) {
        INFO(name);
        const auto exact = Trainable::create(config.dump(), 3, at::kDouble);
        const auto single = Trainable::create(config.dump(), 3, at::kFloat);
        for (std::size_t i = 0; i < exact->parameters().size(); ++i)
            exact->parameters()[i].value.copy_(single->parameters()[i].value);
        // Recorded: inference keeps slopes in float32.
        const auto loss = [&] { return test::next_token_loss(*exact, batch); };
        loss().backward();
        test::next_token_loss(*single, batch).backward();
        for (const char* layer : {"0", "1"}) {
            const std::string tensor = std::string("model.layers.") + layer + ".self_attn.slopes";
            const model::Parameter* slopes = test::find_parameter(*exact, tensor);
            REQUIRE(slopes != nullptr);
            for (std::int64_t head = 0; head < 3; ++head) {
                const at::Tensor number = slopes->value[head];
                const double before = number.item<double>(), step = 1e-5;
                number.fill_(before + step);
                const double above = loss().item<double>();
                number.fill_(before - step);
                const double below = loss().item<double>();
                number.fill_(before);
                const std::int64_t place = slopes->value.storage_offset() + head;
                const double found = exact->gradients()[place].item<double>();
                INFO(tensor << ", head " << head);
                CHECK(found == Approx((above - below) / (2 * step)).epsilon(1e-5).margin(1e-9));
                CHECK(found != 0);
                CHECK(single->gradients()[place].item<double>() ==
                      Approx(found).margin(64 * test::kFloatError * largest_value(exact->gradients())));
            }
        }
    }
}

TEST_CASE("A model with trained slopes computes the same whether autograd records or not", "[lazy][alibi]") {
    const model::Batch batch = some_tokens(2, 70);
    for (const json& config : {lazy({{"slopes", "trained"}, {"window", 17}}),
                               native_config({"alibi"}, {{"mixers", {{"alibi", {{"trained", true}}}}}})}) {
        const auto model = Trainable::create(config.dump(), 3, at::kFloat);
        const at::Tensor recorded_states = model->forward(batch).detach();
        CHECK(largest_difference(model->model().forward(batch), recorded_states) <
              3 * test::kFloatError * largest_value(recorded_states));
        // Untrained, they are those of ALiBi.
        json fixed = config;
        if (fixed["mixers"].contains("alibi"))
            fixed["mixers"]["alibi"]["trained"] = false;
        else
            fixed["mixers"]["lazy"]["slopes"] = "fixed";
        const auto plain = Trainable::create(fixed.dump(), 3, at::kFloat);
        CHECK(largest_difference(plain->model().forward(batch), model->model().forward(batch)) <
              test::kFloatError * largest_value(recorded_states));
    }
}

TEST_CASE("Unknown options of Lazy Attention are refused by name", "[lazy]") {
    for (const json& options : {json{{"window", 0}}, json{{"normaliser", "hardmax"}}, json{{"offset", "often"}},
                                json{{"slopes", "some"}}, json{{"offset_init", "low"}}, json{{"windows", 3}}}) {
        INFO(options);
        CHECK_THROWS_MATCHES(Trainable::create(lazy(options).dump(), 1, at::kFloat), Error,
                             test::IsError(ErrorCode::mismatch, "lazy"));
    }
}

TEST_CASE("A Llama whose layers become lazy without an offset's effect is the Llama", "[lazy][swap]") {
    const test::TemporaryFolder folder;
    test::golden_model("llama").checkpoint.write(folder.path());
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const auto own = Trainable::open(*file, at::kFloat);
    const auto swapped = Trainable::open(*file, at::kFloat, {{{0, "lazy"}}}, 3);
    REQUIRE(swapped->model().mixers()[0] == "lazy");
    const model::Batch batch = test::golden_model("llama").batch;
    const at::Tensor before = own->model().forward(batch);
    CHECK(largest_difference(swapped->model().forward(batch), before) > 1e-3);
    parameter(*swapped, "offset").value.zero_();
    CHECK(largest_difference(swapped->model().forward(batch), before) < test::kFloatError * largest_value(before));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// A model taken apart through its probe, and put together again.
#include "tests/catch_with_torch.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

#include "core/mixers/shared/attend.h"
#include "core/model/towers/cache.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::golden_model;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;
using test::RecordingProbe;

namespace {

std::map<std::string, at::Tensor> weights_of(const test::TinyCheckpoint& checkpoint) {
    const test::TemporaryFolder folder;
    checkpoint.write(folder.path());
    const auto file = checkpoint::Checkpoint::open(folder.path());
    std::map<std::string, at::Tensor> weights;
    for (const auto& [name, info] : file->tensors()) weights[name] = file->load(name, checkpoint::LoadAs::float32);
    return weights;
}

std::vector<std::string> names(const RecordingProbe& probe) {
    std::vector<std::string> list;
    for (const auto& [name, layer] : probe.order) list.push_back(name);
    return list;
}

void check_close(const at::Tensor& a, const at::Tensor& b) {
    CHECK(largest_difference(a, b) <= test::kFloatError * largest_value(b));
}

std::vector<std::string> announced(std::int64_t layers, bool rotary) {
    std::vector<std::string> list{"embedding"};
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        for (const char* name : {"input_norm", "query", "key", "value"}) list.emplace_back(name);
        if (rotary) list.insert(list.end(), {"query_rotated", "key_rotated"});
        for (const char* name :
             {"head_output", "measured", "mixer_output", "attention_output", "feed_forward_output", "hidden"}) {
            list.emplace_back(name);
        }
    }
    list.emplace_back("final_norm");
    return list;
}

}  // namespace

TEST_CASE("Everything is announced, in the order of the computation", "[model][probe]") {
    for (const auto& [name, rotary] : {std::pair{"llama", true}, {"gpt2", false}, {"bert", false}}) {
        const GoldenModel golden = golden_model(name);
        const auto model = golden.checkpoint.build();
        RecordingProbe probe(true);
        model::ForwardOptions options;
        options.probe = &probe;
        model->forward(golden.batch, options);
        CHECK(names(probe) == announced(model->config().layers, rotary));
        model->logits(probe.at("final_norm").select(0, 0), &probe);
        CHECK(probe.at("logits").size(1) == model->config().vocabulary);
    }
}

TEST_CASE("What is announced has the shapes that the header says", "[model][probe]") {
    const GoldenModel golden = golden_model("llama");
    const auto model = golden.checkpoint.build();
    RecordingProbe probe(true);
    model::ForwardOptions options;
    options.probe = &probe;
    const at::Tensor hidden = model->forward(golden.batch, options);
    const std::vector<std::int64_t> rows{2, 11, 20}, query{2, 4, 11, 6}, key{2, 2, 11, 6};
    for (const char* name : {"input_norm", "attention_output", "feed_forward_output", "hidden"}) {
        CHECK(probe.at(name, 1).sizes() == rows);
    }
    for (const char* name : {"query", "query_rotated", "head_output"}) CHECK(probe.at(name, 1).sizes() == query);
    for (const char* name : {"key", "key_rotated", "value"}) CHECK(probe.at(name, 1).sizes() == key);
    CHECK(probe.at("embedding").sizes() == rows);
    CHECK(probe.at("final_norm").equal(hidden));
}

TEST_CASE("A pre-norm model put together from its announcements is the model", "[model][probe]") {
    const GoldenModel golden = golden_model("llama");
    auto w = weights_of(golden.checkpoint);
    const auto model = golden.checkpoint.build();
    RecordingProbe probe(true);
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden.batch, options);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        const at::Tensor& before = layer == 0 ? probe.at("embedding") : probe.at("hidden", layer - 1);
        const at::Tensor norm =
            before * (before.square().mean(-1, true) + 1e-5).rsqrt() * w[stem + "input_layernorm.weight"];
        check_close(probe.at("input_norm", layer), norm);
        const auto heads = [&](const std::string& part) {
            const at::Tensor flat =
                at::linear(norm, w[stem + "self_attn." + part + ".weight"], w[stem + "self_attn." + part + ".bias"]);
            return flat.unflatten(2, {-1, 6}).transpose(1, 2);
        };
        check_close(probe.at("query", layer), heads("q_proj"));
        check_close(probe.at("key", layer), heads("k_proj"));
        check_close(probe.at("value", layer), heads("v_proj"));
        // A rotation turns and does not stretch; position 0 stands still.
        const at::Tensor& query = probe.at("query", layer);
        const at::Tensor& rotated = probe.at("query_rotated", layer);
        check_close(rotated.square().sum(-1), query.square().sum(-1));
        check_close(rotated.select(2, 0).unsqueeze(2), query.select(2, 0).unsqueeze(2));
        CHECK(largest_difference(rotated, query) > 0.01);

        kernels::ScoreRule rule;
        rule.scale = 1 / std::sqrt(6.0);
        check_close(probe.at("head_output", layer),
                    mixers::dense_attention(rotated, probe.at("key_rotated", layer), probe.at("value", layer), rule));
        const at::Tensor side_by_side = probe.at("head_output", layer).transpose(1, 2).flatten(2);
        check_close(probe.at("attention_output", layer),
                    at::linear(side_by_side, w[stem + "self_attn.o_proj.weight"], w[stem + "self_attn.o_proj.bias"]));
        check_close(probe.at("hidden", layer),
                    before + probe.at("attention_output", layer) + probe.at("feed_forward_output", layer));
    }
}

TEST_CASE("A head of latent attention is announced as the scores see it", "[model][probe]") {
    const GoldenModel golden = golden_model("deepseek-v3");
    const auto model = golden.checkpoint.build();
    for (const Site& site : model->sites()) {
        CHECK(site.key_size == 14);
        CHECK(site.value_size == 5);
        CHECK(site.key_value_heads == 4);
    }
    RecordingProbe probe(true), once(true);
    const auto cache = model->new_cache();
    model::ForwardOptions options;
    options.probe = &once;
    model->forward(golden.batch, options);
    options.probe = nullptr;
    options.cache = cache.get();
    model->forward({golden.batch.ids.narrow(1, 0, 4), {}, {}}, options);
    options.probe = &probe;
    model->forward({golden.batch.ids.narrow(1, 4, 5), {}, {}}, options);
    // 17 numbers of each of two texts and three layers, and room for 64 tokens.
    CHECK(cache->bytes() == 3 * 2 * 64 * (9 + 8) * 4);
    kernels::ScoreRule rule;
    rule.scale = model->config().attention_scale;
    for (std::int64_t layer = 0; layer < 3; ++layer) {
        const at::Tensor key = once.at("key", layer), rotated = once.at("key_rotated", layer);
        REQUIRE(key.sizes() == at::IntArrayRef({2, 4, 9, 14}));
        REQUIRE(once.at("value", layer).sizes() == at::IntArrayRef({2, 4, 9, 5}));
        for (const at::Tensor& one : {key, rotated}) {
            for (std::int64_t head = 1; head < 4; ++head)
                CHECK(largest_difference(one.select(1, head).narrow(2, 6, 8), one.select(1, 0).narrow(2, 6, 8)) == 0);
            check_close(one.narrow(3, 0, 6), key.narrow(3, 0, 6));
        }
        CHECK(largest_difference(rotated, key) > 0.01);
        check_close(once.at("head_output", layer),
                    mixers::dense_attention(once.at("query_rotated", layer), rotated, once.at("value", layer), rule));
        // With a cache a call announces its own tokens.
        for (const char* name : {"query", "key", "value", "query_rotated", "key_rotated"})
            check_close(probe.at(name, layer), once.at(name, layer).narrow(2, 4, 5));
    }
}

TEST_CASE("A post-norm model put together from its announcements is the model", "[model][probe]") {
    const GoldenModel golden = golden_model("bert");
    auto w = weights_of(golden.checkpoint);
    const auto model = golden.checkpoint.build();
    RecordingProbe probe(false);
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden.batch, options);
    const std::string stem = "bert.encoder.layer.1.";
    const auto norm = [&](const at::Tensor& x, const std::string& name) {
        return at::layer_norm(x, {20}, w[stem + name + ".weight"], w[stem + name + ".bias"], 1e-12);
    };
    CHECK(probe.at("input_norm", 1).equal(probe.at("hidden", 0)));
    const at::Tensor middle =
        norm(probe.at("hidden", 0) + probe.at("attention_output", 1), "attention.output.LayerNorm");
    check_close(probe.at("hidden", 1), norm(middle + probe.at("feed_forward_output", 1), "output.LayerNorm"));
}

TEST_CASE("Only what is wanted is announced, and measuring changes no result", "[model][probe]") {
    for (const char* name : {"gpt2", "llama", "qwen2-windows", "bert"}) {
        const GoldenModel golden = golden_model(name);
        const auto model = golden.checkpoint.build();
        const at::Tensor plain = model->forward(golden.batch);
        RecordingProbe quiet(false, {"hidden"}), measuring(true, {"nothing"});
        model::ForwardOptions options;
        options.probe = &quiet;
        CHECK(model->forward(golden.batch, options).equal(plain));
        CHECK(names(quiet) == std::vector<std::string>(static_cast<std::size_t>(model->config().layers), "hidden"));
        options.probe = &measuring;
        CHECK(largest_difference(model->forward(golden.batch, options), plain, golden.batch.lengths) <
              test::kFloatError * largest_value(plain));
        CHECK(names(measuring) == std::vector<std::string>(model->sites().size(), "measured"));
    }
}

TEST_CASE("Statistics of a site are those of its weights", "[model][probe]") {
    for (const auto precision : {checkpoint::LoadAs::float32, checkpoint::LoadAs::float64}) {
        const GoldenModel golden = golden_model("qwen2-windows");
        const auto model = golden.checkpoint.build(precision);
        RecordingProbe probe(true, {"nothing"});
        model::ForwardOptions options;
        options.probe = &probe;
        model->forward(golden.batch, options);
        REQUIRE(probe.sites.size() == 3);
        for (const RecordingProbe::Measured& site : probe.sites) {
            const std::int64_t keys = site.key.size(2);
            const at::Tensor unit = at::eye(keys, site.key.options()).expand({1, 2, keys, keys});
            const at::Tensor weights = mixers::dense_attention(site.query, site.key, unit, site.rule).to(at::kDouble);
            CHECK(site.statistics.heads == 4);
            for (std::int64_t head = 0; head < 4; ++head) {
                const at::Tensor a = weights[0][head];
                const double entropy = -(a * a.clamp_min(1e-300).log()).sum().item<double>();
                CHECK(site.statistics.entropy[static_cast<std::size_t>(head)] == Approx(entropy).epsilon(1e-5));
                const double sink = a.select(1, 0).mean().item<double>();
                CHECK(site.statistics.sink[static_cast<std::size_t>(head)] == Approx(sink).epsilon(1e-5).margin(1e-6));
            }
            CHECK(site.rule.window_left == (site.site == 0 ? -1 : 3));
        }
    }
}

TEST_CASE("Falcon's slopes are announced as they are used, rounded", "[model][probe]") {
    const test::GoldenModel golden = test::golden_model("falcon-alibi-many-heads");
    const auto model = golden.checkpoint.build();
    CHECK(model->sites().front().has_slopes);
    test::RecordingProbe probe(true, {"slopes"});
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden.batch, options);
    const at::Tensor slopes = probe.at("slopes", 0);
    REQUIRE(slopes.numel() == 18);
    const double twice = 2 / std::sqrt(2.0);                                       // heads of two numbers
    CHECK(slopes[0].item<double>() == Approx(0.70703125 * twice).epsilon(1e-6));   // 2^-0.5 in bfloat16
    CHECK(slopes[16].item<double>() == Approx(0.83984375 * twice).epsilon(1e-6));  // 2^-0.25
    const auto& site = probe.sites.front();
    REQUIRE(site.rule.slopes.empty());
    // Contribution of a query of ones for key 1.
    const at::Tensor step = site.key.select(0, 0).select(1, 1).select(1, 2) * static_cast<double>(site.rule.scale);
    for (std::int64_t head = 0; head < 18; ++head)
        CHECK(step[head].item<double>() == Approx(slopes[head].item<double>()).epsilon(1e-6));
}

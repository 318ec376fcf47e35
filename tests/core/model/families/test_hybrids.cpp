// SPDX-License-Identifier: GPL-3.0-or-later
// Models with a state in some layers, and Differential Transformer, against transformers in float64
// (tests/oracle/models/hybrid_models.py).
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/xlogy.h>
#include <nlohmann/json.hpp>

#include "core/model/towers/cache.h"
#include "tests/core/model/golden_matrices.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using checkpoint::LoadAs;
using nlohmann::json;
using test::GoldenModel;
using test::largest_difference;
using test::largest_value;

namespace {

const std::vector<std::string> kHybrids{"qwen3-next",
                                        "qwen3-next-stacked-biases-old",
                                        "qwen3-5",
                                        "qwen3-5-biases-old",
                                        "qwen3-5-moe",
                                        "qwen3-5-images",
                                        "qwen3-5-moe-images-tied",
                                        "olmo-hybrid",
                                        "olmo-hybrid-no-positions-unsaid",
                                        "olmo-hybrid-plain-steps",
                                        "falcon-h1",
                                        "falcon-h1-norms-biases-old",
                                        "falcon-h1-norm-last-limited",
                                        "jamba",
                                        "jamba-stacked-biases",
                                        "jamba-no-experts-auto",
                                        "nemotron-h",
                                        "nemotron-h-stacked-biases",
                                        "nemotron-h-dense-old",
                                        "lfm2",
                                        "lfm2-biases-old",
                                        "lfm2-scaled-unsaid",
                                        "minimax",
                                        "minimax-window-unsaid",
                                        "kimi-linear",
                                        "kimi-linear-old",
                                        "kimi-linear-stacked",
                                        "mamba2",
                                        "mamba2-limits-biases",
                                        "mamba2-unsaid",
                                        "bamba",
                                        "bamba-biases-unsaid",
                                        "bamba-attention-biases-old",
                                        "bamba-partial-limits",
                                        "granitemoehybrid",
                                        "granitemoehybrid-dense-old",
                                        "granitemoehybrid-limits",
                                        "granitemoehybrid-dense-rotary-old",
                                        "diffllama",
                                        "diffllama-biases-old"};

GoldenModel golden_of(const std::string& name) {
    return test::golden_model("hybrid-" + name);
}

at::Tensor logits_of(model::Model& model, const at::Tensor& hidden) {
    return model.logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

double error_of(const GoldenModel& golden, LoadAs precision) {
    const auto model = golden.checkpoint.build(precision);
    return largest_difference(logits_of(*model, model->forward(golden.batch)), golden.logits) /
           largest_value(golden.logits);
}

}  // namespace

TEST_CASE("Hybrid models give the logits and matrices of transformers in float64", "[model][golden]") {
    for (const std::string& name : kHybrids) {
        INFO(name);
        const GoldenModel golden = golden_of(name);
        REQUIRE(largest_value(golden.logits) > 0.1);
        CHECK(error_of(golden, LoadAs::float32) < test::kFloatError);
        CHECK(error_of(golden, LoadAs::float64) < test::kFloatError);
        test::compare_matrices(golden);
    }
}

TEST_CASE("Hybrid models in bfloat16 are those of transformers to eight bits", "[model][golden]") {
    for (const char* name : {"qwen3-next-stacked-biases-old", "qwen3-5-moe", "olmo-hybrid", "minimax", "kimi-linear",
                             "diffllama", "lfm2", "falcon-h1", "nemotron-h", "jamba"}) {
        INFO(name);
        CHECK(error_of(golden_of(name), LoadAs::bfloat16) < test::kBfloatError);
    }
}

TEST_CASE("Hybrid models read a text in pieces as they read it at once", "[model][decoding]") {
    for (const std::string& name : kHybrids) {
        INFO(name);
        const GoldenModel golden = golden_of(name);
        const auto model = golden.checkpoint.build();
        const at::Tensor& ids = golden.batch.ids;
        for (const std::int64_t first : {std::int64_t{1}, std::int64_t{4}}) {
            const auto cache = model->new_cache();
            model::ForwardOptions options;
            options.cache = cache.get();
            at::Tensor hidden = at::full({ids.size(0), ids.size(1), model->config().hidden}, 0.0, at::kFloat);
            for (std::int64_t done = 0; done < ids.size(1);) {
                const std::int64_t count = done == 0 ? first : 1;
                hidden.narrow(1, done, count).copy_(model->forward({ids.narrow(1, done, count), {}, {}}, options));
                done += count;
            }
            CHECK(largest_difference(logits_of(*model, hidden), golden.logits) <
                  test::kFloatError * largest_value(golden.logits));
        }
    }
}

TEST_CASE("A layer with attention and a state side by side is two sites, a feed-forward alone none", "[model]") {
    const auto falcon = golden_of("falcon-h1").checkpoint.build();
    REQUIRE(falcon->sites().size() == 4);
    const Site &softmax = falcon->sites()[2], &linear = falcon->sites()[3];
    CHECK(softmax.layer == 1);
    CHECK(softmax.branch == "softmax");
    CHECK(softmax.has_matrix);
    CHECK(linear.layer == 1);
    CHECK(linear.branch == "linear");
    CHECK(linear.has_implicit);
    CHECK_FALSE(linear.has_matrix);
    const auto nemotron = golden_of("nemotron-h").checkpoint.build();
    CHECK(nemotron->mixers() == std::vector<std::string>{"mamba2", "none", "standard", "none"});
    REQUIRE(nemotron->sites().size() == 2);
    CHECK(nemotron->sites()[0].layer == 0);
    CHECK(nemotron->sites()[1].layer == 2);
    const auto cache = nemotron->new_cache();
    REQUIRE(cache->layers() == 4);
    model::ForwardOptions options;
    options.cache = cache.get();
    nemotron->forward({golden_of("nemotron-h").batch.ids, {}, {}}, options);
    CHECK(cache->layer(0).bytes() > 0);
    CHECK(cache->layer(1).bytes() == 0);
    CHECK(nemotron->report().left_over == std::vector<std::string>{"mtp.layers.0.norm.weight"});
}

TEST_CASE("A convolution's site has no numbers, and its cache the tokens that it reaches", "[model][decoding]") {
    const auto model = golden_of("lfm2").checkpoint.build();
    REQUIRE(model->sites().size() == 3);
    CHECK_FALSE(model->sites()[0].has_matrix);
    CHECK_FALSE(model->sites()[0].has_implicit);
    CHECK(model->sites()[1].has_matrix);
    const auto cache = model->new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    const at::Tensor ids = golden_of("lfm2").batch.ids;
    const auto bytes_after = [&](std::int64_t first, std::int64_t count) {
        model->forward({ids.narrow(1, first, count), {}, {}}, options);
        return cache->bytes();
    };
    const std::int64_t before = bytes_after(0, 4), after = bytes_after(4, 1);
    // Two layers hold two inputs of 20 channels; one layer keys and values of 2 heads of 6, token by token.
    const std::int64_t number = ids.size(0) * static_cast<std::int64_t>(sizeof(float));
    CHECK(before >= number * (2 * 2 * 20 + 4 * 2 * 2 * 6));
    CHECK(cache->clone()->bytes() == after);
}

TEST_CASE("What lies beyond a text's end changes nothing in a hybrid model", "[model]") {
    for (const std::string& name : kHybrids) {
        INFO(name);
        GoldenModel golden = golden_of(name);
        if (golden.batch.ids.size(0) < 2) continue;
        golden.batch.lengths = {golden.batch.ids.size(1), 5};
        const auto model = golden.checkpoint.build();
        const at::Tensor logits = logits_of(*model, model->forward(golden.batch));
        CHECK(logits.isfinite().all().item<bool>());
        CHECK(largest_difference(logits, golden.logits, golden.batch.lengths) <
              test::kFloatError * largest_value(golden.logits));
    }
}

TEST_CASE("A differential layer is two sites, and its statistics are those of its signed matrix", "[model]") {
    GoldenModel golden = golden_of("diffllama");
    golden.batch.lengths = {9, 6};
    const auto model = golden.checkpoint.build();
    REQUIRE(model->sites().size() == 4);
    const Site& maps = model->sites()[0];
    const Site& made = model->sites()[1];
    CHECK(maps.has_matrix);
    CHECK_FALSE(maps.has_implicit);
    CHECK(maps.heads == 4);
    CHECK(maps.branch == "softmax");
    CHECK_FALSE(made.has_matrix);
    CHECK(made.has_implicit);
    CHECK(made.heads == 2);
    CHECK(made.branch == "difference");
    test::RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden.batch, options);
    REQUIRE(probe.implicits.size() == 2);
    const auto& [site, weights, statistics, deviation] = probe.implicits.front();
    CHECK(site == 1);
    CHECK(deviation < test::kFloatError);
    for (std::int64_t s = 0; s < 2; ++s) {
        for (std::int64_t head = 0; head < 2; ++head) {
            const std::int64_t length = golden.batch.lengths[static_cast<std::size_t>(s)];
            const at::Tensor sizes =
                weights.select(0, s).select(0, head).narrow(0, 0, length).narrow(1, 0, length).to(at::kDouble).abs();
            const at::Tensor shares = sizes / sizes.sum(1, true);
            const auto place = static_cast<std::size_t>(2 * s + head);
            const double entropy = -at::xlogy(shares, shares).sum().item<double>();
            CHECK(statistics.entropy.at(place) == Approx(entropy).epsilon(1e-5));
            CHECK(statistics.entropy_row_mean.at(place) == Approx(entropy / static_cast<double>(length)).epsilon(1e-5));
            CHECK(statistics.concentration.at(place) == Approx(shares.norm().item<double>()).epsilon(1e-5));
        }
    }
}

TEST_CASE("A vision tower is left over", "[model][golden]") {
    const auto model = golden_of("qwen3-5-images").checkpoint.build();
    const std::vector<std::string>& left = model->report().left_over;
    REQUIRE_FALSE(left.empty());
    CHECK(std::all_of(left.begin(), left.end(),
                      [](const std::string& name) { return name.rfind("model.visual.", 0) == 0; }));
}

TEST_CASE("A setting of a hybrid model read wrongly would show", "[model][golden]") {
    struct Change {
        const char *name, *pointer;
        json value;
    };
    const std::vector<Change> changes{
        {"qwen3-next", "/rms_norm_eps", 1e-2},
        {"qwen3-next", "/norm_topk_prob", false},
        {"qwen3-next", "/num_experts_per_tok", 1},
        {"qwen3-next", "/rope_parameters/partial_rotary_factor", 1.0},
        {"qwen3-next-stacked-biases-old", "/norm_topk_prob", true},
        {"qwen3-next-stacked-biases-old", "/partial_rotary_factor", 1.0},
        {"qwen3-5", "/rope_parameters/rope_theta", 60.0},
        {"qwen3-5-biases-old", "/rope_theta", nullptr},
        {"qwen3-5-moe", "/num_experts_per_tok", 3},
        {"qwen3-5-images", "/text_config/rms_norm_eps", 1e-2},
        {"olmo-hybrid", "/linear_allow_neg_eigval", false},
        {"olmo-hybrid", "/rms_norm_eps", 1e-2},
        {"olmo-hybrid-no-positions-unsaid", "/rope_parameters/rope_theta", 10000.0},
        {"olmo-hybrid-plain-steps", "/linear_allow_neg_eigval", nullptr},
        {"falcon-h1", "/embedding_multiplier", nullptr},
        {"falcon-h1", "/lm_head_multiplier", nullptr},
        {"falcon-h1", "/key_multiplier", nullptr},
        {"falcon-h1", "/attention_in_multiplier", nullptr},
        {"falcon-h1", "/attention_out_multiplier", nullptr},
        {"falcon-h1", "/ssm_in_multiplier", nullptr},
        {"falcon-h1", "/ssm_out_multiplier", nullptr},
        {"falcon-h1", "/mlp_multipliers/0", 1.0},
        {"falcon-h1", "/mlp_multipliers/1", 1.0},
        {"falcon-h1", "/ssm_multipliers/0", 1.0},
        {"falcon-h1", "/ssm_multipliers/1", 1.0},
        {"falcon-h1", "/ssm_multipliers/2", 1.0},
        {"falcon-h1", "/ssm_multipliers/3", 1.0},
        {"falcon-h1", "/ssm_multipliers/4", 1.0},
        {"falcon-h1", "/rms_norm_eps", 1e-2},
        {"falcon-h1-norms-biases-old", "/rope_theta", nullptr},
        {"falcon-h1-norm-last-limited", "/mamba_norm_before_gate", true},
        {"falcon-h1-norm-last-limited", "/time_step_limit/0", 0.0},
        {"falcon-h1-norm-last-limited", "/time_step_limit/1", 9.0},
        {"jamba", "/rms_norm_eps", 1e-2},
        {"jamba", "/num_experts_per_tok", 1},
        {"nemotron-h", "/layer_norm_epsilon", 1e-2},
        {"nemotron-h", "/norm_topk_prob", false},
        {"nemotron-h", "/topk_group", 3},
        {"nemotron-h", "/num_experts_per_tok", 1},
        {"nemotron-h", "/routed_scaling_factor", nullptr},
        {"nemotron-h-stacked-biases", "/norm_topk_prob", true},
        {"nemotron-h-dense-old", "/time_step_min", nullptr},
        {"nemotron-h-dense-old", "/mlp_hidden_act", nullptr},
        {"lfm2", "/norm_eps", 1e-2},
        {"lfm2", "/rope_parameters/rope_theta", 60.0},
        {"lfm2-biases-old", "/rope_theta", nullptr},
        {"minimax", "/full_attn_alpha_factor", 1.0},
        {"minimax", "/full_attn_beta_factor", 1.0},
        {"minimax", "/linear_attn_alpha_factor", 0.5},
        {"minimax", "/linear_attn_beta_factor", 1.0},
        {"minimax", "/mlp_alpha_factor", 1.0},
        {"minimax", "/mlp_beta_factor", 1.0},
        {"minimax-window-unsaid", "/sliding_window", nullptr},
        {"kimi-linear", "/moe_renormalize", false},
        {"kimi-linear", "/topk_group", 3},
        {"kimi-linear", "/rms_norm_eps", 1e-2},
        {"kimi-linear-old", "/moe_renormalize", true},
        {"kimi-linear-old", "/routed_scaling_factor", nullptr},
        {"mamba2", "/layer_norm_epsilon", 1e-2},
        {"mamba2", "/time_step_limit", json::array({0.5, {{"__float__", "Infinity"}}})},
        {"mamba2-limits-biases", "/time_step_limit", nullptr},
        {"bamba", "/rope_parameters/partial_rotary_factor", 1.0},
        {"bamba", "/rope_parameters/rope_theta", nullptr},
        {"bamba-partial-limits", "/rope_parameters/partial_rotary_factor", nullptr},
        {"bamba-partial-limits", "/time_step_limit", nullptr},
        {"granitemoehybrid", "/embedding_multiplier", 1.0},
        {"granitemoehybrid", "/attention_multiplier", nullptr},
        {"granitemoehybrid", "/logits_scaling", 1.0},
        {"granitemoehybrid-dense-rotary-old", "/position_embedding_type", "nope"},
        {"granitemoehybrid-dense-rotary-old", "/rope_theta", nullptr},
        {"granitemoehybrid", "/position_embedding_type", nullptr},
        {"granitemoehybrid", "/residual_multiplier", 1.0},
        {"granitemoehybrid", "/num_experts_per_tok", 3},
        {"granitemoehybrid-dense-old", "/position_embedding_type", "rope"},
        {"granitemoehybrid-limits", "/time_step_limit", nullptr},
        {"diffllama", "/rms_norm_eps", 1e-2},
        {"diffllama", "/rope_parameters/rope_theta", 60.0},
        {"diffllama-biases-old", "/rope_theta", nullptr},
    };
    for (const Change& change : changes) {
        CAPTURE(change.name, change.pointer);
        GoldenModel golden = golden_of(change.name);
        golden.checkpoint.config[json::json_pointer(change.pointer)] = change.value;
        CHECK(error_of(golden, LoadAs::float32) > 2 * test::kFloatError);
    }
}

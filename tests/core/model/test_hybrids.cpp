// SPDX-License-Identifier: GPL-3.0-or-later
// Models with a state in some layers, and Differential Transformer, against transformers in float64
// (tests/oracle/models/hybrid_models.py); what their configurations mean and what of them is refused.
#include "tests/catch_with_torch.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/xlogy.h>
#include <nlohmann/json.hpp>

#include "core/mixers/types/gated_deltanet.h"
#include "core/mixers/types/kimi_delta.h"
#include "core/mixers/types/mamba2.h"
#include "core/model/load/recipe.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/configs/family_config.h"
#include "tests/core/model/golden_matrices.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::ModelConfig;
using nlohmann::json;
using test::GoldenModel;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::read;
using test::with;

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

TEST_CASE("What the file of a hybrid model leaves out is as in transformers", "[model][families]") {
    const ModelConfig next = read({{"model_type", "qwen3_next"}});
    CHECK(next.layers == 48);
    CHECK(next.hidden == 2048);
    CHECK(next.heads == 16);
    CHECK(next.key_value_heads == 2);
    CHECK(next.head_size == 256);
    CHECK(next.rope.partial == 0.25);
    for (const char* type : {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"})
        CHECK(read(with(type, "partial_rotary_factor", nullptr)).rope.partial == 1);
    CHECK(next.experts == 512);
    CHECK(next.experts_per_token == 10);
    CHECK(next.shared_expert == 512);
    CHECK(next.expert_shares_of_chosen);
    CHECK(next.attention_gate);
    CHECK(next.norm_gain_offset == 1);
    CHECK(next.mixers.at(2) == "gated_deltanet");
    CHECK(next.mixers.at(3) == "standard");
    const auto heads = [&](const ModelConfig& config, const char* key) {
        return config.mixer_options.get<std::int64_t>(mixers::kGatedDeltaNet, key);
    };
    CHECK(heads(next, "num_heads") == 16);
    CHECK(heads(next, "num_value_heads") == 32);
    CHECK(heads(next, "head_dim") == 128);
    CHECK(read(with("qwen3_next", "full_attention_interval", 2)).mixers.at(1) == "standard");
    const ModelConfig dense = read({{"model_type", "qwen3_5_text"}});
    CHECK(dense.feed_forward == 12288);
    CHECK(dense.experts == 0);
    const ModelConfig images = read({{"model_type", "qwen3_5_moe"}, {"text_config", json::object()}});
    CHECK(images.layers == 40);
    CHECK(images.experts == 256);
    CHECK(images.vocabulary == 248320);
    const ModelConfig olmo = read({{"model_type", "olmo_hybrid"}});
    CHECK(heads(olmo, "num_heads") == 30);
    CHECK(heads(olmo, "head_dim") == 96);
    CHECK(olmo.mixer_options.get<double>(mixers::kGatedDeltaNet, "expand_v") == 2.0);
    CHECK(olmo.positions == model::PositionKind::rotary);
    CHECK(read(with("olmo_hybrid", "rope_theta", nullptr)).positions == model::PositionKind::none);
    CHECK(read(with("olmo_hybrid", "rope_parameters", {{"rope_theta", nullptr}})).positions ==
          model::PositionKind::none);
    CHECK(read(with("olmo_hybrid", "num_hidden_layers", 2)).mixers.back() == "standard");
    const auto of_mamba2 = [](const ModelConfig& config, const char* key) {
        return config.mixer_options.get<std::int64_t>(mixers::kMamba2, key);
    };
    const ModelConfig falcon = read({{"model_type", "falcon_h1"}});
    CHECK(falcon.key_value_heads == 8);
    CHECK(falcon.head_size == 128);
    CHECK(falcon.mixers.at(31) == "attention_mamba2");
    CHECK(of_mamba2(falcon, "num_heads") == 128);
    CHECK(of_mamba2(falcon, "head_dim") == 8);
    CHECK(of_mamba2(falcon, "state_size") == 256);
    CHECK_FALSE(falcon.state_space.normed);
    CHECK(falcon.state_space.norm_first);
    CHECK_FALSE(falcon.state_space.limits_step());
    CHECK_FALSE(read(with("falcon_h1", "mamba_norm_before_gate", nullptr)).state_space.norm_first);
    CHECK(falcon.state_space.taps_bias);
    CHECK_FALSE(read(with("falcon_h1", "mamba_conv_bias", nullptr)).state_space.taps_bias);
    CHECK(of_mamba2(read(with("falcon_h1", "mamba_d_ssm", nullptr)), "head_dim") == 64);
    CHECK(of_mamba2(read(with("falcon_h1", "mamba_d_head", "auto")), "head_dim") == 8);
    const ModelConfig nemotron = read({{"model_type", "nemotron_h"}});
    CHECK(nemotron.mixers == std::vector<std::string>{"mamba2", "none", "standard", "none"});
    CHECK(nemotron.feed_forward_layers == std::vector<std::int64_t>{0, 1, 0, 1});
    CHECK(nemotron.expert_layers == std::vector<std::int64_t>{0, 1, 0, 0});
    CHECK(nemotron.experts == 8);
    CHECK(nemotron.shared_expert == 7688);
    CHECK(nemotron.activation == model::Activation::relu_squared);
    CHECK(nemotron.positions == model::PositionKind::none);
    CHECK(of_mamba2(nemotron, "num_groups") == 8);
    CHECK(nemotron.state_space.least_step == 0.001);
    const ModelConfig published = read(with("nemotron_h", "hybrid_override_pattern", "M-M*E"));
    CHECK(published.layers == 5);
    CHECK(published.mixers.at(3) == "standard");
    CHECK(published.has_experts(4));
    CHECK(read(with("nemotron_h", "layers_block_type", {"mamba", "attention", "mlp"})).experts == 0);
    CHECK(read({{"model_type", "nemotron_h"}, {"layers_block_type", {"mamba", "mlp"}}, {"layer_types", {"moe", "mlp"}}})
              .mixers.front() == "none");
    const ModelConfig jamba = read({{"model_type", "jamba"}});
    CHECK(jamba.mixers.at(4) == "standard");
    CHECK(jamba.mixers.at(5) == "mamba");
    CHECK(jamba.positions == model::PositionKind::none);
    CHECK(jamba.has_experts(1));
    CHECK_FALSE(jamba.has_experts(2));
    CHECK(jamba.experts == 16);
    CHECK(jamba.selective_scan.channels == 8192);
    CHECK(jamba.selective_scan.state_size == 16);
    CHECK(jamba.selective_scan.rank == 256);
    CHECK(read(with("jamba", "num_experts", 1)).experts == 0);
    CHECK(read(with("jamba", "num_experts", 0)).experts == 0);
    CHECK(read({{"model_type", "jamba"}, {"num_experts", 5}, {"num_local_experts", 3}}).experts == 3);
    const ModelConfig lfm2 = read({{"model_type", "lfm2"}});
    CHECK(lfm2.tied_head);
    CHECK(lfm2.rope.theta == 1e6);
    CHECK(lfm2.convolution_taps == 3);
    CHECK_FALSE(lfm2.output_bias);
    CHECK(lfm2.feed_forward == 8192);
    CHECK(lfm2.mixers.at(0) == "standard");
    CHECK(read(with("lfm2", "full_attn_idxs", {1, 3})).mixers.at(2) == "short_convolution");
    CHECK(read(with("lfm2", "block_auto_adjust_ff_dim", false)).feed_forward == 12288);
    CHECK(read(with("lfm2", "block_ff_dim", 3000)).feed_forward == 2048);
    CHECK(read(with("lfm2", "block_ffn_dim_multiplier", 1.01)).feed_forward == 8448);
    CHECK(read(with("lfm2", "block_ffn_dim_multiplier", nullptr)).feed_forward == 8192);
    CHECK_FALSE(read(with("lfm2", "tie_embedding", false)).tied_head);
    const ModelConfig minimax = read({{"model_type", "minimax"}});
    CHECK(minimax.mixers.at(0) == "standard");
    CHECK(minimax.mixers.at(1) == "lightning");
    CHECK(minimax.rope.theta == 1e6);
    CHECK(minimax.windows.empty());
    const ModelConfig kimi = read({{"model_type", "kimi_linear"}});
    CHECK(kimi.positions == model::PositionKind::none);
    CHECK(kimi.head_size == 192);
    CHECK(kimi.query_rank == 0);
    CHECK(kimi.max_positions == 1'048'576);
    CHECK(kimi.mixers.at(0) == "kda");
    CHECK(kimi.mixers.at(4) == "standard");
    CHECK_FALSE(kimi.has_experts(0));
    CHECK(kimi.has_experts(1));
    CHECK(kimi.mixer_options.get<std::int64_t>(mixers::kKimiDelta, "head_dim") == 128);
}

TEST_CASE("What the file of a model with Mamba2 leaves out is as in transformers", "[model][families]") {
    const ModelConfig bamba = read({{"model_type", "bamba"}, {"attn_layer_indices", {9, 18}}});
    CHECK(bamba.vocabulary == 128'000);
    CHECK(bamba.key_value_heads == 8);
    CHECK(bamba.rope.partial == 0.5);
    CHECK(bamba.mixers.at(9) == "standard");
    CHECK(std::count(bamba.mixers.begin(), bamba.mixers.end(), "mamba2") == 30);
    CHECK(bamba.mixer_options.get<std::int64_t>(mixers::kMamba2, "head_dim") == 64);
    CHECK(bamba.mixer_options.get<std::int64_t>(mixers::kMamba2, "state_size") == 256);
    CHECK(read(with("bamba", "num_key_value_heads", nullptr)).key_value_heads == 32);
    CHECK(read(with("bamba", "partial_rotary_factor", 1.0)).rope.partial == 0.5);
    CHECK(read(with("bamba", "rope_parameters", {{"partial_rotary_factor", 0.25}})).rope.partial == 0.25);
    const ModelConfig no_softmax = read(with("bamba", "attn_layer_indices", json::array()));
    CHECK(no_softmax.mixers == std::vector<std::string>(32, "mamba2"));
    const ModelConfig granite = read({{"model_type", "granitemoehybrid"}});
    CHECK(granite.positions == model::PositionKind::none);
    CHECK(granite.experts == 8);
    CHECK(granite.shared_expert == 1024);
    CHECK(granite.mixers == std::vector<std::string>(32, "mamba2"));
    const ModelConfig dense_granite = read(with("granitemoehybrid", "num_local_experts", 0));
    CHECK(dense_granite.experts == 0);
    CHECK(dense_granite.feed_forward == 1024);
    json older(32, "mamba"), other(32, "linear_attention");
    older[5] = other[6] = "attention";
    CHECK(read({{"model_type", "granitemoehybrid"}, {"layer_types", other}}).mixers.at(6) == "standard");
    CHECK(
        read({{"model_type", "granitemoehybrid"}, {"layers_block_type", older}, {"layer_types", other}}).mixers.at(5) ==
        "standard");
}

TEST_CASE("What of a hybrid model is not built, or cannot be, is refused by its key", "[model][families]") {
    const auto refuses = [](const std::string& type, const std::string& key, const json& value, ErrorCode code,
                            const std::string& part = "") {
        CAPTURE(type, key);
        CHECK_THROWS_MATCHES(read(with(type, key, value)), Error, IsError(code, part.empty() ? key : part));
    };
    for (const char* type : {"qwen3_next", "qwen3_5_text", "olmo_hybrid", "minimax", "kimi_linear"}) {
        refuses(type, "hidden_act", "gelu", ErrorCode::unsupported);
        refuses(type, "layer_types", {"full_attention"}, ErrorCode::mismatch);
    }
    for (const char* type : {"bamba", "granitemoehybrid"}) {
        refuses(type, "hidden_act", "gelu", ErrorCode::unsupported);
        refuses(type, "mamba_n_heads", 100, ErrorCode::mismatch, "mamba_expand");
        refuses(type, "mamba_n_heads", 131'072, ErrorCode::mismatch);
        refuses(type, "mamba_expand", std::int64_t{1} << 30, ErrorCode::mismatch);
        refuses(type, "mamba_n_groups", 3, ErrorCode::mismatch);
        refuses(type, "mamba_d_head", 32, ErrorCode::mismatch);
        refuses(type, "mamba_d_head", "any", ErrorCode::mismatch);
        refuses(type, "time_step_limit", {0.1, 0.0}, ErrorCode::mismatch);
    }
    refuses("granitemoehybrid", "layer_types", json(32, "conv"), ErrorCode::unsupported);
    refuses("granitemoehybrid", "layer_types", json::array(), ErrorCode::mismatch);
    refuses("bamba", "attn_layer_indices", "all", ErrorCode::mismatch);
    refuses("granitemoehybrid", "layer_types", {"mamba"}, ErrorCode::mismatch);
    const json windowed(48, "sliding_attention");
    refuses("qwen3_next", "layer_types", windowed, ErrorCode::unsupported);
    refuses("qwen3_next", "linear_num_value_heads", 24, ErrorCode::mismatch);
    refuses("qwen3_next", "linear_conv_kernel_dim", 65, ErrorCode::mismatch);
    refuses("qwen3_5", "text_config", nullptr, ErrorCode::mismatch);
    refuses("falcon_h1", "hidden_act", "gelu", ErrorCode::unsupported);
    refuses("falcon_h1", "mlp_multipliers", {1.0}, ErrorCode::mismatch);
    refuses("falcon_h1", "ssm_multipliers", {1.0, 1.0}, ErrorCode::mismatch);
    refuses("falcon_h1", "key_multiplier", -1.0, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_ssm", 1000, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_head", 9, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_head", "wide", ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_n_groups", 3, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_state", 65'537, ErrorCode::mismatch);
    refuses("falcon_h1", "mamba_d_conv", 65, ErrorCode::mismatch);
    refuses("falcon_h1", "time_step_limit", {0.1}, ErrorCode::mismatch);
    refuses("jamba", "hidden_act", "gelu", ErrorCode::unsupported);
    refuses("jamba", "attn_layer_offset", 8, ErrorCode::mismatch);
    refuses("jamba", "expert_layer_offset", 2, ErrorCode::mismatch);
    refuses("jamba", "mamba_dt_rank", "wide", ErrorCode::mismatch);
    refuses("jamba", "mamba_expand", 64, ErrorCode::mismatch);
    refuses("jamba", "mamba_inner_layernorms", false, ErrorCode::unsupported);
    refuses("nemotron_h", "layers_block_type", {"mamba", "wide"}, ErrorCode::unsupported);
    refuses("nemotron_h", "hybrid_override_pattern", "M?", ErrorCode::unsupported);
    refuses("nemotron_h", "hybrid_override_pattern", "", ErrorCode::mismatch);
    refuses("nemotron_h", "mamba_hidden_act", "gelu", ErrorCode::unsupported);
    refuses("nemotron_h", "moe_latent_size", 64, ErrorCode::unsupported);
    refuses("nemotron_h", "n_groups", 3, ErrorCode::mismatch);
    refuses("nemotron_h", "mamba_n_groups", 3, ErrorCode::mismatch);
    refuses("nemotron_h", "mamba_num_heads", 65'540, ErrorCode::mismatch);
    refuses("nemotron_h", "num_experts_per_tok", 9, ErrorCode::mismatch);
    refuses("lfm2", "layer_types", {"conv"}, ErrorCode::mismatch);
    refuses("lfm2", "layer_types", json(32, "sliding_attention"), ErrorCode::unsupported);
    refuses("lfm2", "conv_L_cache", 65, ErrorCode::mismatch);
    refuses("lfm2", "block_ffn_dim_multiplier", 1e9, ErrorCode::mismatch);
    refuses("olmo_hybrid", "head_dim", 96, ErrorCode::mismatch);
    refuses("olmo_hybrid", "layer_types", json(32, "linear_attention"), ErrorCode::mismatch);
    refuses("kimi_linear", "mla_use_nope", false, ErrorCode::unsupported);
    refuses("kimi_linear", "moe_router_activation_func", "softmax", ErrorCode::unsupported);
    refuses("kimi_linear", "moe_layer_freq", 2, ErrorCode::unsupported);
    refuses("kimi_linear", "num_experts_per_token", 257, ErrorCode::mismatch);
    refuses("kimi_linear", "mlp_layer_types", json(27, "wide"), ErrorCode::unsupported);
    const json some{{"full_attn_layers", {4}}, {"kda_layers", {1, 2, 3}}};
    refuses("kimi_linear", "linear_attn_config", some, ErrorCode::mismatch, "kda_layers");
    const json beyond{{"full_attn_layers", {28}}, {"kda_layers", json::array()}};
    refuses("diffllama", "num_key_value_heads", 1, ErrorCode::mismatch);
    refuses("diffllama", "attention_dropout", 0.1, ErrorCode::unsupported);
    refuses("kimi_linear", "linear_attn_config", beyond, ErrorCode::mismatch, "full_attn_layers");
}

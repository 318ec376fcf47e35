// SPDX-License-Identifier: GPL-3.0-or-later
// Folders of flash-linear-attention against tests/oracle/random/fla_oracle.py, whose recurrences are that library's
// own.
#include "tests/catch_with_torch.h"

#include <nlohmann/json.hpp>

#include "core/mixers/types/linear_attention.h"
#include "core/mixers/types/mamba2.h"
#include "core/model/load/recipe.h"
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

at::Tensor logits_of(const GoldenModel& golden, LoadAs precision) {
    const auto model = golden.checkpoint.build(precision);
    const at::Tensor hidden = model->forward(golden.batch);
    return model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

}  // namespace

TEST_CASE("Folders of flash-linear-attention give the logits and matrices of its naive operators", "[model][golden]") {
    for (const char* name : {"gated-deltanet",
                             "gated-deltanet-hybrid",
                             "gated-deltanet-windows",
                             "gated-deltanet-sigmoid",
                             "gated-deltanet-other-heads",
                             "delta-net",
                             "delta-net-gate-sums",
                             "delta-net-plain",
                             "retnet",
                             "retnet-groups-open",
                             "retnet-two-parts",
                             "retnet-relu",
                             "gla",
                             "gla-groups-convolved",
                             "gla-sqrelu",
                             "mamba2",
                             "mamba2-groups-biases",
                             "mamba2-no-matrix",
                             "transformer",
                             "transformer-norms-window"}) {
        INFO(name);
        const GoldenModel golden = test::golden_model(std::string("fla-") + name);
        for (const auto precision : {LoadAs::float32, LoadAs::float64}) {
            CHECK(largest_difference(logits_of(golden, precision), golden.logits) <
                  test::kFloatError * largest_value(golden.logits));
        }
        test::compare_matrices(golden);
    }
}

TEST_CASE("A setting of flash-linear-attention read wrongly would show", "[model][golden]") {
    struct Change {
        const char *name, *pointer;
        json value;
    };
    const std::vector<Change> changes{
        {"gated-deltanet", "/allow_neg_eigval", true},
        {"gated-deltanet", "/norm_eps", 1e-2},
        {"gated-deltanet-sigmoid", "/output_gate_activation", "swish"},
        {"gated-deltanet-sigmoid", "/output_gate_activation", nullptr},
        {"gated-deltanet-other-heads", "/attn/0/rope_theta", 60.0},
        {"gated-deltanet-other-heads", "/attn/1/rope_theta", 60.0},
        {"gated-deltanet-other-heads", "/attn/2/rope_theta", 60.0},
        {"gated-deltanet-other-heads", "/attn/2/window_size", 4},
        {"retnet-relu", "/feature_map", nullptr},
        {"retnet-relu", "/feature_map", "silu"},
        {"gla-sqrelu", "/feature_map", "relu"},
        {"gated-deltanet-hybrid", "/allow_neg_eigval", false},
        {"gated-deltanet-hybrid", "/attn/window_size", nullptr},
        {"gated-deltanet-hybrid", "/attn/rope_theta", nullptr},
        {"gated-deltanet-windows", "/attn/0/window_size", 2},
        {"gated-deltanet-windows", "/attn/0/rope_theta", 10000.0},
        {"gated-deltanet-windows", "/attn/1/rope_theta", 50.0},
        {"delta-net", "/allow_neg_eigval", true},
        {"delta-net", "/qk_activation", "identity"},
        {"delta-net", "/qk_norm", "sum"},
        {"delta-net-gate-sums", "/qk_norm", "l2"},
        {"delta-net-plain", "/qk_activation", nullptr},
        {"retnet", "/norm_eps", 1e-2},
        {"mamba2", "/norm_eps", 1e-2},
        {"mamba2", "/norm_before_gate", true},
        {"mamba2", "/rmsnorm", false},
        {"mamba2", "/dt_limit", json::array({0.0, 0.05})},
        {"mamba2-groups-biases", "/dt_limit", json::array({0.5, {{"__float__", "Infinity"}}})},
        {"gla-groups-convolved", "/clamp_min", -0.043},
        {"gla-groups-convolved", "/clamp_min", nullptr},
        {"transformer", "/rope_theta", 100.0},
        {"transformer-norms-window", "/window_size", 4},
        {"transformer-norms-window", "/window_size", nullptr},
    };
    for (const Change& change : changes) {
        CAPTURE(change.name, change.pointer);
        GoldenModel golden = test::golden_model(std::string("fla-") + change.name);
        golden.checkpoint.config[json::json_pointer(change.pointer)] = change.value;
        CHECK(largest_difference(logits_of(golden, LoadAs::float32), golden.logits) >
              2 * test::kFloatError * largest_value(golden.logits));
    }
}

TEST_CASE("A D of each number of a head leaves no implicit matrix", "[model][golden]") {
    GoldenModel golden = test::golden_model("fla-mamba2-no-matrix");
    const auto model = golden.checkpoint.build();
    CHECK_FALSE(model->sites().front().has_implicit);
    test::RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden.batch, options);
    CHECK(probe.implicits.empty());
    CHECK(test::golden_model("fla-mamba2").checkpoint.build()->sites().front().has_implicit);
}

TEST_CASE("Norms of heads keep their own epsilon", "[model][golden]") {
    GoldenModel golden = test::golden_model("fla-transformer-norms-window");
    const auto model = golden.checkpoint.build();
    CHECK(model->config().norm_epsilon == 1e-3);
    CHECK(model->config().query_key_norm_epsilon == 1e-5);
}

TEST_CASE("What a file of flash-linear-attention leaves out is that library's default", "[model][families]") {
    const ModelConfig gated = read({{"model_type", "gated_deltanet"}});
    CHECK(gated.vocabulary == 32000);
    CHECK(gated.hidden == 2048);
    CHECK(gated.layers == 21);
    CHECK(gated.feed_forward == 5632);
    CHECK(gated.norm_epsilon == 1e-6);
    CHECK(gated.max_positions == 0);
    CHECK_FALSE(gated.tied_head);
    CHECK(gated.mixers == std::vector<std::string>(21, "gated_deltanet"));
    const auto& options = gated.mixer_options;
    CHECK(options.get<std::int64_t>(mixers::kGatedDeltaNet, "num_heads") == 6);
    CHECK(options.get<std::int64_t>(mixers::kGatedDeltaNet, "num_value_heads") == 6);
    CHECK(options.get<std::int64_t>(mixers::kGatedDeltaNet, "head_dim") == 256);
    CHECK(options.get<double>(mixers::kGatedDeltaNet, "expand_v") == 2.0);
    CHECK(options.get<std::int64_t>(mixers::kGatedDeltaNet, "conv_size") == 4);
    CHECK(options.get<bool>(mixers::kGatedDeltaNet, "use_gate"));

    const ModelConfig delta = read({{"model_type", "delta_net"}});
    CHECK(delta.layers == 24);
    CHECK(delta.mixer_options.get<std::int64_t>(mixers::kDeltaNet, "head_dim") == 128);
    CHECK(delta.mixer_options.get<double>(mixers::kDeltaNet, "expand_v") == 1.0);
    CHECK_FALSE(delta.mixer_options.get<bool>(mixers::kDeltaNet, "use_gate"));

    const ModelConfig retnet = read({{"model_type", "retnet"}});
    CHECK(retnet.feed_forward == 2816);
    CHECK(read(with("retnet", "hidden_ratio", nullptr)).feed_forward == 5632);
    CHECK(retnet.mixer_options.get<std::int64_t>(mixers::kRetNet, "head_dim") == 256);
    CHECK(retnet.mixer_options.get<double>(mixers::kRetNet, "expand_v") == 2.0);
    CHECK(retnet.mixer_options.get<double>(mixers::kRetNet, "rope_theta") == 10000.0);

    const ModelConfig gla = read({{"model_type", "gla"}});
    CHECK(gla.mixer_options.get<std::int64_t>(mixers::kGla, "head_dim") == 256);
    CHECK(gla.mixer_options.get<double>(mixers::kGla, "expand_v") == 2.0);
    CHECK(gla.mixer_options.get<std::int64_t>(mixers::kGla, "conv_size") == 0);
    CHECK(read(with("gla", "use_short_conv", true)).mixer_options.get<std::int64_t>(mixers::kGla, "conv_size") == 4);

    const ModelConfig mamba = read({{"model_type", "mamba2"}});
    CHECK(mamba.layers == 48);
    CHECK(mamba.feed_forward == 0);
    CHECK(mamba.norm_epsilon == 1e-5);
    CHECK(mamba.mixer_options.get<std::int64_t>(mixers::kMamba2, "num_heads") == 64);
    CHECK(mamba.mixer_options.get<std::int64_t>(mixers::kMamba2, "num_groups") == 1);
    CHECK(mamba.state_space == model::StateSpaceConfig());
    // transformers' own, which one of two keys marks.
    const ModelConfig other = read({{"model_type", "mamba2"}, {"layer_norm_epsilon", 1e-3}});
    CHECK(other.vocabulary == 32768);
    CHECK(other.layers == 64);
    CHECK(other.mixer_options.get<std::int64_t>(mixers::kMamba2, "num_heads") == 128);
    CHECK(other.mixer_options.get<std::int64_t>(mixers::kMamba2, "num_groups") == 8);

    const ModelConfig softmax = read({{"model_type", "transformer"}});
    CHECK(softmax.heads == 32);
    CHECK(softmax.key_value_heads == 32);
    CHECK(softmax.head_size == 64);
    CHECK(softmax.max_positions == 2048);
    CHECK(softmax.windows.empty());

    // Python's None is false where it stands, whatever a missing key is.
    CHECK_FALSE(
        read(with("gated_deltanet", "use_gate", nullptr)).mixer_options.get<bool>(mixers::kGatedDeltaNet, "use_gate"));
}

TEST_CASE("Layers that attn names are softmax layers, each entry with its window", "[model][families]") {
    json config{{"model_type", "delta_net"}, {"num_hidden_layers", 4}};
    config["attn"] = {{"layers", {1, 3}}, {"num_heads", 32}, {"num_kv_heads", 8}, {"qkv_bias", true}};
    const ModelConfig one = read(config);
    CHECK(one.mixers == std::vector<std::string>{"deltanet", "standard", "deltanet", "standard"});
    CHECK(one.heads == 32);
    CHECK(one.key_value_heads == 8);
    CHECK(one.head_size == 64);
    CHECK(one.query_key_value_bias);
    CHECK(one.max_positions == 2048);
    CHECK(one.windows.empty());
    CHECK(one.mixer_options.get<std::int64_t>(mixers::kDeltaNet, "num_heads") == 16);
    const json near{{"layers", {0}}, {"num_heads", 16}, {"window_size", 9}}, far{{"layers", {2}}, {"num_heads", 16}};
    config["attn"] = json::array({near, far});
    const ModelConfig two = read(config);
    CHECK(two.windows == std::vector<std::int64_t>{9, 0, 0, 0});
    CHECK(two.mixers.at(2) == "standard");
    CHECK(two.window_rope->theta == 10000.0);
    config["attn"][0]["rope_theta"] = 500.0;
    CHECK(read(config).window_rope->theta == 500.0);
    CHECK(read(config).rope.theta == 10000.0);
    // Entries may differ in everything: what is not the first one's is the layer's own.
    config["attn"] = json::array({near,
                                  {{"layers", {2}}, {"num_heads", 32}, {"num_kv_heads", 8}, {"qkv_bias", true}},
                                  {{"layers", {3}}, {"num_heads", 16}, {"rope_theta", 5.0}}});
    const ModelConfig three = read(config);
    CHECK(three.heads == 16);
    REQUIRE(three.layer_heads.size() == 2);
    CHECK(three.layer_heads.at(2) == model::LayerHeads{32, 8, true, 10000.0});
    CHECK(three.layer_heads.at(3) == model::LayerHeads{16, 16, false, 5.0});
    CHECK(three.of_layer(2).head_size == 64);
    CHECK(three.of_layer(0).head_size == 128);
    CHECK(json::parse(three.to_json()).at("layer_heads").at("2").at("heads") == 32);
    config["attn"] = {{"layers", json::array()}, {"num_heads", 16}};
    CHECK(read(config).positions == model::PositionKind::none);
}

TEST_CASE("What flash-linear-attention refuses, or has and is not built, is refused by its key", "[model][families]") {
    const auto refuses = [](const json& config, ErrorCode code, const std::string& part) {
        CAPTURE(part);
        CHECK_THROWS_MATCHES(read(config), Error, IsError(code, part));
    };
    const auto attn = [](const json& value) { return with("gla", "attn", value); };
    refuses(with("gated_deltanet", "attnres_block_size", 2), ErrorCode::unsupported, "attnres_block_size");
    refuses(with("transformer", "attnres_block_size", 1), ErrorCode::unsupported, "attnres_block_size");
    refuses(with("gla", "hidden_act", "powlu"), ErrorCode::unsupported, "hidden_act");
    refuses(with("gla", "feature_map", "sigmoid"), ErrorCode::unsupported, "feature_map");
    refuses(with("gated_deltanet", "output_gate_activation", "tanh"), ErrorCode::unsupported, "output_gate_activation");
    refuses(with("retnet", "per_layer_config", json::object()), ErrorCode::unsupported, "per_layer_config");
    refuses(with("mamba2", "num_heads", 63), ErrorCode::mismatch, "num_heads");
    refuses(with("retnet", "elementwise_affine", false), ErrorCode::unsupported, "elementwise_affine");
    refuses(with("gla", "clamp_min", 0), ErrorCode::unsupported, "clamp_min");
    refuses(with("delta_net", "qk_norm", "l1"), ErrorCode::unsupported, "qk_norm");
    refuses(with("delta_net", "qk_activation", "gelu"), ErrorCode::unsupported, "qk_activation");
    refuses(with("delta_net", "expand_k", 0.3), ErrorCode::mismatch, "expand_k");
    refuses(with("gated_deltanet", "expand_v", 0.501), ErrorCode::mismatch, "expand_v");
    refuses(with("gated_deltanet", "num_v_heads", 8), ErrorCode::mismatch, "num_v_heads");
    refuses(with("mamba2", "head_dim", 48), ErrorCode::mismatch, "expand");
    refuses(with("mamba2", "n_groups", 3), ErrorCode::mismatch, "n_groups");
    refuses(with("mamba2", "hidden_act", "gelu"), ErrorCode::unsupported, "hidden_act");
    refuses(with("mamba2", "dt_limit", json::array({0.1})), ErrorCode::mismatch, "dt_limit");
    refuses(with("mamba2", "dt_limit", json::array({0.2, 0.1})), ErrorCode::mismatch, "dt_limit");
    refuses(with("mamba2", "time_step_limit", json::array({{{"__float__", "Infinity"}}, 1})), ErrorCode::mismatch,
            "time_step_limit");
    const json heads{{"model_type", "mamba2"}, {"layer_norm_epsilon", 1e-5}, {"num_heads", 64}};
    refuses(heads, ErrorCode::mismatch, "num_heads");
    refuses(with("gla", "num_kv_heads", 3), ErrorCode::mismatch, "num_kv_heads");
    refuses(with("transformer", "num_kv_heads", 5), ErrorCode::mismatch, "num_kv_heads");
    refuses(attn("all"), ErrorCode::mismatch, "attn");
    refuses(attn(json::array({3})), ErrorCode::mismatch, "attn");
    refuses(attn({{"layers", {1}}}), ErrorCode::mismatch, "attn: num_heads");
    refuses(attn({{"num_heads", 4}}), ErrorCode::mismatch, "attn: layers");
    refuses(attn({{"num_heads", 4}, {"layers", {24}}}), ErrorCode::mismatch, "attn: layers");
    refuses(attn({{"num_heads", 4}, {"layers", {1.5}}}), ErrorCode::mismatch, "attn: layers");
    refuses(attn({{"num_heads", 4}, {"layers", {1, 1}}}), ErrorCode::mismatch, "attn: layers");
    refuses(attn({{"num_heads", 3}, {"layers", {1}}}), ErrorCode::mismatch, "attn: num_heads");
    const json first{{"layers", {1}}, {"num_heads", 4}}, other{{"layers", {2}}, {"num_heads", 8}};
    refuses(attn(json::array({first, first})), ErrorCode::mismatch, "attn[1]: layers");
    refuses(attn(json::array({first, {{"layers", {2}}, {"num_heads", 3}}})), ErrorCode::mismatch, "attn[1]: num_heads");
    CHECK_NOTHROW(read(attn(json::array({first, other}))));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Refused native configurations, the last position of a stack, and the weights of its attention.
#include "tests/catch_with_torch.h"

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "core/model/load/presets.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native/manner_stacks.h"
#include "tests/core/model/native_model.h"

using namespace headscope;
using model::Trainable;
using nlohmann::json;
using test::IsError;
using test::some_tokens;
using test::native_stacks::stack_config;

TEST_CASE("Native configurations are refused by their key, in one line", "[native]") {
    const auto refuses = [](json config, const json& options, ErrorCode code, const std::string& part) {
        config.update(options);
        INFO(options.dump());
        CHECK_THROWS_MATCHES(model::inspect_config(config.dump()), Error, IsError(code, part));
    };
    const json plain = test::native_config({"standard", "standard"});
    const ErrorCode unsupported = ErrorCode::unsupported, mismatch = ErrorCode::mismatch;
    refuses(plain, {{"stack", "ladder"}}, unsupported, "config.json: stack");
    refuses(plain, {{"norm", "batch"}}, unsupported, "config.json: norm");
    refuses(plain, {{"norm_place", "middle"}}, unsupported, "config.json: norm_place");
    refuses(plain, {{"positions", "alibi"}}, unsupported, "config.json: positions");
    refuses(plain, {{"positions", "learned"}, {"rotary", true}}, mismatch, "config.json: rotary");
    refuses(plain, {{"positions", "rotary"}, {"rotary", false}}, mismatch, "config.json: rotary");
    refuses(plain, {{"feed_forward", "wide"}}, unsupported, "config.json: feed_forward");
    refuses(plain, {{"hidden_act", "swoosh"}}, unsupported, "config.json: hidden_act");
    refuses(plain, {{"output_bias", 1}}, mismatch, "config.json: output_bias");
    refuses(plain, {{"embedding_scale", "large"}}, mismatch, "config.json: embedding_scale");
    refuses(plain, {{"type_vocab_size", -1}}, mismatch, "config.json: type_vocab_size");
    refuses(plain, {{"embedding_norm", "yes"}}, mismatch, "config.json: embedding_norm");
    refuses(plain, {{"norm", "layer"}, {"layer_norm_eps", 0}}, mismatch, "config.json: layer_norm_eps");
    refuses(plain, {{"num_encoder_layers", 1}}, unsupported, "config.json: num_encoder_layers");
    refuses(plain, {{"stack", "encoder_decoder"}}, mismatch, "config.json: num_encoder_layers");
    refuses(plain, {{"stack", "encoder_decoder"}, {"num_encoder_layers", 2}}, mismatch,
            "config.json: num_encoder_layers");
    refuses(plain, {{"stack", "encoder_decoder"}, {"num_encoder_layers", 1}, {"decoder_start_token_id", 29}}, mismatch,
            "config.json: decoder_start_token_id");
    refuses(plain, {{"embedding", {{"kind", "cloud"}}}}, unsupported, "kind");
    refuses(plain, {{"head", {{"kind", "tail"}}}}, unsupported, "kind");
    refuses(plain, {{"head", {{"kind", "token_classes"}}}}, mismatch, "classes");
    refuses(plain, {{"head", {{"kind", "token_classes"}, {"classes", 0}}}}, mismatch, "classes");
    refuses(plain, {{"head", {{"kind", "language"}, {"classes", 3}}}}, unsupported, "classes");
    refuses(plain, {{"layers", {"standard", "fnet"}}}, unsupported, "of a decoder one of");
    refuses(plain, {{"layers", {"linear", "standard"}}}, unsupported, "found linear");
    refuses(plain, {{"stack", "encoder"}, {"layers", {"mamba2", "standard"}}}, unsupported, "of an encoder one of");
    refuses(plain, {{"stack", "encoder_decoder"}, {"num_encoder_layers", 1}, {"layers", {"fnet", "fnet"}}}, unsupported,
            "with cross-attention one of");
}

TEST_CASE("Positions end where their tables do", "[native]") {
    const auto refuses = [](const json& config, std::int64_t length, bool beyond) {
        const auto made = Trainable::create(config.dump(), 3, at::kFloat);
        model::ForwardOptions options;
        options.beyond_positions = beyond;
        CHECK_THROWS_MATCHES(made->model().forward(some_tokens(1, length), options), Error,
                             IsError(ErrorCode::limit, "length"));
    };
    refuses(stack_config("decoder", {"standard"}), 321, true);
    refuses(stack_config("encoder", {"linear"}, {{"positions", "none"}}), 321, true);
    refuses(stack_config("decoder", {"standard"}, {{"positions", "sinusoidal"}}), 321, false);
    const auto sinusoidal =
        Trainable::create(stack_config("decoder", {"sha"}, {{"positions", "sinusoidal"}}).dump(), 3, at::kFloat);
    model::ForwardOptions options;
    options.beyond_positions = true;
    CHECK(sinusoidal->model().forward(some_tokens(1, 321), options).isfinite().all().item<bool>());
}

TEST_CASE("Weights of attention sublayers are counted as the thesis counts them", "[stacks]") {
    constexpr std::int64_t d = 4, n = 3, output = d * n * d * n;
    const std::map<std::string, std::int64_t> without_output = {
        {"standard", 3 * d * d * n * n},
        {"sha", 3 * d * d * n},
        {"mqa", d * d * n * n + 2 * d * d * n},
        {"skv", 2 * d * d * n * n},
        {"el_att", d * d * n * n},
        {"mhe_add", 3 * d * d * n + 3 * d * n},
        {"mhe_mul", 3 * d * d * n + 3 * d * n},
    };
    for (const auto& [mixer, weights] : without_output) {
        INFO(mixer);
        for (const char* manner : {"encoder", "decoder", "both"}) {
            // In "even" the first layer is the encoder's; the others have two attentions each.
            const std::int64_t sublayers = std::string(manner) == "both" ? 5 : 3;
            const auto made = Trainable::create(stack_config(manner, {mixer, mixer, mixer}).dump(), 3, at::kFloat);
            CHECK(made->model().attention_parameters() == sublayers * (weights + output));
            CHECK(made->model().embedding_parameters() == 29 * 12);
        }
    }
}

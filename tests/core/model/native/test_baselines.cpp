// SPDX-License-Identifier: GPL-3.0-or-later
// Sigmoid attention, StreamingLLM and sink logits beyond test_native.cpp's checks of every mixer.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "core/model/towers/cache.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Trainable;
using test::largest_difference;
using test::native_config;
using test::some_tokens;

TEST_CASE("A configuration that says no bias has sigmoid attention's own, and keeps it", "[native]") {
    const auto bias_of = [](const nlohmann::json& config) {
        const auto made = Trainable::create(config.dump(), 1, at::kFloat);
        return nlohmann::json::parse(made->config_json()).at("mixers").at("sigmoid").at("bias").get<double>();
    };
    CHECK(bias_of(native_config({"sigmoid"})) == -std::log(320.0));
    CHECK(bias_of(native_config({"sigmoid"}, {{"mixers", {{"sigmoid", nlohmann::json::object()}}}})) ==
          -std::log(320.0));
    CHECK(bias_of(native_config({"sigmoid"}, {{"mixers", {{"sigmoid", {{"bias", 0.0}}}}}})) == 0.0);
}

TEST_CASE("A cache of StreamingLLM holds its first tokens and its window, and not the text", "[native][decoding]") {
    for (const char* positions : {"text", "cache"}) {
        INFO(positions);
        const nlohmann::json options = {
            {"mixers", {{"streaming_llm", {{"first", 2}, {"window", 5}, {"positions", positions}}}}}};
        const auto trainable = Trainable::create(native_config({"streaming_llm"}, options).dump(), 1, at::kFloat);
        const auto bytes_after = [&](std::int64_t length) {
            const auto cache = trainable->model().new_cache();
            model::ForwardOptions forward;
            forward.cache = cache.get();
            const at::Tensor ids = some_tokens(1, length).ids;
            for (std::int64_t i = 0; i < length; ++i)
                trainable->model().forward({ids.narrow(1, i, 1), {}, {}}, forward);
            return cache->bytes();
        };
        CHECK(bytes_after(300) <= 2 * bytes_after(60));
    }
}

TEST_CASE("StreamingLLM sees the first keys and the window, and what it sees moves it", "[native]") {
    const nlohmann::json options = {
        {"mixers", {{"streaming_llm", {{"first", 1}, {"window", 3}, {"positions", "cache"}}}}}};
    const auto trainable = Trainable::create(native_config({"streaming_llm"}, options).dump(), 1, at::kDouble);
    const at::Tensor ids = some_tokens(1, 9).ids;
    const at::Tensor before = trainable->model().forward({ids, {}, {}});
    for (std::int64_t place = 0; place < 8; ++place) {
        INFO(place);
        const at::Tensor other = ids.clone();
        other[0][place].fill_((ids[0][place].item<std::int64_t>() + 1) % 29);
        const at::Tensor after = trainable->model().forward({other, {}, {}});
        const bool moved = largest_difference(before.narrow(1, 8, 1), after.narrow(1, 8, 1)) > 1e-9;
        CHECK(moved == (place < 1 || 8 - place < 3));
    }
}

TEST_CASE("Sink logits are trained, and take no weight decay", "[native][gradients]") {
    const auto made = Trainable::create(native_config({"sink_logits"}).dump(), 1, at::kFloat);
    const model::Parameter* sinks = test::find_parameter(*made, "model.layers.0.self_attn.sinks");
    REQUIRE(sinks != nullptr);
    CHECK(sinks->trained);
    CHECK_FALSE(sinks->decays);
    CHECK(sinks->value.abs().max().item<double>() == 0);
    test::next_token_loss(*made, some_tokens(2, 9)).backward();
    const std::int64_t first = sinks->value.storage_offset();
    for (std::int64_t h = 0; h < 3; ++h) CHECK(made->gradients()[first + h].item<double>() != 0);
}

TEST_CASE("Positions in the cache are refused where angles depend on the text's length", "[native]") {
    nlohmann::json config = native_config({"streaming_llm"});
    config["mixers"]["streaming_llm"]["positions"] = "cache";
    config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
    CHECK_THROWS_MATCHES(Trainable::create(config.dump(), 1, at::kFloat), Error,
                         test::IsError(ErrorCode::unsupported, "mixers.streaming_llm.positions"));
}

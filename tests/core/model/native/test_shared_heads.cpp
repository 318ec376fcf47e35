// SPDX-License-Identifier: GPL-3.0-or-later
// Mixers whose heads share maps, beyond test_native.cpp's checks of every mixer: the standard attention that they
// equal, their head embeddings and caches.
#include "tests/catch_with_torch.h"

#include <cstddef>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include "core/model/towers/cache.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using model::Trainable;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::some_tokens;

namespace {

/// Weight or bias (`kind`) that standard attention's map to query, key or value (`part`) needs to compute what the
/// variant does.
at::Tensor tied(const Trainable& variant, const std::string& mixer, const std::string& stem, const std::string& part,
                const std::string& kind) {
    const auto of = [&](const std::string& name) {
        const model::Parameter* found = test::find_parameter(variant, stem + name);
        return found == nullptr ? at::Tensor() : found->value;
    };
    const bool weight = kind == "weight";
    if (mixer == "el_att" && part != "q") return weight ? at::eye(12, at::kDouble) : at::zeros({12}, at::kDouble);
    at::Tensor rows = of((mixer == "skv" && part == "v" ? "k" : part) + "_proj." + kind);
    if (!rows.defined()) rows = at::zeros({12}, at::kDouble);
    rows = weight ? rows.repeat({12 / rows.size(0), 1}) : rows.repeat({12 / rows.size(0)});
    if (mixer != "mhe_add" && mixer != "mhe_mul") return rows;
    const at::Tensor embedding = of(part + "_head_embedding").flatten();
    if (mixer == "mhe_add") return weight ? rows : rows + embedding;
    return rows * (weight ? (embedding + 1).unsqueeze(1) : embedding + 1);
}

}  // namespace

TEST_CASE("Heads that share their maps are standard attention with tied weights", "[native]") {
    for (const std::string mixer : {"sha", "mqa", "skv", "el_att", "mhe_add", "mhe_mul"}) {
        for (const bool bias : {true, false}) {
            CAPTURE(mixer, bias);
            const nlohmann::json options = {{"attention_bias", bias}, {"qk_norm", bias}};
            const auto variant = Trainable::create(native_config({mixer, mixer}, options).dump(), 3, at::kDouble);
            variant->weights().add_(at::arange(variant->weights().numel(), at::kDouble).sin() * 0.1);
            const auto standard = Trainable::create(
                native_config({"standard", "standard"}, {{"attention_bias", true}, {"qk_norm", bias}}).dump(), 5,
                at::kDouble);
            for (const model::Parameter& one : standard->parameters()) {
                const std::size_t at = one.name.find("_proj.");
                const std::string part = at == std::string::npos ? "" : one.name.substr(at - 1, 1);
                if (one.name.find("self_attn.") != std::string::npos && (part == "q" || part == "k" || part == "v"))
                    one.value.copy_(tied(*variant, mixer, one.name.substr(0, at - 1), part, one.name.substr(at + 6)));
                else
                    one.value.copy_(test::find_parameter(*variant, one.name)->value);
            }
            const at::Tensor ids = some_tokens(2, 33).ids;
            const at::Tensor expected = standard->model().forward({ids, {}, {}});
            CHECK(largest_difference(variant->model().forward({ids, {}, {}}), expected) <
                  1e-12 * largest_value(expected));
        }
    }
}

TEST_CASE("Head embeddings are announced as they are stored", "[native]") {
    const auto made = Trainable::create(native_config({"mhe_add", "standard"}).dump(), 3, at::kFloat);
    CHECK(made->model().sites()[0].has_head_embeddings);
    CHECK_FALSE(made->model().sites()[1].has_head_embeddings);
    test::RecordingProbe probe(false, {"head_embeddings"});
    model::ForwardOptions options;
    options.probe = &probe;
    made->model().forward({some_tokens(1, 9).ids, {}, {}}, options);
    REQUIRE(probe.values.size() == 1);
    for (const auto& [part, row] : {std::pair("q", 0), std::pair("k", 1), std::pair("v", 2)}) {
        const auto* stored =
            test::find_parameter(*made, std::string("model.layers.0.self_attn.") + part + "_head_embedding");
        REQUIRE(stored);
        CHECK(probe.at("head_embeddings", 0)[row].equal(stored->value));
    }
}

TEST_CASE("Caches hold what heads share once", "[native][decoding]") {
    const auto numbers_of = [](const std::string& mixer) {
        const auto made = Trainable::create(native_config({mixer}).dump(), 1, at::kFloat);
        const auto cache = made->model().new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        made->model().forward({some_tokens(1, 64).ids, {}, {}}, options);
        return cache->bytes() / 4 / 64;
    };
    CHECK(numbers_of("standard") == 24);
    for (const char* mixer : {"sha", "mqa", "mhe_add", "mhe_mul"}) CHECK(numbers_of(mixer) == 8);
    for (const char* mixer : {"skv", "el_att"}) CHECK(numbers_of(mixer) == 12);
}

TEST_CASE("EL-attention is refused where heads are no parts of the layer's input", "[native]") {
    CHECK_THROWS_MATCHES(Trainable::create(native_config({"el_att"}, {{"head_dim", 6}}).dump(), 1, at::kFloat), Error,
                         test::IsError(ErrorCode::mismatch, "mixers.el_att"));
}

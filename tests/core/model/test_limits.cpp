// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::golden_model;
using test::IsError;

namespace {

model::Batch of_length(std::int64_t length, std::int64_t sequences = 1) {
    return {at::zeros({sequences, length}, at::kLong), {}, {}};
}

void refuses(model::Model& model, const model::Batch& batch, ErrorCode code, const std::string& part,
             const model::ForwardOptions& options = {}) {
    CAPTURE(part);
    CHECK_THROWS_MATCHES(model.forward(batch, options), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("An id out of range is named with its place and the vocabulary", "[model][limits]") {
    const auto model = golden_model("llama").checkpoint.build();
    model::Batch batch = of_length(5, 2);
    batch.ids[1][3] = 37;
    refuses(*model, batch, ErrorCode::limit,
            "[sequence 1, token 3] expected an id from 0 to 36 (the model's vocabulary); found 37");
    batch.ids[1][3] = -1;
    refuses(*model, batch, ErrorCode::limit, "found -1");
    batch.ids[1][3] = 36;
    CHECK_NOTHROW(model->forward(batch));
}

TEST_CASE("A text longer than the positions says the limit and what would help", "[model][limits]") {
    const auto rotary = golden_model("llama").checkpoint.build();
    CHECK_NOTHROW(rotary->forward(of_length(64)));
    refuses(*rotary, of_length(65), ErrorCode::limit,
            "at most 64 tokens, the model's positions; found 65 (--beyond-positions");
    model::ForwardOptions beyond;
    beyond.beyond_positions = true;
    CHECK_NOTHROW(rotary->forward(of_length(65), beyond));

    const auto table = golden_model("gpt2").checkpoint.build();
    CHECK_NOTHROW(table->forward(of_length(32)));
    refuses(*table, of_length(33), ErrorCode::limit, "at most 32 tokens, the model's positions (a table", beyond);
}

TEST_CASE("Shapes, lengths and token types are checked", "[model][limits]") {
    const auto model = golden_model("bert").checkpoint.build();
    refuses(*model, of_length(0), ErrorCode::usage, "an empty text");
    refuses(*model, {at::zeros({4}, at::kLong), {}, {}}, ErrorCode::usage, "[batch, length] of int64");
    refuses(*model, {at::zeros({1, 4}, at::kInt), {}, {}}, ErrorCode::usage, "[batch, length] of int64");
    refuses(*model, {}, ErrorCode::usage, "[batch, length] of int64");
    model::Batch batch = of_length(6, 2);
    batch.lengths = {6};
    refuses(*model, batch, ErrorCode::usage, "a length for each of 2 sequences");
    batch.lengths = {6, 7};
    refuses(*model, batch, ErrorCode::usage, "lengths from 1 to 6");
    batch.lengths = {6, 0};
    refuses(*model, batch, ErrorCode::usage, "lengths from 1 to 6");
    batch.lengths = {6, 1};
    CHECK_NOTHROW(model->forward(batch));
    batch.token_types = at::zeros({2, 5}, at::kLong);
    refuses(*model, batch, ErrorCode::usage, "token types of the shape of the ids");
    batch.token_types = at::zeros({2, 6}, at::kLong) + 3;
    refuses(*model, batch, ErrorCode::limit, "[sequence 0, token 0] expected a token type from 0 to 2");
    batch = of_length(4);
    batch.token_types = at::zeros({1, 4}, at::kLong);
    refuses(*golden_model("gpt2").checkpoint.build(), batch, ErrorCode::usage, "no token types");
}

TEST_CASE("Caches belong to causal models and sequences of equal length", "[model][limits]") {
    const auto encoder = golden_model("bert").checkpoint.build();
    auto cache = encoder->new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    refuses(*encoder, of_length(3), ErrorCode::usage, "a causal model", options);

    const auto decoder = golden_model("llama").checkpoint.build();
    cache = decoder->new_cache();
    options.cache = cache.get();
    model::Batch padded = of_length(3, 2);
    padded.lengths = {3, 2};
    refuses(*decoder, padded, ErrorCode::usage, "sequences of equal length", options);
    decoder->forward(of_length(60, 2), options);
    refuses(*decoder, of_length(1), ErrorCode::usage, "expected 2 sequences", options);
    refuses(*decoder, of_length(5, 2), ErrorCode::limit, "found 65", options);
    CHECK_NOTHROW(decoder->forward(of_length(4, 2), options));

    Cancellation cancellation;
    options.cancellation = &cancellation;
    options.after_layer = [&](int) { cancellation.request(); };
    cache = decoder->new_cache();
    options.cache = cache.get();
    CHECK_THROWS_AS(decoder->forward(of_length(4), options), Stopped);
    refuses(*decoder, of_length(4), ErrorCode::usage, "stopped within", options);
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <cmath>

#include <ATen/ops/tensor.h>

#include "core/ask/knockout.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using test::at_cell;
using test::near;

namespace {

store::AskRecord knocked_out(const test::AskedModel& asked, const ask::KnockoutOptions& options) {
    store::AskRecord record = asked.record("knockout");
    NoProgress progress;
    ask::run_knockout(*asked.model, options, record, progress, Cancellation());
    return record;
}

ask::KnockoutOptions between(model::PositionRange queries, model::PositionRange keys) {
    ask::KnockoutOptions options;
    options.queries = {queries};
    options.keys = {keys};
    return options;
}

/// The same edit as an intervention of these layers.
model::Intervention forbidden(model::PositionRange queries, model::PositionRange keys,
                              std::vector<std::int64_t> layers = {}) {
    model::Intervention edit;
    edit.point = model::Point::scores;
    edit.action = model::Action::forbid;
    edit.layers = std::move(layers);
    edit.queries = {queries};
    edit.keys = {keys};
    return edit;
}

}  // namespace

TEST_CASE("Knocked out losses are those of forbidden edges", "[ask][knockout]") {
    for (const std::string name : {"gpt2", "llama", "deepseek-v3"}) {
        INFO(name);
        const test::AskedModel asked(name);
        ask::KnockoutOptions options = between({-2, -1}, {0, 1});
        options.window = 1;
        const store::AskRecord record = knocked_out(asked, options);
        CHECK(record.complete);
        for (std::int64_t s = 0; s < std::ssize(record.sequences); ++s) {
            const auto text = static_cast<std::size_t>(s);
            CHECK(near(at_cell(record, "/knockout/baseline", {s}), asked.loss(text)));
            CHECK(near(at_cell(record, "/knockout/value", {s}), asked.loss(text, {forbidden({-2, -1}, {0, 1})})));
            for (std::int64_t layer = 0; layer < std::ssize(record.mixers); ++layer)
                CHECK(near(at_cell(record, "/knockout/by_layer", {s, layer}),
                           asked.loss(text, {forbidden({-2, -1}, {0, 1}, {layer})})));
        }
        CHECK(at_cell(record, "/knockout/value", {0}) != at_cell(record, "/knockout/baseline", {0}));
    }
}

TEST_CASE("Windows are cut at the ends, and chosen heads alone lose edges", "[ask][knockout]") {
    const test::AskedModel asked("llama");
    const std::int64_t layers = asked.model->config().layers;
    ask::KnockoutOptions options = between({1, -1}, {0, 0});
    options.window = 2 * layers;  // from layer l - layers on: all up to l + layers - 1
    const store::AskRecord wide = knocked_out(asked, options);
    CHECK(near(at_cell(wide, "/knockout/by_layer", {0, 0}), at_cell(wide, "/knockout/value", {0})));
    options.window = 2;
    const store::AskRecord narrow = knocked_out(asked, options);
    CHECK(near(at_cell(narrow, "/knockout/by_layer", {0, 0}), asked.loss(0, {forbidden({1, -1}, {0, 0}, {0})})));
    CHECK(near(at_cell(narrow, "/knockout/by_layer", {0, 1}), asked.loss(0, {forbidden({1, -1}, {0, 0}, {0, 1})})));
    options.heads = {{1, 2}};
    const store::AskRecord head = knocked_out(asked, options);
    model::Intervention edit = forbidden({1, -1}, {0, 0}, {1});
    edit.heads = {2};
    CHECK(near(at_cell(head, "/knockout/value", {0}), asked.loss(0, {edit})));
    CHECK(std::isnan(at_cell(head, "/knockout/by_layer", {0, 0})));  // layers -1 and 0
    CHECK(near(at_cell(head, "/knockout/by_layer", {0, 1}), asked.loss(0, {edit})));
}

TEST_CASE("Layers without scores are passed over, and refused by name", "[ask][knockout]") {
    const test::AskedModel asked("hybrid-qwen3-next");
    const auto& sites = asked.model->sites();
    std::int64_t linear = 0;
    while (sites.at(static_cast<std::size_t>(linear)).has_matrix) ++linear;
    ask::KnockoutOptions options = between({-1, -1}, {0, 1});
    options.window = 1;
    const store::AskRecord record = knocked_out(asked, options);
    CHECK(std::isnan(at_cell(record, "/knockout/by_layer", {0, sites[static_cast<std::size_t>(linear)].layer})));
    CHECK(near(at_cell(record, "/knockout/value", {0}), asked.loss(0, {forbidden({-1, -1}, {0, 1})})));
    options.heads = {{linear, 0}};
    CHECK_THROWS_MATCHES(knocked_out(asked, options), Error, test::IsError(ErrorCode::usage, "has no scores"));
}

TEST_CASE("Ranges without an edge are refused", "[ask][knockout]") {
    const test::AskedModel asked("gpt2");
    CHECK_THROWS_MATCHES(knocked_out(asked, between({0, 0}, {1, 2})), Error,
                         test::IsError(ErrorCode::usage, "--queries"));
    CHECK_THROWS_MATCHES(knocked_out(asked, between({1000, 1001}, {0, 0})), Error,
                         test::IsError(ErrorCode::usage, "--queries"));
    CHECK_THROWS_MATCHES(knocked_out(test::AskedModel("bert"), between({0, 1}, {0, 1})), Error,
                         test::IsError(ErrorCode::usage, "--metric"));
}

TEST_CASE("Edges outside of every layer's window are refused", "[ask][knockout]") {
    const test::AskedModel narrow("mistral");  // 11 tokens, a window of 4 in each layer
    CHECK_THROWS_MATCHES(knocked_out(narrow, between({-1, -1}, {0, 0})), Error,
                         test::IsError(ErrorCode::usage, "[--queries] expected queries that see one of --keys in a"));
    CHECK(knocked_out(narrow, between({-1, -1}, {0, -1})).complete);
    // 9 tokens, a window of 4 in layer 0 alone.
    const test::AskedModel mixed("gemma2");
    ask::KnockoutOptions options = between({-1, -1}, {0, 0});
    CHECK(knocked_out(mixed, options).complete);
    options.heads = {{0, 0}};
    CHECK_THROWS_MATCHES(knocked_out(mixed, options), Error, test::IsError(ErrorCode::usage, "--queries"));
}

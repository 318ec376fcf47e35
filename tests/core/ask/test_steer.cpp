// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "core/ask/edits/stored_vector.h"
#include "core/ask/steer.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using test::at_cell;
using test::near;

namespace {

store::AskRecord steered(const test::AskedModel& asked, const ask::SteerOptions& options) {
    store::AskRecord record = asked.record("steer");
    NoProgress progress;
    ask::run_steer(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// "hidden" [L, d] float64 of a layer of a text.
at::Tensor hidden_of(const test::AskedModel& asked, std::size_t text, std::int64_t layer) {
    test::RecordingProbe probe(false, {"hidden"});
    model::Batch batch;
    batch.ids = asked.ids(text);
    model::ForwardOptions options;
    options.probe = &probe;
    asked.model->forward(batch, options);
    return probe.at("hidden", static_cast<int>(layer))[0].to(at::kDouble);
}

double loss_with(const test::AskedModel& asked, std::int64_t layer, const at::Tensor& vector, double factor) {
    model::Intervention edit;
    edit.point = model::Point::hidden;
    edit.layers = {layer};
    edit.action = model::Action::add;
    edit.factor = factor;
    edit.value = vector.to(at::kFloat);
    return asked.loss(0, {edit});
}

}  // namespace

TEST_CASE("A steering vector is the difference of means, and is added to one layer's output", "[ask][steer]") {
    for (const std::string name : {"gpt2", "llama", "hybrid-qwen3-next", "hybrid-mamba2"}) {
        INFO(name);
        const test::AskedModel asked(name);
        ask::SteerOptions options;
        options.positive = {asked.sequences()[0], asked.sequences()[1]};
        options.negative = {asked.sequences()[1]};
        options.factors = {-1.5, 0, 2};
        for (const ask::SteerAt at : {ask::SteerAt::last, ask::SteerAt::mean}) {
            options.at = at;
            const store::AskRecord record = steered(asked, options);
            const auto row = [&](std::size_t text, std::int64_t layer) {
                const at::Tensor hidden = hidden_of(asked, text, layer);
                return at == ask::SteerAt::last ? hidden[hidden.size(0) - 1] : hidden.mean(0);
            };
            for (std::int64_t layer = 0; layer < std::ssize(record.mixers); ++layer) {
                const at::Tensor expected = (row(0, layer) + row(1, layer)) / 2 - row(1, layer);
                for (std::int64_t i = 0; i < expected.size(0); ++i)
                    CHECK(near(at_cell(record, "/steer/vector", {layer, i}), expected[i].item<double>(), 1e-5));
                CHECK(near(at_cell(record, "/steer/value", {0, layer, 0}), loss_with(asked, layer, expected, -1.5)));
                CHECK(near(at_cell(record, "/steer/value", {0, layer, 1}), at_cell(record, "/steer/baseline", {0})));
                CHECK(near(at_cell(record, "/steer/value", {0, layer, 2}), loss_with(asked, layer, expected, 2)));
            }
            CHECK(near(at_cell(record, "/steer/baseline", {0}), asked.loss(0)));
        }
    }
}

TEST_CASE("A stored control vector steers as the texts that made it", "[ask][steer]") {
    const test::TemporaryFolder folder;
    const test::AskedModel asked("llama");
    ask::SteerOptions options;
    options.positive = {asked.sequences()[0]};
    options.negative = {asked.sequences()[1]};
    options.factors = {1};
    const store::AskRecord made = steered(asked, options);
    const auto path = folder.path() / "v.gguf";
    ask::write_control_vector(path, ask::steering_vectors(made), "llama");
    const ask::StoredVectors stored = ask::read_vectors(path, "");
    CHECK(!stored.one.defined());
    CHECK(!stored.by_layer.contains(0));
    REQUIRE(stored.by_layer.contains(1));
    CHECK(stored.by_layer.at(1).equal(ask::steering_vectors(made).at(1)));
    ask::SteerOptions again;
    again.vectors = stored.by_layer;
    again.factors = {1};
    const store::AskRecord read = steered(asked, again);
    CHECK(std::isnan(at_cell(read, "/steer/value", {0, 0, 0})));
    CHECK(near(at_cell(read, "/steer/value", {0, 1, 0}), at_cell(made, "/steer/value", {0, 1, 0}), 1e-6));
    again.layers = {0};
    CHECK_THROWS_MATCHES(steered(asked, again), Error, test::IsError(ErrorCode::usage, "--layers"));
}

TEST_CASE("A control vector has the layout of GGUF 3", "[ask][steer]") {
    const test::TemporaryFolder folder;
    const auto path = folder.path() / "v.gguf";
    ask::write_control_vector(path, {{0, at::arange(3, at::kFloat)}, {2, at::arange(3, at::kFloat)}}, "gpt2");
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    using namespace std::string_literals;
    const std::string expected = "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s +
                                 "\x14\0\0\0\0\0\0\0general.architecture\x8\0\0\0\xd\0\0\0\0\0\0\0"s +
                                 "controlvector"s + "\x18\0\0\0\0\0\0\0"s +
                                 "controlvector.model_hint\x8\0\0\0\4\0\0\0\0\0\0\0gpt2"s + "\x19\0\0\0\0\0\0\0"s +
                                 "controlvector.layer_count\5\0\0\0\1\0\0\0"s + "\xb\0\0\0\0\0\0\0"s +
                                 "direction.2\1\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s;
    REQUIRE(bytes.size() == (expected.size() + 31) / 32 * 32 + 32);
    CHECK(bytes.substr(0, expected.size()) == expected);
    CHECK(bytes.substr(bytes.size() - 32, 12) == "\0\0\0\0\0\0\x80\x3f\0\0\0\x40"s);
    CHECK_THROWS_MATCHES(ask::write_control_vector(path, {{0, at::arange(3, at::kFloat)}}, "gpt2"), Error,
                         test::IsError(ErrorCode::usage, "layers from 1 on"));
}

TEST_CASE("Steering without its texts or with a vector of another model is refused", "[ask][steer]") {
    const test::AskedModel asked("llama");
    ask::SteerOptions options;
    options.factors = {1};
    CHECK_THROWS_MATCHES(steered(asked, options), Error, test::IsError(ErrorCode::usage, "either positive"));
    options.positive = {asked.sequences()[0]};
    CHECK_THROWS_MATCHES(steered(asked, options), Error, test::IsError(ErrorCode::usage, "one of them"));
    options.positive.clear();
    options.vectors[1] = at::arange(3, at::kFloat);
    CHECK_THROWS_MATCHES(steered(asked, options), Error, test::IsError(ErrorCode::usage, "--vector"));
}

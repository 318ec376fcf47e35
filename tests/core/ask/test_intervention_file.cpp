// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include "core/ask/edits/intervention_file.h"
#include "core/ask/edits/stored_vector.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using ask::parse_positions;
using model::Action;
using model::Point;
using test::IsError;

namespace {

ask::InterventionPlan plan_of(const test::AskedModel& asked, const std::string& toml) {
    return ask::parse_interventions(toml, "plan.toml", ".", {asked.model->config(), asked.model->sites()});
}

void refused(const std::string& toml, const std::string& part) {
    static const test::AskedModel asked("llama");
    INFO(toml);
    CHECK_THROWS_MATCHES(plan_of(asked, toml), Error, IsError(ErrorCode::usage, part));
}

}  // namespace

TEST_CASE("A file lists interventions by point, layer, heads and positions", "[ask][file]") {
    const test::AskedModel asked("llama");
    const ask::InterventionPlan plan = plan_of(asked, R"(
[[intervention]]
point = "head_output"
layer = [1]
heads = [1, 3]
positions = "2-5,-1"
what = "zero"
[[intervention]]
point = "scores"
what = "forbid"
queries = "8-10"
keys = 2
[[intervention]]
point = "hidden"
layer = 0
what = "run"
text = "clean"
[[text]]
name = "clean"
tokens = [1, 2, 3]
)");
    REQUIRE(plan.list.size() == 3);
    CHECK(plan.list[0].point == Point::head_output);
    CHECK(plan.list[0].layers == std::vector<std::int64_t>{1});
    CHECK(plan.list[0].heads == std::vector<std::int64_t>{1, 3});
    CHECK((plan.list[0].positions == std::vector<model::PositionRange>{{2, 5}, {-1, -1}}));
    CHECK(plan.list[1].action == Action::forbid);
    CHECK((plan.list[1].keys == std::vector<model::PositionRange>{{2, 2}}));
    CHECK(plan.list[2].layers == std::vector<std::int64_t>{0});
    CHECK(plan.sources[2] == std::vector<std::size_t>{0});
}

TEST_CASE("Values of other runs are read when the texts have run", "[ask][file]") {
    const test::AskedModel asked("llama");
    ask::InterventionPlan plan = plan_of(asked, R"(
[[intervention]]
point = "hidden"
layer = 0
what = "run"
text = "a"
[[intervention]]
point = "head_output"
layer = 1
what = "reference"
text = ["a", "b"]
[[text]]
name = "a"
tokens = [1, 2, 3]
[[text]]
name = "b"
tokens = [4, 5]
)");
    plan.read_values(*asked.model, nullptr);
    plan.read_values(*asked.model, nullptr);  // a second model's values replace those of the first
    const auto probe_of = [&](const std::vector<std::int64_t>& ids) {
        test::RecordingProbe probe(false);
        model::Batch batch;
        batch.ids = at::tensor(ids, at::kLong).unsqueeze(0);
        model::ForwardOptions options;
        options.probe = &probe;
        asked.model->forward(batch, options);
        return probe;
    };
    const auto a = probe_of({1, 2, 3}), b = probe_of({4, 5});
    CHECK(plan.list[0].values.begin()->second.equal(a.at("hidden", 0)));
    const at::Tensor mean = (a.at("head_output", 1).sum(2) + b.at("head_output", 1).sum(2)).to(at::kDouble)[0] / 5;
    CHECK(test::largest_difference(plan.list[1].values.begin()->second, mean) < 1e-6);
    asked.run(0, plan.list);
}

TEST_CASE("Vectors come from a list, a safetensors file or a control vector", "[ask][file]") {
    const test::AskedModel asked("llama");
    const std::int64_t size = asked.model->config().hidden;
    std::string numbers;
    for (std::int64_t i = 0; i < size; ++i) numbers += (i > 0 ? ", " : "") + std::to_string(i) + ".5";
    const std::string head = "[[intervention]]\npoint = \"hidden\"\nlayer = 1\nwhat = \"add\"\nfactor = 2\n";
    const auto plan = plan_of(asked, head + "value = [" + numbers + "]\n");
    CHECK(plan.list[0].value[1].item<double>() == 1.5);
    CHECK(plan.list[0].factor == 2);
    refused(head + "value = [1, 2]\n", "[plan.toml: intervention 1] expected vectors of ");
    refused(head, "either vector or value");
}

TEST_CASE("A control vector has a direction for each layer that is named", "[ask][file]") {
    const test::AskedModel asked("llama");
    const test::TemporaryFolder folder;
    const std::int64_t size = asked.model->config().hidden;
    const at::Tensor one = at::ones({size}, at::kFloat);
    ask::write_control_vector(folder / "fits.gguf", {{1, one}}, "llama");
    ask::write_control_vector(folder / "large.gguf", {{1, one}, {2, one}}, "llama");
    const auto plan = [&](const std::string& layer, const std::string& file) {
        const std::string toml =
            "[[intervention]]\npoint = \"hidden\"\n" + layer + "what = \"add\"\nvector = \"" + file + "\"\n";
        return ask::parse_interventions(toml, "plan.toml", folder.path(),
                                        {asked.model->config(), asked.model->sites()});
    };
    REQUIRE(asked.model->config().layers == 2);
    CHECK(plan("", "fits.gguf").list[0].values.size() == 1);  // layer 0 stays as it is
    CHECK(plan("layer = 1\n", "fits.gguf").list[0].values.size() == 1);
    for (const char* layers : {"layer = 0\n", "layer = [0, 1]\n"})
        CHECK_THROWS_MATCHES(
            plan(layers, "fits.gguf"), Error,
            IsError(ErrorCode::usage, "expected layers with a direction in the vector file; found layer 0"));
    CHECK_THROWS_MATCHES(plan("", "large.gguf"), Error,
                         IsError(ErrorCode::usage, "expected directions for layers below 2; found one for layer 2"));
}

TEST_CASE("What a file says wrongly is refused with its place", "[ask][file]") {
    const std::string zero = "[[intervention]]\npoint = \"hidden\"\nwhat = \"zero\"\n";
    refused(zero + "head = 1\n", "[plan.toml: intervention 1] unknown key \"head\"; known: point, layer, heads, ");
    refused(zero + zero + "factor = 2\n", "[plan.toml: intervention 2] expected factor with add; found zero");
    refused("[[intervention]]\npoint = \"hidde\"\nwhat = \"zero\"\n", "expected a point: embedding, residual_before");
    refused("[[intervention]]\npoint = \"hidden\"\nwhat = \"none\"\n", "expected an action: zero, mean");
    refused(zero + "layer = 9\n", "expected a layer from 0 to 1; found 9");
    refused(zero + "positions = \"5-2\"\n", "[plan.toml: intervention 1, positions] expected positions like");
    refused("[[intervention]]\npoint = \"hidden\"\nwhat = \"run\"\ntext = \"x\"\n",
            "the name of a [[text]] table; found x");
    refused("[[text]]\nname = \"a\"\ntext = \"b\"\n" + zero, "tokens, as the model has no tokenizer");
    refused("[[intervention]]\npoint = \"scores\"\nwhat = \"forbid\"\npositions = 1\n",
            "positions with another action than forbid, which has queries and keys; found forbid");
    refused("", "an [[intervention]] table");
}

TEST_CASE("Positions are single ones and inclusive ranges", "[ask][file]") {
    CHECK((parse_positions("3", "x") == std::vector<model::PositionRange>{{3, 3}}));
    CHECK((parse_positions("2-5,-3--1", "x") == std::vector<model::PositionRange>{{2, 5}, {-3, -1}}));
    CHECK((parse_positions("1--1", "x") == std::vector<model::PositionRange>{{1, -1}}));
    for (const char* text : {"", "a", "1,", ",1", "1-", "3-1", "-1--3", "1 2"})
        CHECK_THROWS_MATCHES(parse_positions(text, "here"), Error, IsError(ErrorCode::usage, "[here]"));
}

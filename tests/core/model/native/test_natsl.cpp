// SPDX-License-Identifier: GPL-3.0-or-later
// NAtS-L in small chunks: what test_native.cpp's texts are too short for. Its logits and matrices are compared there.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/mixers/mixer.h"
#include "core/mixers/shared/recurrence.h"
#include "core/model/load/presets.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/head_edit.h"
#include "tests/core/model/native_model.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using model::Trainable;
using nlohmann::json;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::native_config;
using test::RecordingProbe;
using test::some_tokens;

namespace {

/// Every option of Table 4, and what the two branches read.
const std::vector<std::pair<std::string, json>> kAblations{
    {"as it is", json::object()},
    {"softmax alone inside a chunk", {{"inside_chunk", "softmax"}}},
    {"linear alone inside a chunk", {{"inside_chunk", "linear"}}},
    {"states of softmax chunks do not decay", {{"decay_in_softmax_chunks", false}}},
    {"one norm, weights from the input", {{"norm", "sum"}, {"weights", "input"}}},
    {"no weights, no rotary positions", {{"weights", "none"}, {"rotary", false}}},
    {"softmax before the convolution", {{"softmax_reads_conv", false}, {"allow_neg_eigval", true}}},
    {"no convolution", {{"conv_size", 0}}},
};

json natsl(json options, std::int64_t chunk, const std::vector<std::string>& layers = {"natsl", "natsl"}) {
    options.update({{"num_heads", 2}, {"head_dim", 8}, {"num_softmax_heads", 4}, {"chunk_size", chunk}});
    return native_config(layers, {{"mixers", {{"natsl", options}}}, {"max_position_embeddings", 1100}});
}

at::Tensor in_pieces(model::Model& model, const at::Tensor& ids, std::int64_t first, std::int64_t step) {
    const auto cache = model.new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    at::Tensor hidden = at::full({ids.size(0), ids.size(1), model.config().hidden}, 0.0, at::kFloat);
    for (std::int64_t done = 0; done < ids.size(1);) {
        const std::int64_t count = std::min(done == 0 ? first : step, ids.size(1) - done);
        hidden.narrow(1, done, count).copy_(model.forward({ids.narrow(1, done, count), {}, {}}, options));
        done += count;
    }
    return hidden;
}

void expect_same_in_pieces(model::Model& model, std::int64_t length, std::int64_t first, std::int64_t step) {
    INFO(length << " tokens, " << first << " and then by " << step);
    const at::Tensor ids = some_tokens(2, length).ids;
    const at::Tensor whole = model.forward({ids, {}, {}});
    CHECK(largest_difference(in_pieces(model, ids, first, step), whole) < 3 * test::kFloatError * largest_value(whole));
}

RecordingProbe recorded(model::Model& model, const model::Batch& batch) {
    RecordingProbe probe(true);
    model::ForwardOptions options;
    options.probe = &probe;
    model.forward(batch, options);
    return probe;
}

void set(Trainable& model, const std::string& name, const at::Tensor& value) {
    const model::Parameter* parameter = test::find_parameter(model, name);
    REQUIRE(parameter != nullptr);
    parameter->value.copy_(value.view(parameter->value.sizes()));
}

/// One layer whose chunks are all of one type: the first number of what it reads is positive, and its score.
std::unique_ptr<Trainable> of_one_type(bool linear) {
    auto model = Trainable::create(natsl(json::object(), 4, {"natsl"}).dump(), 2, at::kFloat);
    at::Tensor embedding = test::find_parameter(*model, "model.embed_tokens.weight")->value.clone();
    embedding.select(1, 0).fill_(2);
    set(*model, "model.embed_tokens.weight", embedding);
    at::Tensor score = at::zeros({4, 12}, at::kFloat);
    for (std::int64_t h = 0; h < 2; ++h) score[2 * h + (linear ? 1 : 0)][0] = 1;
    set(*model, "model.layers.0.self_attn.score_proj.weight", score);
    return model;
}

std::int64_t cache_bytes(model::Model& model, std::int64_t length) {
    const auto cache = model.new_cache();
    model::ForwardOptions options;
    options.cache = cache.get();
    model.forward({some_tokens(1, length).ids, {}, {}}, options);
    return cache->bytes();
}

}  // namespace

TEST_CASE("Gradients of NAtS-L are the golden ones, of all scores or of those of chosen types", "[natsl][gradients]") {
    std::ifstream stream(test::golden_file("natsl_gradients.json"));
    for (const json& one : json::parse(stream)) {
        const auto name = one.at("model").get<std::string>();
        test::GoldenModel golden = test::golden_model(name);
        golden.checkpoint.config["mixers"]["natsl"]["score_gradient_all"] = one.at("score_gradient_all");
        golden.checkpoint.config["mixers"]["natsl"]["rotary"] = false;  // angles are float32 whatever the type
        const test::TemporaryFolder folder;
        golden.checkpoint.write(folder.path());
        for (const auto type : {at::kDouble, at::kFloat}) {
            INFO(name << ", all " << one.at("score_gradient_all") << ", "
                      << (type == at::kDouble ? "exact" : "float32"));
            const auto model = Trainable::open(*checkpoint::Checkpoint::open(folder.path()), type);
            test::next_token_loss(*model, golden.batch).backward();
            for (const auto& [tensor, numbers] : one.at("gradients").items()) {
                INFO(tensor);
                const at::Tensor expected = at::tensor(numbers.get<std::vector<double>>(), at::kDouble);
                const model::Parameter* parameter = test::find_parameter(*model, tensor);
                REQUIRE(parameter != nullptr);
                const at::Tensor found =
                    model->gradients().narrow(0, parameter->value.storage_offset(), expected.numel());
                // The golden numbers have nine digits, in sums that cancel; float32 as in "Gradients in float32 are
                // those of float64".
                const double error = type == at::kDouble ? 4e-8 : 8 * test::kFloatError;
                CHECK(largest_value(found.to(at::kDouble) - expected) < error * largest_value(expected));
            }
        }
    }
}

TEST_CASE("NAtS-L in bfloat16 is the reference that rounds as it does, and types are those of float32",
          "[natsl][golden]") {
    constexpr double kStep = 0x1p-8;  // a bfloat16 number and the next, over the number
    std::ifstream stream(test::golden_file("natsl_bfloat16.json"));
    const json document = json::parse(stream);
    REQUIRE(document.at("cases").size() == 6);
    std::size_t near = 0;
    for (const json& one : document.at("cases")) {
        const auto name = one.at("model").get<std::string>();
        INFO(name);
        const test::GoldenModel golden = test::golden_model(name);
        const auto texts = one.at("tokens").get<std::vector<std::vector<std::int64_t>>>();
        std::vector<at::Tensor> rows;
        for (const auto& text : texts) rows.push_back(at::tensor(text, at::kLong));
        const model::Batch batch{at::stack(rows), {}, {}};
        const auto difference = one.at("difference").get<std::vector<double>>();
        const auto size = one.at("size").get<std::vector<double>>();
        const auto linear = one.at("linear").get<std::vector<int>>();
        for (const auto type : {checkpoint::LoadAs::float32, checkpoint::LoadAs::bfloat16}) {
            const bool few = type == checkpoint::LoadAs::bfloat16;
            const auto model = golden.checkpoint.build(type);
            const at::Tensor types = recorded(*model, batch).at("token_types", 0).contiguous();
            REQUIRE(types.numel() == std::ssize(difference));
            for (std::size_t i = 0; i < difference.size(); ++i) {
                INFO(i << ": " << difference[i] << " of " << size[i]);
                const int found = types.const_data_ptr<std::int8_t>()[i];
                if (std::abs(difference[i]) > (few ? kStep : test::kFloatError) * size[i])
                    CHECK(found == (difference[i] > 0 ? 1 : 0));
                else if (few)
                    ++near;
                if (few) CHECK((found == linear[i] || std::abs(difference[i]) <= kStep * size[i]));
            }
            if (!few) continue;
            const at::Tensor logits = model->logits(model->forward({batch.ids.narrow(0, 0, 1), {}, {}}));
            const at::Tensor expected = at::tensor(one.at("logits").get<std::vector<double>>(), at::kDouble);
            // The reference does not round inside the branches and in the feed-forward.
            CHECK(largest_difference(logits, expected.view(logits.sizes())) < 4 * kStep * largest_value(expected));
        }
    }
    CHECK(near > 0);  // some score is within a step of the other
}

TEST_CASE("At a chunk's end a cache holds its state twice, not one tensor under two names", "[natsl][decoding]") {
    mixers::Recurrence what;
    what.query = at::full({1, 1, 4, 3}, 0.5, at::kFloat);
    what.key = at::full({1, 1, 4, 3}, 0.25, at::kFloat);
    what.value = at::full({1, 1, 4, 2}, 2.0, at::kFloat);
    what.rule.chunk_size = 4;
    what.kept = at::full({1, 1, 1}, 1.0, at::kFloat);
    mixers::RecurrentCache cache;
    mixers::recur_in_pieces(what, &cache, nullptr);
    REQUIRE(cache.open == 0);
    CHECK(cache.start.equal(cache.now));
    CHECK(largest_value(cache.now) > 0);
    CHECK_FALSE(cache.start.is_alias_of(cache.now));
}

TEST_CASE("NAtS-L read in pieces is NAtS-L read at once, for every ablation", "[natsl][decoding]") {
    for (const auto& [name, options] : kAblations) {
        INFO(name);
        const auto model = Trainable::create(natsl(options, 4).dump(), 3, at::kFloat);
        for (const std::int64_t length : {1, 3, 4, 5, 8, 33}) expect_same_in_pieces(model->model(), length, 1, 1);
        expect_same_in_pieces(model->model(), 33, 18, 1);
        expect_same_in_pieces(model->model(), 33, 6, 7);  // pieces that end in chunks and span several
    }
}

TEST_CASE("NAtS-L in chunks of 64 decodes around their ends and far beyond", "[natsl][decoding]") {
    const auto model = Trainable::create(natsl(json::object(), 64).dump(), 3, at::kFloat);
    for (const std::int64_t length : {63, 64, 65, 127, 128}) expect_same_in_pieces(model->model(), length, 1, 1);
    expect_same_in_pieces(model->model(), 1036, 1000, 1);
}

TEST_CASE("A padded NAtS-L text is what it is alone, types too", "[natsl]") {
    for (const auto& [name, options] : kAblations) {
        INFO(name);
        const auto model = Trainable::create(natsl(options, 4).dump(), 3, at::kFloat);
        const model::Batch both = {some_tokens(2, 21).ids, {21, 9}, {}};
        const model::Batch alone{both.ids.narrow(0, 1, 1).narrow(1, 0, 9), {}, {}};
        const at::Tensor own = model->model().forward(alone);
        CHECK(largest_difference(model->model().forward(both).narrow(0, 1, 1).narrow(1, 0, 9), own) <
              test::kFloatError * largest_value(own));
        const at::Tensor types = recorded(model->model(), both).at("token_types", 0);
        const at::Tensor expected = recorded(model->model(), alone).at("token_types", 0);
        REQUIRE(types.sizes().vec() == std::vector<std::int64_t>{2, 2, 6});
        CHECK(types.narrow(0, 1, 1).narrow(2, 0, 3).equal(expected));
        CHECK((types.narrow(0, 1, 1).narrow(2, 3, 3) == -1).all().item<bool>());
        CHECK((types.select(0, 0) >= 0).all().item<bool>());
    }
}

TEST_CASE("A layer of NAtS-L is two sites, each with its own values", "[natsl]") {
    const auto trainable = Trainable::create(natsl(json::object(), 4, {"standard", "natsl"}).dump(), 3, at::kFloat);
    model::Model& model = trainable->model();
    REQUIRE(model.sites().size() == 3);
    const Site &softmax = model.sites()[1], &linear = model.sites()[2];
    CHECK(softmax.branch == "softmax");
    CHECK(softmax.heads == 4);
    CHECK(softmax.key_size == 4);
    CHECK(softmax.value_size == 8);
    CHECK(softmax.has_matrix);
    CHECK(linear.branch == "linear");
    CHECK(linear.type_chunk == 4);
    CHECK(softmax.type_chunk == 0);
    CHECK(linear.heads == 2);
    CHECK(linear.has_implicit);
    CHECK_FALSE(linear.has_matrix);
    CHECK(softmax.layer == linear.layer);

    const model::Batch batch = some_tokens(2, 21);
    const RecordingProbe probe = recorded(model, batch);
    REQUIRE(probe.sites.size() == 2);
    CHECK(probe.sites[1].site == 1);
    CHECK(probe.sites[1].rule.blocks.block_size == 4);
    const at::Tensor types = probe.at("token_types", 1);
    CHECK(types.scalar_type() == at::kChar);
    // Visibility follows the types, alike for the softmax heads of a linear one.
    const auto& visible = probe.sites[1].rule.blocks.visible;
    REQUIRE(visible.size() == 2 * 4 * 6);
    for (std::int64_t n = 0; n < 48; ++n) {
        const std::int64_t b = n / 24, h = n / 6 % 4, chunk = n % 6;
        CHECK((visible[static_cast<std::size_t>(n)] != 0) == (types[b][h / 2][chunk].item<int>() == 0));
    }
    CHECK(types.to(at::kLong).sum().item<std::int64_t>() > 0);
    CHECK(types.to(at::kLong).sum().item<std::int64_t>() < types.numel());
    const at::Tensor weights = probe.at("branch_weights", 1);
    REQUIRE(weights.sizes().vec() == std::vector<std::int64_t>{2, 4, 21, 2});
    CHECK(largest_value(weights.sum(3) - 1) < test::kFloatError);
    CHECK(probe.at("query_rotated", 1).sizes().vec() == std::vector<std::int64_t>{2, 4, 21, 4});

    REQUIRE(probe.implicits.size() == 1);
    CHECK(probe.implicits[0].site == 2);
    const at::Tensor& output = probe.at("head_output", 1);  // the later one is the linear branch's
    const at::Tensor value = probe.at("value", 1).transpose(1, 2).flatten(2).unflatten(2, {2, 16}).transpose(1, 2);
    CHECK(largest_difference(probe.implicits[0].weights.matmul(value), output) <
          test::kFloatError * largest_value(output));
}

TEST_CASE("Heads of both branches can be switched off", "[natsl]") {
    const auto trainable = Trainable::create(natsl(json::object(), 4, {"natsl"}).dump(), 3, at::kFloat);
    model::Model& model = trainable->model();
    const model::Batch batch = some_tokens(1, 21);
    const at::Tensor whole = model.forward(batch);
    for (const auto& [site, head] : {std::pair{0, 3}, std::pair{1, 1}}) {
        model::Interventions edits({test::head_edit(model.sites(), site, head)}, model.config(), model.sites());
        model::ForwardOptions options;
        options.editor = &edits;
        const at::Tensor without = model.forward(batch, options);
        CHECK(largest_difference(without, whole) > 1e-4 * largest_value(whole));
        const auto cache = model.new_cache();
        options.cache = cache.get();
        model.forward({batch.ids.narrow(1, 0, 10), {}, {}}, options);
        CHECK(largest_difference(model.forward({batch.ids.narrow(1, 10, 11), {}, {}}, options),
                                 without.narrow(1, 10, 11)) < 3 * test::kFloatError * largest_value(without));
    }
}

TEST_CASE("The cache grows with softmax chunks alone", "[natsl][decoding]") {
    const auto softmax = of_one_type(false), linear = of_one_type(true);
    CHECK((recorded(softmax->model(), some_tokens(1, 40)).at("token_types", 0) == 0).all().item<bool>());
    CHECK((recorded(linear->model(), some_tokens(1, 40)).at("token_types", 0) == 1).all().item<bool>());
    // 4 heads, a key of 4 and a value of 8 numbers; room doubles.
    CHECK(cache_bytes(softmax->model(), 500) - cache_bytes(softmax->model(), 40) >= (500 - 64) * 4 * 12 * 4);
    CHECK(cache_bytes(linear->model(), 500) == cache_bytes(linear->model(), 40));
}

TEST_CASE("Gumbel noise is of training alone, of the job's seed, and of the place in the pass", "[natsl]") {
    const auto model = Trainable::create(natsl({{"choice", "gumbel"}}, 4).dump(), 3, at::kDouble);
    const model::Batch batch = some_tokens(3, 33);
    const auto trained = [&](std::uint64_t seed, const model::Batch& read, std::int64_t first) {
        model::TrainingForward training;
        training.dropout_seed = seed;
        training.first_sequence = first;
        return model->forward(read, training).detach();
    };
    const auto same = [](const at::Tensor& a, const at::Tensor& b) {
        return largest_difference(a, b) < 1e-10 * largest_value(b);
    };
    const at::Tensor one = trained(1, batch, 0);
    CHECK(trained(1, batch, 0).equal(one));
    CHECK_FALSE(same(trained(2, batch, 0), one));
    const model::Batch last{batch.ids.narrow(0, 2, 1), {}, {}};
    CHECK(same(trained(1, last, 2), one.narrow(0, 2, 1)));
    CHECK_FALSE(same(trained(1, last, 0), one.narrow(0, 2, 1)));
    // Without noise the types are the larger scores'.
    const auto plain = Trainable::create(natsl(json::object(), 4).dump(), 3, at::kDouble);
    CHECK(model->model().forward(batch).equal(plain->model().forward(batch)));
}

TEST_CASE("NAtS-L refuses sizes that do not divide, and choices that there are not", "[natsl][errors]") {
    const auto refused = [](const json& options, const char* part) {
        json config = natsl(json::object(), 4);
        config["mixers"]["natsl"].update(options);
        CHECK_THROWS_MATCHES(model::inspect_config(config.dump()), Error, IsError(ErrorCode::mismatch, part));
    };
    refused({{"num_softmax_heads", 3}}, "mixers.natsl.num_softmax_heads");
    refused({{"head_dim", 5}}, "mixers.natsl.head_dim");
    refused({{"head_dim", 6}}, "rotary");
    refused({{"head_dim", 8}, {"expand_v", 1.125}}, "mixers.natsl.expand_v");
    json config = natsl({{"inside_chunk", "none"}}, 4);
    CHECK_THROWS_WITH(model::inspect_config(config.dump()), Catch::Contains("\"both\", \"softmax\", \"linear\""));
}

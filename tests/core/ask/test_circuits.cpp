// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_eigvals.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sin.h>

#include "core/ask/circuits/circuits.h"
#include "core/ask/circuits/head_factors.h"
#include "core/ask/circuits/vocabulary.h"
#include "core/ask/parts.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/ask/circuit_numbers.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/recording_probe.h"

using namespace headscope;
using namespace headscope::ask::circuits;
using test::at_cell;
using test::circuits_of;
using test::near;
using test::norm_of;
using test::same;
using test::score_of;

namespace {

/// Tensors of a golden checkpoint as the file has them, float64.
class Weights {
public:
    explicit Weights(const std::string& name) {
        test::golden_checkpoint(name).write(folder_.path());
        file_ = checkpoint::Checkpoint::open(folder_.path());
    }
    at::Tensor of(const std::string& tensor) const {
        return file_->load(tensor, checkpoint::LoadAs::float32).to(at::kDouble);
    }
    /// A map [out, in] as heads [H, in, size].
    at::Tensor heads(const std::string& tensor, std::int64_t count) const {
        return of(tensor).unflatten(0, {count, -1}).transpose(1, 2);
    }

private:
    test::TemporaryFolder folder_;
    std::shared_ptr<const checkpoint::Checkpoint> file_;
};

}  // namespace

TEST_CASE("Maps of heads are those that a run applies", "[ask][circuits]") {
    for (const std::string name :
         {"gpt2", "llama", "neox", "gptj", "falcon-groups", "starcoder2", "gpt-oss", "opt", "native-lazy",
          "native-streaming_llm", "native-mqa", "native-skv", "native-el_att", "native-mhe_add", "native-mhe_mul"}) {
        INFO(name);
        const test::AskedModel asked(name);
        test::RecordingProbe probe(false);
        model::Batch batch;
        batch.ids = asked.ids(0);
        model::ForwardOptions options;
        options.probe = &probe;
        asked.model->forward(batch, options);
        const HeadReader reader(*asked.model, false);
        for (const std::int64_t site : reader.sites()) {
            const int layer = asked.model->sites()[static_cast<std::size_t>(site)].layer;
            const HeadFactors factors = reader.factors(site);
            // Biases cancel between two positions.
            const auto step = [&](const std::string& point) {
                const at::Tensor all = probe.at(point, layer)[0].to(at::kDouble);
                return all.dim() == 2 ? all[1] - all[0] : all.select(1, 1) - all.select(1, 0);
            };
            const at::Tensor x = step("input_norm");
            const auto heads = factors.query.size(0);
            const auto repeat = [&](const at::Tensor& groups) {
                return groups.repeat_interleave(heads / groups.size(0), 0);
            };
            const auto through = [&](const at::Tensor& maps) { return x.matmul(maps.to(at::kDouble)); };
            CHECK(same(through(factors.query), step("query")));
            CHECK(same(through(factors.key), repeat(step("key"))));
            CHECK(same(through(factors.value), repeat(step("value"))));
            const auto maps =
                ask::stack_of(*asked.model).tower().layers()[static_cast<std::size_t>(layer)]->mixer->head_maps();
            REQUIRE(maps);
            at::Tensor value = probe.at("input_norm", layer)[0][0].to(at::kDouble).matmul(maps->value.to(at::kDouble));
            if (maps->value_bias.defined()) value = value + maps->value_bias.to(at::kDouble);
            CHECK(same(value, probe.at("value", layer)[0].select(1, 0).to(at::kDouble)));
            CHECK(same(step("mixer_output").matmul(factors.output.to(at::kDouble).flatten(0, 1)),
                       step("attention_output")));
        }
    }
}

TEST_CASE("Gains of norms and latent attention are in the maps", "[ask][circuits]") {
    const std::string stem = "model.layers.0.self_attn.";
    {
        const test::AskedModel asked("qwen3");
        const Weights file("qwen3");
        const HeadFactors own = HeadReader(*asked.model, false).factors(0);
        CHECK(same(own.query, file.heads(stem + "q_proj.weight", 4) * file.of(stem + "q_norm.weight")));
        const at::Tensor key = file.heads(stem + "k_proj.weight", 2) * file.of(stem + "k_norm.weight");
        CHECK(same(own.key, key.repeat_interleave(2, 0)));
        const at::Tensor gain = file.of("model.layers.0.input_layernorm.weight").view({1, -1, 1});
        CHECK(same(HeadReader(*asked.model, true).factors(0).key, (key * gain).repeat_interleave(2, 0)));
    }
    {
        const test::AskedModel asked("deepseek-v3");
        const Weights file("deepseek-v3");
        const HeadFactors own = HeadReader(*asked.model, false).factors(0);
        const at::Tensor query = file.of(stem + "q_a_proj.weight").t() * file.of(stem + "q_a_layernorm.weight");
        const at::Tensor latent =
            file.of(stem + "kv_a_proj_with_mqa.weight").narrow(0, 0, 9).t() * file.of(stem + "kv_a_layernorm.weight");
        const at::Tensor up = file.heads(stem + "kv_b_proj.weight", 4);  // [4, 9, 6 + 5]
        CHECK(same(own.query, query.matmul(file.heads(stem + "q_b_proj.weight", 4).narrow(2, 0, 6))));
        CHECK(same(own.key, latent.matmul(up.narrow(2, 0, 6))));
        CHECK(same(own.value, latent.matmul(up.narrow(2, 6, 5))));
    }
    {
        const test::AskedModel asked("phi-key-norm-old");
        const Weights file("phi-key-norm-old");
        const HeadFactors own = HeadReader(*asked.model, false).factors(0);
        const at::Tensor query = file.heads(stem + "q_proj.weight", 3), key = file.heads(stem + "k_proj.weight", 1);
        CHECK(same(own.query, (query - query.mean(2, true)) * file.of(stem + "q_layernorm.weight")));
        const at::Tensor one = (key - key.mean(2, true)) * file.of(stem + "k_layernorm.weight");
        CHECK(same(own.key, one.repeat_interleave(3, 0)));
    }
    const test::AskedModel asked("gpt2");
    const Weights file("gpt2");
    const at::Tensor gain = file.of("transformer.h.0.ln_1.weight").view({1, -1, 1});
    const at::Tensor scaled = HeadReader(*asked.model, false).factors(0).value.to(at::kDouble) * gain;
    CHECK(same(HeadReader(*asked.model, true).factors(0).value, scaled - scaled.mean(1, true)));
}

TEST_CASE("Spectra, scores and composition are those of the whole matrices", "[ask][circuits]") {
    for (const std::string name : {"gpt2", "llama", "qwen3", "deepseek-v3", "hybrid-falcon-h1", "hybrid-qwen3-next"}) {
        for (const bool fold : {false, true}) {
            INFO(name << ", fold " << fold);
            const test::AskedModel asked(name);
            CircuitsOptions options;
            options.fold = fold;
            const store::AskRecord record = circuits_of(asked, options);
            CHECK(record.complete);
            const HeadReader reader(*asked.model, fold);
            const TokenMaps tokens = token_maps(*asked.model, fold);
            const auto qk = [&](std::int64_t site) {
                const HeadFactors own = reader.factors(site);
                return own.query.to(at::kDouble).matmul(own.key.to(at::kDouble).transpose(1, 2))[1];
            };
            const auto ov = [&](std::int64_t site) {
                const HeadFactors own = reader.factors(site);
                return own.value.to(at::kDouble).matmul(own.output.to(at::kDouble))[1];
            };
            for (const std::int64_t b : reader.sites()) {
                const at::Tensor reads = at::linalg_svdvals(qk(b)), writes = at::linalg_svdvals(ov(b));
                for (std::int64_t i = 0; i < 3; ++i) {
                    CHECK(near(at_cell(record, "/circuits/qk_singular_values", {b, 1, i}), reads[i].item<double>()));
                    CHECK(near(at_cell(record, "/circuits/ov_singular_values", {b, 1, i}), writes[i].item<double>()));
                }
                CHECK(near(at_cell(record, "/circuits/qk_eigenvalue_score", {b, 1}), score_of(qk(b))));
                CHECK(near(at_cell(record, "/circuits/ov_eigenvalue_score", {b, 1}), score_of(ov(b))));
                const at::Tensor copies =
                    tokens.embedding.to(at::kDouble).matmul(ov(b)).matmul(tokens.unembedding.to(at::kDouble).t());
                CHECK(near(at_cell(record, "/circuits/copying_score", {b, 1}), score_of(copies)));
                for (const std::int64_t a : reader.sites()) {
                    const std::vector<std::int64_t> pair{a, 1, b, 1};
                    const bool later = record.sites[static_cast<std::size_t>(a)].layer <
                                       record.sites[static_cast<std::size_t>(b)].layer;
                    const auto expected = [&](const at::Tensor& matrix) {
                        return later ? norm_of(ov(a).matmul(matrix)) / norm_of(ov(a)) / norm_of(matrix) : 0;
                    };
                    CHECK(near(at_cell(record, "/circuits/composition_q", pair), expected(qk(b))));
                    CHECK(near(at_cell(record, "/circuits/composition_k", pair), expected(qk(b).t())));
                    CHECK(near(at_cell(record, "/circuits/composition_v", pair), expected(ov(b))));
                }
            }
            for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
                if (std::find(reader.sites().begin(), reader.sites().end(), site) == reader.sites().end())
                    CHECK(std::isnan(at_cell(record, "/circuits/ov_eigenvalue_score", {site, 0})));
        }
    }
}

TEST_CASE("The largest entries of a product are found piece by piece", "[ask][circuits]") {
    const at::Tensor left = at::sin(at::arange(300 * 3, at::kFloat)).view({300, 3});
    const at::Tensor right = at::sin(at::arange(70 * 3, at::kFloat) * 1.7).view({70, 3});
    std::vector<TokenPair> all;
    const at::Tensor whole = left.matmul(right.t());
    for (std::int64_t i = 0; i < 300; ++i)
        for (std::int64_t j = 0; j < 70; ++j) all.push_back({i, j, whole[i][j].item<double>()});
    std::sort(all.begin(), all.end(), [](const TokenPair& a, const TokenPair& b) { return a.value > b.value; });
    const auto found = largest_entries(left, right, 5, Cancellation());
    REQUIRE(found.size() == 5);
    for (std::size_t k = 0; k < 5; ++k) CHECK(found[k].value == Approx(all[k].value).epsilon(1e-6));
    CHECK(found[0].row == all[0].row);
    CHECK(found[0].column == all[0].column);
    CHECK(largest_entries(left.narrow(0, 0, 1), right.narrow(0, 0, 2), 5, Cancellation()).size() == 2);
}

TEST_CASE("Token pairs of chosen heads are the largest entries between tokens", "[ask][circuits]") {
    const test::AskedModel asked("llama");
    CircuitsOptions options;
    options.pairs = 3;
    options.heads = {{1, 2}};
    const store::AskRecord record = circuits_of(asked, options);
    const HeadFactors own = HeadReader(*asked.model, false).factors(1);
    const TokenMaps tokens = token_maps(*asked.model, false);
    const at::Tensor embedding = tokens.embedding.to(at::kDouble);
    const at::Tensor between =
        embedding.matmul(own.query[2].to(at::kDouble)).matmul(own.key[2].to(at::kDouble).t()).matmul(embedding.t());
    const at::Tensor written = embedding.matmul(own.value[2].to(at::kDouble))
                                   .matmul(own.output[2].to(at::kDouble))
                                   .matmul(tokens.unembedding.to(at::kDouble).t());
    for (const auto& [which, matrix] : {std::pair("qk", between), std::pair("ov", written)}) {
        const std::string stem = std::string("/circuits/") + which + "_top_pair";
        const double largest = at_cell(record, stem + "_values", {1, 2, 0});
        CHECK(near(largest, matrix.max().item<double>()));
        CHECK(largest >= at_cell(record, stem + "_values", {1, 2, 2}));
        for (std::int64_t k = 0; k < 3; ++k) {
            const auto row = static_cast<std::int64_t>(at_cell(record, stem + "s", {1, 2, k, 0}));
            const auto column = static_cast<std::int64_t>(at_cell(record, stem + "s", {1, 2, k, 1}));
            CHECK(near(at_cell(record, stem + "_values", {1, 2, k}), matrix[row][column].item<double>()));
        }
        CHECK(std::isnan(at_cell(record, stem + "_values", {0, 2, 0})));
    }
}

TEST_CASE("Models without maps of softmax heads are refused", "[ask][circuits]") {
    const auto refused = [](const char* name, bool fold, const char* part) {
        CircuitsOptions options;
        options.fold = fold;
        CHECK_THROWS_MATCHES(circuits_of(test::AskedModel(name), options), Error,
                             test::IsError(ErrorCode::unsupported, part));
    };
    refused("hybrid-mamba2", false, "softmax attention");
    refused("bart", true, "--norm fold");
    refused("bert", true, "--norm fold");
    CHECK(circuits_of(test::AskedModel("bert")).complete);
}

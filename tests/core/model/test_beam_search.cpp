// SPDX-License-Identifier: GPL-3.0-or-later
// Beam search against transformers (tests/oracle/generate/beam_search.py), against a pass without caches, and against
// greedy generation.
#include "tests/catch_with_torch.h"

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/model/generate/beam_search.h"
#include "core/model/generate/generate.h"
#include "core/model/model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using model::BeamOptions;
using nlohmann::json;
using test::IsError;

namespace {

const std::vector<std::int64_t> kSource{3, 17, 5, 5, 22, 9};

/// A golden model; native ones there do not say what their decoders begin with.
std::shared_ptr<model::Model> golden(const std::string& name) {
    test::TinyCheckpoint checkpoint = test::golden_checkpoint(name);
    if (checkpoint.config.at("model_type") == "headscope") checkpoint.config["decoder_start_token_id"] = 4;
    return checkpoint.build();
}

/// Sum of the log-probabilities of `said` behind `source`, by one pass without a cache.
double sum_of(model::Model& model, const std::vector<std::int64_t>& source, const std::vector<std::int64_t>& said) {
    std::vector<std::int64_t> read{model.config().decoder_start};
    read.insert(read.end(), said.begin(), said.end() - 1);
    model::Batch batch;
    batch.ids = at::tensor(source, at::kLong).unsqueeze(0);
    batch.target = at::tensor(read, at::kLong).unsqueeze(0);
    const at::Tensor rows = at::log_softmax(model.logits(model.forward(batch).select(0, 0)), 1, at::kDouble);
    double sum = 0;
    for (std::size_t i = 0; i < said.size(); ++i) sum += rows[static_cast<std::int64_t>(i)][said[i]].item<double>();
    return sum;
}

}  // namespace

TEST_CASE("Beam search says what transformers says", "[model][beams]") {
    std::ifstream file(test::golden_file("beam_search.json"));
    const json cases = json::parse(file);
    REQUIRE(cases.size() > 100);
    std::map<std::string, std::shared_ptr<model::Model>> models;
    for (const json& one : cases) {
        const std::string name = one.at("model");
        auto& model = models[name];
        if (!model) model = golden(name);
        BeamOptions options;
        options.width = one.at("width");
        options.length_penalty = one.at("alpha");
        options.plain_power = one.at("plain");
        options.tokens = one.at("tokens");
        options.end_tokens = one.at("ends").get<std::vector<std::int64_t>>();
        const auto source = one.at("source").get<std::vector<std::int64_t>>();
        INFO(one);
        const auto found = model::beam_search(*model, source, options);
        CHECK(found.tokens == one.at("said").get<std::vector<std::int64_t>>());
        const double score = one.at("score");
        // A dozen logits of a few units each, with a float32's error.
        CHECK(std::abs(found.score - score) < 16 * test::kFloatError * std::max(1.0, std::abs(score)));
    }
}

TEST_CASE("One beam is greedy generation", "[model][beams]") {
    for (const char* name :
         {"bart", "t5", "native-both-standard", "native-both-mhe_mul", "llama", "hybrid-qwen3-next", "native-natsl"}) {
        const auto model = golden(name);
        for (const std::vector<std::int64_t>& ends :
             {std::vector<std::int64_t>{}, std::vector<std::int64_t>{8, 25}, std::vector<std::int64_t>{2}}) {
            model::GenerateOptions greedy;
            greedy.tokens = 7;
            greedy.end_tokens = ends;
            BeamOptions options;
            options.width = 1;
            options.tokens = 7;
            options.end_tokens = ends;
            INFO(name);
            CHECK(model::beam_search(*model, kSource, options).tokens == model::generate(*model, kSource, greedy));
        }
    }
}

TEST_CASE("A hypothesis has the score that a pass without caches gives it", "[model][beams]") {
    for (const char* name : {"native-both-standard", "native-both-mhe_add", "native-both-mhe_mul", "native-both-sha",
                             "native-both-mqa", "native-both-skv", "native-both-el_att", "native-bart", "umt5"}) {
        const auto model = golden(name);
        BeamOptions options;
        options.tokens = 9;
        const auto four = model::beam_search(*model, kSource, options);
        REQUIRE(four.tokens.size() == 9);
        const double sum = sum_of(*model, kSource, four.tokens);
        INFO(name);
        CHECK(std::abs(four.score - sum / std::pow(14.0 / 6, 0.6)) < 16 * test::kFloatError * std::abs(sum));
    }
}

TEST_CASE("Beam search ends at the last position, and refuses what cannot be", "[model][beams]") {
    const auto bart = golden("bart");
    BeamOptions options;
    options.tokens = 1000;
    CHECK(model::beam_search(*bart, kSource, options).tokens.size() ==
          static_cast<std::size_t>(bart->config().max_positions));
    options.tokens = 0;
    CHECK(model::beam_search(*bart, kSource, options).tokens.empty());
    options.width = 0;
    CHECK_THROWS_MATCHES(model::beam_search(*bart, kSource, options), Error, IsError(ErrorCode::usage, "beam"));
    options.width = 2;
    options.length_penalty = std::nan("");
    CHECK_THROWS_MATCHES(model::beam_search(*bart, kSource, options), Error, IsError(ErrorCode::usage, "penalty"));
    options.length_penalty = 1;
    CHECK_THROWS_MATCHES(model::beam_search(*bart, {}, options), Error, IsError(ErrorCode::usage, "at least one"));
    const auto encoder = golden("bert");
    CHECK_THROWS_MATCHES(model::beam_search(*encoder, kSource, options), Error, IsError(ErrorCode::usage, "a decoder"));
    Cancellation stopped;
    stopped.request();
    options.cancellation = &stopped;
    options.tokens = 5;
    CHECK_THROWS_AS(model::beam_search(*bart, kSource, options), Stopped);
}

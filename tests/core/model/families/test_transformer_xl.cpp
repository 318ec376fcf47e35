// SPDX-License-Identifier: GPL-3.0-or-later
// Transformer-XL against tests/oracle/random/xl_oracle.py, which reads segment by segment with a memory of hidden
// states.
#include "tests/catch_with_torch.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <nlohmann/json.hpp>

#include "core/model/load/recipe.h"
#include "core/model/towers/cache.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/configs/family_config.h"
#include "tests/core/model/golden_matrices.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::ModelConfig;
using model::Segments;
using nlohmann::json;
using test::GoldenModel;
using test::IsError;
using test::largest_difference;
using test::largest_value;
using test::read;
using test::with;

namespace {

struct GoldenCase {
    const char* name;
    Segments segments{};
};

const std::vector<GoldenCase> kCases{{"plain"},
                                     {"clamped-pre-norm-old"},
                                     {"same-length-shared-biases"},
                                     {"one-table"},
                                     {"one-table-mapped-untied"},
                                     {"untied-maps"},
                                     {"segments", {8, -1}},
                                     {"segments-clamped", {8, 7}},
                                     {"segments-same-length", {8, -1}},
                                     {"segments-without-memory", {8, 0}}};

GoldenModel golden_of(const std::string& name) {
    return test::golden_model("xl-" + name);
}

at::Tensor logits_of(model::Model& model, const at::Tensor& hidden) {
    return model.logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

double error_of(const GoldenModel& golden, const Segments& segments, LoadAs precision = LoadAs::float32) {
    const auto model = golden.checkpoint.build(precision);
    model::ForwardOptions options;
    options.segments = segments;
    return largest_difference(logits_of(*model, model->forward(golden.batch, options)), golden.logits) /
           largest_value(golden.logits);
}

}  // namespace

TEST_CASE("Transformer-XL gives the logits and matrices of a plain reference, with memory over three segments",
          "[model][golden]") {
    for (const GoldenCase& one : kCases) {
        INFO(one.name);
        const GoldenModel golden = golden_of(one.name);
        REQUIRE(largest_value(golden.logits) > 0.1);
        CHECK(error_of(golden, one.segments) < test::kFloatError);
        CHECK(error_of(golden, one.segments, LoadAs::float64) < test::kFloatError);
        test::compare_matrices(golden, one.segments);
    }
}

TEST_CASE("Transformer-XL in bfloat16 is itself to eight bits", "[model][golden]") {
    for (const char* name : {"plain", "clamped-pre-norm-old", "one-table"})
        CHECK(error_of(golden_of(name), {}, LoadAs::bfloat16) < test::kBfloatError);
}

TEST_CASE("What Transformer-XL's kernels measure is what its matrix says", "[model][golden]") {
    const GoldenModel golden = golden_of("segments-clamped");
    const auto model = golden.checkpoint.build();
    test::RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    options.segments = {8, 7};
    model->forward(golden.batch, options);
    REQUIRE(probe.sites.size() == golden.attention.size());
    for (std::size_t site = 0; site < probe.sites.size(); ++site) {
        const at::Tensor weights = golden.attention[site].select(0, 0);  // [H, L, L]
        const at::Tensor sink = weights.select(2, 0).mean(1);
        const at::Tensor squares = weights.square().sum(2).sum(1).sqrt();
        for (std::int64_t head = 0; head < weights.size(0); ++head) {
            const auto h = static_cast<std::size_t>(head);
            const kernels::Statistics& found = probe.sites[site].statistics;
            CHECK(found.sink[h] == Approx(sink[head].item<double>()).epsilon(1e-5).margin(1e-7));
            CHECK(found.concentration[h] == Approx(squares[head].item<double>()).epsilon(1e-5));
        }
    }
}

TEST_CASE("Transformer-XL reads a text in pieces as it reads it at once", "[model][decoding]") {
    for (const char* name : {"plain", "clamped-pre-norm-old", "same-length-shared-biases"}) {
        INFO(name);
        const GoldenModel golden = golden_of(name);
        const auto model = golden.checkpoint.build();
        const at::Tensor& ids = golden.batch.ids;
        const auto cache = model->new_cache();
        model::ForwardOptions options;
        options.cache = cache.get();
        std::vector<at::Tensor> parts;
        for (std::int64_t first = 0; first < ids.size(1);) {
            const std::int64_t count = std::min(first == 0 ? std::int64_t{4} : std::int64_t{1}, ids.size(1) - first);
            model::Batch piece;
            piece.ids = ids.narrow(1, first, count);
            parts.push_back(logits_of(*model, model->forward(piece, options)));
            first += count;
        }
        CHECK(largest_difference(at::cat(parts, 1), golden.logits) < test::kFloatError * largest_value(golden.logits));
    }
}

TEST_CASE("A setting of Transformer-XL read wrongly would show", "[model][golden]") {
    struct Change {
        const char *name, *key;
        json value;
    };
    const std::vector<Change> changes{{"plain", "layer_norm_epsilon", 1e-2},
                                      {"plain", "pre_lnorm", true},
                                      {"plain", "clamp_len", 3},
                                      {"clamped-pre-norm-old", "clamp_len", 5},
                                      {"clamped-pre-norm-old", "clamp_len", 0},
                                      {"same-length-shared-biases", "same_length", false},
                                      {"same-length-shared-biases", "mem_len", 6},
                                      {"same-length-shared-biases", "untie_r", true}};
    for (const Change& change : changes) {
        CAPTURE(change.name, change.key);
        GoldenModel golden = golden_of(change.name);
        golden.checkpoint.config[change.key] = change.value;
        CHECK(error_of(golden, {}) > 2 * test::kFloatError);
    }
    for (const GoldenCase& one : kCases) {
        if (one.segments == Segments() || std::string(one.name) == "segments-same-length") continue;
        INFO(one.name);
        CHECK(error_of(golden_of(one.name), {}) > 2 * test::kFloatError);
    }
    CHECK(error_of(golden_of("segments"), {8, 4}) > 2 * test::kFloatError);
    CHECK(error_of(golden_of("segments"), {7, -1}) > 2 * test::kFloatError);
}

TEST_CASE("What Transformer-XL's configuration leaves out is what its class said", "[model][families]") {
    const ModelConfig config = read({{"model_type", "transfo-xl"}});
    CHECK(config.vocabulary == 267'735);
    CHECK(config.layers == 18);
    CHECK(config.hidden == 1024);
    CHECK(config.head_size == 64);
    CHECK(config.feed_forward == 4096);
    CHECK(config.memory_length == 1600);
    CHECK(config.memory_is_a_window);
    CHECK(config.clamped_distance == 1000);
    CHECK_FALSE(config.pre_norm);
    CHECK(config.own_position_biases);
    REQUIRE(config.adaptive);
    CHECK(config.adaptive->ends == std::vector<std::int64_t>{20000, 40000, 200000, 267735});
    CHECK(config.adaptive->size_of(3) == 16);
    CHECK(config.adaptive->tied_tables);
    CHECK(config.adaptive->tied_maps == std::vector<bool>{false, true, true, true});
    CHECK_FALSE(read(with("transfo-xl", "tie_weight", false)).adaptive->tied_tables);
    CHECK(json::parse(config.to_json()).at("positions") == "relative");
}

TEST_CASE("What of Transformer-XL is not built is refused by its key", "[model][errors]") {
    const auto refuses = [](const std::string& key, const json& value, ErrorCode code) {
        CAPTURE(key, value);
        CHECK_THROWS_MATCHES(read(with("transfo-xl", key, value)), Error, IsError(code, "config.json: " + key));
    };
    refuses("attn_type", 1, ErrorCode::unsupported);
    refuses("sample_softmax", 5, ErrorCode::unsupported);
    refuses("ext_len", 4, ErrorCode::unsupported);
    refuses("adaptive", false, ErrorCode::unsupported);
    refuses("is_causal", false, ErrorCode::unsupported);
    refuses("num_key_value_heads", 4, ErrorCode::unsupported);
    refuses("d_model", 1023, ErrorCode::mismatch);
    refuses("cutoffs", {20, 10}, ErrorCode::mismatch);
    refuses("cutoffs", {20, 267735}, ErrorCode::mismatch);
    refuses("cutoffs", {20.5}, ErrorCode::mismatch);
    refuses("cutoffs", json(64, 1), ErrorCode::mismatch);
    refuses("div_val", 64, ErrorCode::mismatch);
    refuses("tie_projs", {true}, ErrorCode::mismatch);
    refuses("tie_projs", {1, 0, 0, 0}, ErrorCode::mismatch);
    refuses("mem_len", 0, ErrorCode::mismatch);
    refuses("clamp_len", 2.5, ErrorCode::mismatch);
    json both = with("transfo-xl", "tie_weight", true);
    both["tie_word_embeddings"] = false;
    CHECK_THROWS_MATCHES(read(both), Error, IsError(ErrorCode::unsupported, "tie_weight"));
}

TEST_CASE("Segments are Transformer-XL's alone, and a window of none is refused", "[model][errors]") {
    const GoldenModel window = golden_of("same-length-shared-biases");
    model::ForwardOptions options;
    options.segments = {8, 0};
    CHECK_THROWS_MATCHES(window.checkpoint.build()->forward(window.batch, options), Error,
                         IsError(ErrorCode::usage, "same_length"));
    const GoldenModel plain = golden_of("plain");
    model::ForwardOptions memory_alone;
    memory_alone.segments = {0, 4};
    CHECK_THROWS_MATCHES(plain.checkpoint.build()->forward(plain.batch, memory_alone), Error,
                         IsError(ErrorCode::usage, "--segment"));
    const GoldenModel other = test::golden_model("llama");
    CHECK_THROWS_MATCHES(other.checkpoint.build()->forward(other.batch, options), Error,
                         IsError(ErrorCode::usage, "Transformer-XL"));
}

TEST_CASE("Transformer-XL's file lacks a tensor, has one of another shape, or no head", "[model][errors]") {
    GoldenModel golden = golden_of("plain");
    test::TinyCheckpoint lacking = golden.checkpoint;
    lacking.tensors.erase("transformer.word_emb.emb_projs.2");
    CHECK_THROWS_MATCHES(lacking.build(), Error, IsError(ErrorCode::mismatch, "emb_projs.2"));
    test::TinyCheckpoint bent = golden.checkpoint;
    bent.tensors["transformer.layers.1.dec_attn.r_net.weight"] = {15, 17};
    CHECK_THROWS_MATCHES(bent.build(), Error, IsError(ErrorCode::mismatch, "r_net"));
    test::TinyCheckpoint further = golden.checkpoint;
    further.tensors["transformer.word_emb.emb_layers.4.weight"] = {3, 1};
    CHECK_THROWS_MATCHES(further.build(), Error, IsError(ErrorCode::mismatch, "cutoffs"));
    test::TinyCheckpoint headless = golden.checkpoint;
    std::erase_if(headless.tensors, [](const auto& tensor) { return tensor.first.starts_with("crit."); });
    CHECK_FALSE(headless.build()->has_head());
}

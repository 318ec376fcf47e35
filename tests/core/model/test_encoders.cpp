// SPDX-License-Identifier: GPL-3.0-or-later
// The encoders after BERT, OPT and BLOOM: what opening them says, and what their recipes refuse. Their numbers are in
// test_golden.cpp.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/zeros.h>

#include "core/model/generate.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::golden_model;
using test::IsError;
using test::RecordingProbe;
using test::TinyCheckpoint;

namespace {

void refuses(const TinyCheckpoint& checkpoint, ErrorCode code, const std::string& part) {
    CAPTURE(part);
    CHECK_THROWS_MATCHES(checkpoint.build(), Error, IsError(code, part));
}

TinyCheckpoint with(const std::string& name, const std::string& pointer, const nlohmann::json& value) {
    TinyCheckpoint checkpoint = golden_model(name).checkpoint;
    checkpoint.config[nlohmann::json::json_pointer(pointer)] = value;
    return checkpoint;
}

TinyCheckpoint renamed(const std::string& name, const std::string& prefix, const std::string& by) {
    TinyCheckpoint checkpoint = golden_model(name).checkpoint;
    std::map<std::string, std::vector<std::int64_t>> tensors;
    for (const auto& [tensor, shape] : checkpoint.tensors) {
        const bool begins = tensor.compare(0, prefix.size(), prefix) == 0;
        tensors[begins ? by + tensor.substr(prefix.size()) : tensor] = shape;
    }
    checkpoint.tensors = tensors;
    return checkpoint;
}

at::Tensor some(std::int64_t length) {
    return at::zeros({1, length}, at::kLong);
}

bool has(const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

TEST_CASE("Every prefix that files have before a backbone is known", "[model][encoders]") {
    struct Prefix {
        const char *name, *prefix, *by;
    };
    for (const auto& [name, prefix, by] : std::vector<Prefix>{{"roberta", "roberta.", ""},
                                                              {"data2vec-text", "data2vec_text.", ""},
                                                              {"distilbert", "distilbert.", ""},
                                                              {"albert", "albert.", ""},
                                                              {"modernbert", "model.", ""},
                                                              {"opt", "model.decoder.", "decoder."},
                                                              {"opt", "model.decoder.", ""},
                                                              {"bloom", "transformer.", ""}}) {
        CAPTURE(name, by);
        const auto model = renamed(name, prefix, by).build();
        CHECK(model->report().matched == golden_model(name).checkpoint.build()->report().matched);
        CHECK(model->report().left_over.empty());
        CHECK(model->has_head());
    }
}

TEST_CASE("What older files carry beside is left over", "[model][encoders]") {
    const std::vector<std::string> of_roberta{"roberta.embeddings.position_ids", "roberta.pooler.dense.weight"};
    CHECK(golden_model("roberta-old-names").checkpoint.build()->report().left_over == of_roberta);
    const std::vector<std::string> of_opt{"decoder.version"};
    CHECK(golden_model("opt-old-file").checkpoint.build()->report().left_over == of_opt);
    CHECK(has(golden_model("distilbert-old-names").checkpoint.build()->report().notes,
              "1 left-over buffers of an older file: not needed"));
    // Untied, the reference keeps a second bias that nothing reads.
    const std::vector<std::string> bias{"lm_head.bias"};
    CHECK(golden_model("roberta-untied").checkpoint.build()->report().left_over == bias);
}

TEST_CASE("A transform that belongs to another head makes no logits", "[model][encoders]") {
    TinyCheckpoint classifier = golden_model("modernbert").checkpoint;
    classifier.tensors.erase("decoder.bias");
    classifier.tensors["classifier.weight"] = {2, 24};
    const auto model = classifier.build();
    CHECK_FALSE(model->has_head());
    CHECK(has(model->report().missing, "decoder.bias"));
    TinyCheckpoint backbone = golden_model("roberta").checkpoint;
    std::erase_if(backbone.tensors, [](const auto& tensor) { return tensor.first.rfind("lm_head.", 0) == 0; });
    CHECK_FALSE(backbone.build()->has_head());
}

TEST_CASE("Layers that share their weights are read once and measured each", "[model][encoders]") {
    const TinyCheckpoint checkpoint = golden_model("albert-groups-untied").checkpoint;
    const auto model = checkpoint.build();
    REQUIRE(model->config().layers == 6);
    const std::vector<std::int64_t> shared{0, 1, 0, 1, 2, 3};
    CHECK(model->config().shared_layers == shared);
    CHECK(model->sites().size() == 6);
    CHECK(model->sites()[5].layer == 5);
    CHECK(model->mixers().size() == 6);
    CHECK(model->report().left_over == std::vector<std::string>{"predictions.bias"});
    std::int64_t elements = -41;  // that bias
    for (const auto& [name, shape] : checkpoint.tensors) {
        std::int64_t count = 1;
        for (const std::int64_t size : shape) count *= size;
        elements += count;
    }
    CHECK(model->parameters() == elements);
    RecordingProbe probe(true, {"hidden"});
    model::ForwardOptions options;
    options.probe = &probe;
    model->forward(golden_model("albert-groups-untied").batch, options);
    CHECK(probe.sites.size() == 6);
    CHECK(probe.values.size() == 6);
    const auto filled_in = nlohmann::json::parse(model->config().to_json());
    CHECK(filled_in.at("shared_layers") == nlohmann::json(shared));
    CHECK(filled_in.at("embedding_size") == 12);
}

TEST_CASE("More layers than files have tensors are fine where they are shared", "[model][encoders]") {
    TinyCheckpoint deep = with("albert", "/num_hidden_layers", 60);
    CHECK(deep.tensors.size() < 60);
    CHECK(deep.build()->config().layers == 60);
    refuses(with("albert", "/num_hidden_groups", 2), ErrorCode::mismatch, "albert_layer_groups.1.albert_layers.0.");
    refuses(with("albert", "/num_hidden_groups", 4), ErrorCode::mismatch,
            "num_hidden_groups] expected at most num_hidden_layers, 3");
    refuses(with("albert", "/inner_group_num", 2000000000), ErrorCode::mismatch, "inner_group_num");
    refuses(with("albert-groups-untied", "/num_hidden_groups", 1), ErrorCode::mismatch, "num_hidden_groups");
    refuses(with("albert-groups-untied", "/inner_group_num", 1), ErrorCode::mismatch, "inner_group_num");
}

TEST_CASE("RoBERTa's table of positions is shorter by its padding", "[model][encoders]") {
    const auto model = golden_model("roberta").checkpoint.build();
    CHECK(model->config().max_positions == 18);
    CHECK_NOTHROW(model->forward({some(18), {}, {}}));
    CHECK_THROWS_MATCHES(model->forward({some(19), {}, {}}), Error,
                         IsError(ErrorCode::limit, "expected at most 18 tokens"));
    refuses(with("roberta", "/max_position_embeddings", 2), ErrorCode::mismatch,
            "max_position_embeddings] expected more than pad_token_id + 1 (2)");
    refuses(with("roberta", "/pad_token_id", 41), ErrorCode::mismatch,
            "pad_token_id] expected an id of the vocabulary");
    refuses(with("opt", "/max_position_embeddings", 17), ErrorCode::mismatch,
            "expected shape [19, 20] (max_position_embeddings + 2; hidden_size)");
}

TEST_CASE("ModernBERT's windows reach as far to both sides", "[model][encoders]") {
    const auto golden = golden_model("modernbert");
    RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    golden.checkpoint.build()->forward(golden.batch, options);
    REQUIRE(probe.sites.size() == 4);
    for (const std::size_t layer : {0U, 3U}) CHECK(probe.sites[layer].rule.window_left == -1);
    for (const std::size_t layer : {1U, 2U}) {
        CHECK(probe.sites[layer].rule.window_left == 3);
        CHECK(probe.sites[layer].rule.window_right == 3);
    }
    // The first token sees four keys, so a uniform row would give each a quarter.
    CHECK(probe.sites[1].statistics.column_mass.size() > 0);
}

TEST_CASE("BLOOM's slopes for heads that are no power of two", "[model][encoders]") {
    const auto golden = golden_model("bloom");  // six heads
    RecordingProbe probe(true, {"nothing"});
    model::ForwardOptions options;
    options.probe = &probe;
    golden.checkpoint.build()->forward(golden.batch, options);
    const std::vector<float> expected{std::exp2(-2.0F), std::exp2(-4.0F), std::exp2(-6.0F),
                                      std::exp2(-8.0F), std::exp2(-1.0F), std::exp2(-3.0F)};
    CHECK(probe.sites.at(0).rule.slopes == expected);
}

TEST_CASE("ALiBi runs past the positions when asked to", "[model][encoders]") {
    const auto model = golden_model("bloom-old-file").checkpoint.build();
    CHECK(model->config().max_positions == 16);
    CHECK_THROWS_MATCHES(model->forward({some(17), {}, {}}), Error, IsError(ErrorCode::limit, "--beyond-positions"));
    CHECK(golden_model("bloom").checkpoint.build()->config().max_positions == 0);
    CHECK_NOTHROW(golden_model("bloom").checkpoint.build()->forward({some(90), {}, {}}));
}

TEST_CASE("Encoders generate nothing", "[model][encoders]") {
    const std::vector<std::int64_t> prompt{3, 4};
    for (const char* name : {"roberta", "distilbert", "albert", "modernbert"}) {
        const auto model = golden_model(name).checkpoint.build();
        CHECK_FALSE(model->causal());
        CHECK_THROWS_MATCHES(model::generate(*model, prompt, {}), Error, IsError(ErrorCode::usage, "an encoder"));
    }
}

TEST_CASE("What these families' configurations can ask for and is not built is refused", "[model][encoders]") {
    for (const char* name : {"roberta", "albert"}) {
        refuses(with(name, "/is_decoder", true), ErrorCode::unsupported, "is_decoder");
        refuses(with(name, "/add_cross_attention", true), ErrorCode::unsupported, "add_cross_attention");
        refuses(with(name, "/position_embedding_type", "relative_key_query"), ErrorCode::unsupported,
                "position_embedding_type");
    }
    refuses(with("modernbert", "/layer_types/0", "chunked_attention"), ErrorCode::unsupported, "layer_types");
    refuses(with("modernbert", "/rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10.0}}),
            ErrorCode::unsupported, "rope_parameters] expected a set of rotary parameters for each kind of layer");
    refuses(with("modernbert", "/rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}), ErrorCode::unsupported,
            "rope_scaling");
    refuses(with("modernbert-old", "/local_rope_theta", nullptr), ErrorCode::mismatch, "local_rope_theta");
    refuses(with("roberta", "/pad_token_id", nullptr), ErrorCode::mismatch, "pad_token_id");
    refuses(with("modernbert-old", "/global_attn_every_n_layers", 0), ErrorCode::mismatch,
            "global_attn_every_n_layers");
    refuses(with("opt", "/num_key_value_heads", 2), ErrorCode::unsupported, "num_key_value_heads");
    refuses(with("distilbert", "/n_heads", 4), ErrorCode::mismatch, "n_heads] expected a divisor of dim (18)");
}

TEST_CASE("Sizes are found by any of their names", "[model][encoders]") {
    TinyCheckpoint distilbert = golden_model("distilbert").checkpoint;
    for (const auto& [key, other] :
         {std::pair{"dim", "hidden_size"}, {"n_heads", "num_attention_heads"}, {"n_layers", "num_hidden_layers"}}) {
        distilbert.config[other] = distilbert.config.at(key);
        distilbert.config.erase(key);
    }
    CHECK_NOTHROW(distilbert.build());
    CHECK(golden_model("bloom-old-file").checkpoint.build()->config().heads == 4);
}

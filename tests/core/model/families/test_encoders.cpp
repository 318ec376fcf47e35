// SPDX-License-Identifier: GPL-3.0-or-later
// The encoders after BERT, OPT and BLOOM: what opening them says, and what their recipes refuse. Their numbers are in
// test_golden.cpp.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "core/model/generate/generate.h"
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
                                                              {"electra", "electra.", ""},
                                                              {"mpnet", "mpnet.", ""},
                                                              {"eurobert", "model.", ""},
                                                              {"nomic-bert", "nomic_bert.", ""},
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

TEST_CASE("ELECTRA's discriminators have no head for the vocabulary", "[model][encoders]") {
    TinyCheckpoint discriminator = golden_model("electra").checkpoint;
    std::erase_if(discriminator.tensors, [](const auto& tensor) { return tensor.first.rfind("generator", 0) == 0; });
    discriminator.tensors["discriminator_predictions.dense.weight"] = {20, 20};
    const auto model = discriminator.build();
    CHECK_FALSE(model->has_head());
    CHECK(has(model->report().left_over, "discriminator_predictions.dense.weight"));
    CHECK(model->config().embedding_size == 12);
    // Embeddings as wide as the layers are not projected.
    CHECK(golden_model("electra-wide-untied-old").checkpoint.build()->config().embedding_size == 0);
    CHECK(golden_model("electra-decoder").checkpoint.build()->causal());
}

TEST_CASE("MPNet has 32 buckets of distances, whatever its file says", "[model][encoders]") {
    const auto model = golden_model("mpnet-more-buckets-old").checkpoint.build();
    CHECK(model->config().distance_buckets == 32);
    CHECK(model->config().bucket_rows == 40);
    CHECK(model->config().max_positions == 68);
    CHECK(model->config().position_padding == 1);
    CHECK_THROWS_MATCHES(model->forward({some(69), {}, {}}), Error,
                         IsError(ErrorCode::limit, "expected at most 68 tokens"));
    refuses(with("mpnet", "/relative_attention_num_buckets", 16), ErrorCode::mismatch,
            "relative_attention_num_buckets] expected at least 32");
    refuses(with("mpnet", "/relative_attention_num_buckets", 40), ErrorCode::mismatch,
            "expected shape [40, 5] (relative_attention_num_buckets; num_attention_heads)");
}

TEST_CASE("NomicBERT's files are read by the names of the hub and of transformers", "[model][encoders]") {
    CHECK(golden_model("nomic-bert").checkpoint.build()->report().left_over == std::vector<std::string>{});
    const std::vector<std::string> bias{"cls.predictions.bias"};  // untied, nothing reads it
    CHECK(golden_model("nomic-bert-renamed-untied").checkpoint.build()->report().left_over == bias);
    TinyCheckpoint nested = golden_model("nomic-bert-renamed-untied").checkpoint;
    std::map<std::string, std::vector<std::int64_t>> tensors;
    for (const auto& [name, shape] : nested.tensors) tensors["module." + name] = shape;
    nested.tensors = tensors;
    CHECK(nested.build()->has_head());
    struct Said {
        const char* key;
        nlohmann::json value;
    };
    const std::string file = "nomic-bert-hub-keys-old";
    for (const auto& [key, value] : std::vector<Said>{{"n_embd", 32},
                                                      {"n_layer", 3},
                                                      {"n_head", 3},
                                                      {"n_inner", 64},
                                                      {"moe_every_n_layers", 2},
                                                      {"rotary_emb_base", 10000},
                                                      {"rotary_emb_fraction", 0.5},
                                                      {"rotary_emb_interleaved", true},
                                                      {"rotary_emb_scale_base", 512},
                                                      {"rotary_scaling_factor", 2},
                                                      {"layer_norm_epsilon", 1e-12},
                                                      {"qkv_proj_bias", true},
                                                      {"mlp_fc1_bias", true},
                                                      {"mlp_fc2_bias", true},
                                                      {"prenorm", true},
                                                      {"causal", true},
                                                      {"parallel_block", true},
                                                      {"use_rms_norm", true},
                                                      {"scale_attn_weights", false},
                                                      {"scale_attn_by_inverse_layer_idx", true},
                                                      {"activation_function", "gelu"}})
        refuses(with(file, std::string("/") + key, value), ErrorCode::unsupported, std::string(key) + "] expected");
}

TEST_CASE("ESM drops the embedding of masked tokens, and scales the others up", "[model][encoders]") {
    const auto model = golden_model("esm").checkpoint.build();
    const std::vector<std::string> contacts{"esm.contact_head.regression.bias", "esm.contact_head.regression.weight"};
    CHECK(model->report().left_over == contacts);
    CHECK(model->config().dropped_token == 32);
    CHECK_THROWS_MATCHES(model->forward({some(2) + 32, {}, {}}), Error,
                         IsError(ErrorCode::limit, "sequence 0] expected a token other than the mask's (32"));
    CHECK_NOTHROW(golden_model("esm-absolute-untied").checkpoint.build()->forward({some(2) + 32, {}, {}}));
    // The padding's row and those before it are no positions.
    CHECK(golden_model("esm-absolute-untied").checkpoint.build()->config().max_positions == 28);
    CHECK(has(golden_model("esm-old").checkpoint.build()->report().left_over,
              "esm.encoder.layer.1.attention.self.rotary_embeddings.inv_freq"));
    refuses(with("esm", "/mask_token_id", nullptr), ErrorCode::mismatch, "mask_token_id");
    refuses(with("esm-absolute-untied", "/pad_token_id", nullptr), ErrorCode::mismatch, "pad_token_id");
    refuses(with("esm-absolute-untied", "/pad_token_id", 33), ErrorCode::mismatch, "pad_token_id");
    refuses(with("esm", "/position_embedding_type", "relative_key"), ErrorCode::unsupported,
            "position_embedding_type] expected absolute or rotary");
    refuses(with("esm", "/position_embedding_type", nullptr), ErrorCode::unsupported, "position_embedding_type");
    refuses(with("esm", "/is_decoder", true), ErrorCode::unsupported, "is_decoder");
    refuses(with("esm", "/add_cross_attention", true), ErrorCode::unsupported, "add_cross_attention");
    refuses(with("esm", "/num_attention_heads", 8), ErrorCode::mismatch, "num_attention_heads");
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
    for (const char* name :
         {"roberta", "distilbert", "albert", "modernbert", "electra", "mpnet", "eurobert", "nomic-bert", "esm"}) {
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

TEST_CASE("FNet's layers have a site without a matrix, and its files may be for classes", "[model][encoders]") {
    const auto model = golden_model("fnet").checkpoint.build();
    CHECK(model->mixers() == std::vector<std::string>{"fnet", "fnet"});
    REQUIRE(model->sites().size() == 2);
    CHECK_FALSE(model->sites()[1].has_matrix);
    const std::vector<std::string> not_needed{"cls.seq_relationship.bias", "cls.seq_relationship.weight",
                                              "fnet.pooler.dense.bias", "fnet.pooler.dense.weight"};
    CHECK(model->report().left_over == not_needed);
    CHECK(renamed("fnet", "fnet.", "").build()->report().matched == model->report().matched);
    CHECK_THROWS_MATCHES(model->forward({some(66), {}, {}}), Error,
                         IsError(ErrorCode::limit, "expected at most 65 tokens"));

    const auto of_texts = golden_model("fnet-text-classes").checkpoint.build();
    CHECK(of_texts->has_classes());
    CHECK_FALSE(of_texts->has_head());
    CHECK(of_texts->report().left_over.empty());
    CHECK(of_texts->config().classes == 2);  // where a file says nothing
    CHECK(golden_model("fnet-token-classes").checkpoint.build()->config().classes == 3);

    refuses(with("fnet", "/use_tpu_fourier_optimizations", true), ErrorCode::unsupported,
            "use_tpu_fourier_optimizations] expected false or absent");
    refuses(with("fnet-text-classes", "/num_labels", 3), ErrorCode::mismatch, "id2label");
    refuses(with("fnet-token-classes", "/num_labels", 2), ErrorCode::mismatch,
            "num_labels] expected 3, as many as id2label names");
    refuses(with("fnet-token-classes", "/id2label", nlohmann::json::object()), ErrorCode::mismatch, "id2label");
    refuses(with("fnet-token-classes", "/id2label", 3), ErrorCode::format, "id2label");
    TinyCheckpoint without = golden_model("fnet").checkpoint;
    without.tensors.erase("fnet.embeddings.projection.bias");
    refuses(without, ErrorCode::mismatch, "fnet.embeddings.projection.bias");
    refuses(with("fnet", "/model_type", "canine"), ErrorCode::unsupported, "characters four by four");
}

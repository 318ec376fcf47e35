// SPDX-License-Identifier: GPL-3.0-or-later
// What opening a model says: matched, missing, left over, and every disagreement between configuration and tensors.
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <set>

#include "core/model/load/presets.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/checkpoint/pytorch_builder.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using test::golden_model;
using test::IsError;
using test::TinyCheckpoint;

namespace {

void refuses(const TinyCheckpoint& checkpoint, ErrorCode code, const std::string& part) {
    CAPTURE(part);
    CHECK_THROWS_MATCHES(checkpoint.build(), Error, IsError(code, part));
}

TinyCheckpoint llama_with(const std::string& key, const nlohmann::json& value) {
    TinyCheckpoint checkpoint = golden_model("llama").checkpoint;
    checkpoint.config[key] = value;
    return checkpoint;
}

bool has(const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

TEST_CASE("A whole model reports that everything matched", "[model][build]") {
    const auto golden = golden_model("llama");
    const auto model = golden.checkpoint.build();
    CHECK(model->report().matched == golden.checkpoint.tensors.size());
    CHECK(model->report().missing.empty());
    CHECK(model->report().left_over.empty());
    std::int64_t elements = 0;
    for (const auto& [name, shape] : golden.checkpoint.tensors) {
        std::int64_t count = 1;
        for (const std::int64_t size : shape) count *= size;
        elements += count;
    }
    CHECK(model->parameters() == elements);
    CHECK(model->mixers() == std::vector<std::string>{"standard", "standard"});
    REQUIRE(model->sites().size() == 2);
    const Site& site = model->sites()[1];
    CHECK(site.layer == 1);
    CHECK(site.heads == 4);
    CHECK(site.key_value_heads == 2);
    CHECK(site.key_size == 6);
    CHECK(site.causal);
    const auto filled_in = nlohmann::json::parse(model->config().to_json());
    CHECK(filled_in.at("family") == "llama");
    CHECK(filled_in.at("rope").at("theta") == 10000.0);
    CHECK(filled_in.at("original") == golden.checkpoint.config);
}

TEST_CASE("Buffers of old files are left over, not errors", "[model][build]") {
    const auto model = golden_model("gpt2-old-file").checkpoint.build();
    CHECK(model->has_head());
    CHECK(model->report().left_over ==
          std::vector<std::string>{"h.0.attn.bias", "h.1.attn.bias", "h.1.attn.masked_bias"});
    const std::vector<std::string> notes{"the head shares the token embedding",
                                         "3 left-over buffers of an older file: not needed"};
    CHECK(model->report().notes == notes);
    const auto bert = golden_model("bert-old-names").checkpoint.build();
    CHECK(bert->report().left_over ==
          std::vector<std::string>{"bert.embeddings.position_ids", "bert.pooler.dense.weight"});
}

TEST_CASE("A head under its older name is the head", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("neox").checkpoint;
    CHECK(checkpoint.build()->report().left_over.empty());
    checkpoint.tensors["lm_head.weight"] = checkpoint.tensors.at("embed_out.weight");
    CHECK(checkpoint.build()->report().left_over == std::vector<std::string>{"embed_out.weight"});
    checkpoint.tensors.erase("embed_out.weight");
    CHECK(checkpoint.build()->has_head());
    checkpoint.tensors.erase("lm_head.weight");
    CHECK(checkpoint.build()->report().missing == std::vector<std::string>{"lm_head.weight"});
    CHECK(golden_model("neox-serial-old").checkpoint.build()->report().left_over.size() == 3);
    CHECK(golden_model("gptj-tied-old").checkpoint.build()->report().left_over.size() == 2);
}

TEST_CASE("Layers that predict further tokens are left over, as many as config.json says", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("deepseek-v3").checkpoint;
    const std::vector<std::string> further{"model.layers.3.eh_proj.weight", "model.layers.3.enorm.weight"};
    CHECK(checkpoint.build()->report().left_over == further);
    checkpoint.tensors["model.layers.4.enorm.weight"] = {24};
    refuses(checkpoint, ErrorCode::mismatch, "num_hidden_layers] expected as many layers");
    checkpoint.config["num_nextn_predict_layers"] = 2;
    CHECK(checkpoint.build()->report().left_over.size() == 3);
}

TEST_CASE("Packed experts must fit together", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("gpt-oss-packed").checkpoint;
    const std::string stem = "model.layers.1.mlp.experts.down_proj";
    const auto packed = checkpoint.build();
    CHECK(packed->config().experts == 3);
    checkpoint.tensors.erase(stem + "_blocks");
    checkpoint.tensors.erase(stem + "_scales");
    checkpoint.tensors[stem] = {3, 32, 32};
    CHECK(checkpoint.build()->parameters() == packed->parameters());
    checkpoint = golden_model("gpt-oss-packed").checkpoint;
    checkpoint.tensors[stem + "_scales"] = {3, 32, 2};
    refuses(checkpoint, ErrorCode::mismatch, "down_proj_scales\"] expected ");
    checkpoint.tensors.erase(stem + "_scales");
    refuses(checkpoint, ErrorCode::mismatch, "down_proj_scales");
    checkpoint = golden_model("gpt-oss-packed").checkpoint;
    checkpoint.tensors[stem + "_blocks"] = {3, 32, 1, 8};
    refuses(checkpoint, ErrorCode::mismatch, "down_proj_blocks\"] expected ");
    checkpoint = golden_model("gpt-oss-packed").checkpoint;
    checkpoint.config["intermediate_size"] = 33;
    refuses(checkpoint, ErrorCode::mismatch, "gate_up_proj] expected shape [3, 32, 66]");
}

TEST_CASE("A file without a head gives a model without logits and says what it misses", "[model][build]") {
    TinyCheckpoint llama = golden_model("llama").checkpoint;
    llama.tensors.erase("lm_head.weight");
    const auto model = llama.build();
    CHECK_FALSE(model->has_head());
    CHECK(has(model->report().missing, "lm_head.weight"));
    const at::Tensor hidden = model->forward(golden_model("llama").batch);
    CHECK_THROWS_MATCHES(model->logits(hidden.flatten(0, 1)), Error, IsError(ErrorCode::usage, "head"));

    TinyCheckpoint bert = golden_model("bert").checkpoint;
    std::erase_if(bert.tensors, [](const auto& tensor) { return tensor.first.rfind("cls.", 0) == 0; });
    CHECK_FALSE(bert.build()->has_head());
}

TEST_CASE("A head that is there and cannot be read is refused by its name", "[model][build]") {
    const test::TemporaryFolder folder;
    TinyCheckpoint checkpoint = golden_model("llama").checkpoint;
    nlohmann::json map;
    checkpoint.tensors.erase("lm_head.weight");
    for (const auto& [name, shape] : checkpoint.tensors) map[name] = "body.safetensors";
    map["lm_head.weight"] = "head.bin";
    const auto [pickle, part] = GENERATE(table<test::PickleText, const char*>({
        {test::PickleText().global("torch._utils", "_rebuild_sparse_tensor").raw(")R"), "_rebuild_sparse_tensor"},
        {test::PickleText().global("torch._utils", "_rebuild_qtensor").raw(")R"), "_rebuild_qtensor"},
        {test::PickleText().tensor("FloatStorage", "0", 6, 0, {1 << 20, 1 << 20}, {0, 0}), "expanded from 1"},
    }));
    const std::string object = pickle.end().substr(2, pickle.end().size() - 3);
    for (const bool tied : {false, true}) {
        checkpoint.config["tie_word_embeddings"] = tied;
        checkpoint.write(folder.path());
        std::filesystem::rename(folder / "model.safetensors", folder / "body.safetensors");
        test::write_file(
            folder / "head.bin",
            test::pytorch_bytes(test::PickleText().raw("}").text("lm_head.weight").raw(object).raw("s").end()));
        test::write_file(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
        const auto file = checkpoint::Checkpoint::open(folder.path());
        REQUIRE(file->unreadable().contains("lm_head.weight"));
        CHECK_THROWS_MATCHES(model::inspect(*file), Error, IsError(ErrorCode::unsupported, part));
        CHECK_THROWS_MATCHES(model::Model::build(*file), Error, IsError(ErrorCode::unsupported, "lm_head.weight"));
    }
}

TEST_CASE("A head that is in the file is read although the configuration ties it", "[model][build]") {
    const auto golden = golden_model("llama");
    TinyCheckpoint tied = golden.checkpoint;
    tied.config["tie_word_embeddings"] = true;
    const auto one = golden.checkpoint.build(), other = tied.build();
    const at::Tensor hidden = one->forward(golden.batch).flatten(0, 1);
    CHECK(one->logits(hidden).equal(other->logits(hidden)));
    tied.tensors.erase("lm_head.weight");
    CHECK_FALSE(tied.build()->logits(hidden).equal(one->logits(hidden)));
}

TEST_CASE("A missing tensor is named with the shape that is expected", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("llama").checkpoint;
    checkpoint.tensors.erase("model.layers.1.mlp.up_proj.weight");
    refuses(
        checkpoint, ErrorCode::mismatch,
        "[model.layers.1.mlp.up_proj.weight] expected shape [27, 20] (intermediate_size; hidden_size); found no such");
    checkpoint = golden_model("llama").checkpoint;
    checkpoint.tensors.erase("model.embed_tokens.weight");
    refuses(checkpoint, ErrorCode::mismatch, "[model.embed_tokens.weight]");
}

TEST_CASE("A tensor of another shape is named with both shapes", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("llama").checkpoint;
    checkpoint.tensors["model.layers.0.self_attn.k_proj.weight"] = {24, 20};
    refuses(checkpoint, ErrorCode::mismatch,
            "[model.layers.0.self_attn.k_proj.weight] expected shape [12, 20] (num_key_value_heads * head_dim; "
            "hidden_size); found [24, 20] in model.safetensors");
    checkpoint = golden_model("gpt2").checkpoint;
    checkpoint.tensors["transformer.h.0.mlp.c_fc.weight"] = {72, 18};  // not transposed
    refuses(checkpoint, ErrorCode::mismatch, "expected shape [18, 72] (n_embd; n_inner); found [72, 18]");
    checkpoint = golden_model("bert").checkpoint;
    checkpoint.config["vocab_size"] = 48;
    refuses(checkpoint, ErrorCode::mismatch, "[bert.embeddings.word_embeddings.weight] expected shape [48, 20]");
}

TEST_CASE("Weights of integers are refused", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("llama").checkpoint;
    checkpoint.file_type = "I32";
    refuses(checkpoint, ErrorCode::unsupported, "found I32");
}

TEST_CASE("The number of layers must be the file's", "[model][build]") {
    refuses(llama_with("num_hidden_layers", 3), ErrorCode::mismatch,
            "found none of these 16: \"model.layers.2.input_layernorm.weight\"");
    refuses(llama_with("num_hidden_layers", 1), ErrorCode::mismatch, "num_hidden_layers");
    refuses(llama_with("num_hidden_layers", 4096), ErrorCode::mismatch, "than the file has tensors");
    refuses(llama_with("num_hidden_layers", 4097), ErrorCode::mismatch, "num_hidden_layers] expected at most 4096");
}

TEST_CASE("Layers that share their weights are as few as others", "[model][build]") {
    TinyCheckpoint checkpoint = golden_model("albert").checkpoint;
    checkpoint.config["num_hidden_layers"] = 5000;
    refuses(checkpoint, ErrorCode::mismatch, "num_hidden_layers] expected at most 4096");
    checkpoint.config["num_hidden_layers"] = 1000;
    checkpoint.config["inner_group_num"] = 5;
    refuses(checkpoint, ErrorCode::mismatch, "inner_group_num] expected at most 4096 layers in all");
}

TEST_CASE("Sizes that contradict each other are refused by their key", "[model][build]") {
    refuses(llama_with("num_attention_heads", 65537), ErrorCode::mismatch,
            "num_attention_heads] expected at most 65536");
    refuses(llama_with("num_key_value_heads", 3), ErrorCode::mismatch, "num_key_value_heads] expected a divisor of");
    refuses(llama_with("hidden_size", 0), ErrorCode::mismatch, "hidden_size] expected a whole number");
    refuses(llama_with("hidden_size", -20), ErrorCode::mismatch, "found -20");
    refuses(llama_with("hidden_size", 20.5), ErrorCode::mismatch, "found 20.5");
    refuses(llama_with("hidden_size", "20"), ErrorCode::mismatch, "found \"20\"");
    refuses(llama_with("hidden_size", 18446744073709551615ULL), ErrorCode::mismatch, "hidden_size");
    refuses(llama_with("head_dim", 2000000000), ErrorCode::mismatch, "head_dim] expected heads of at most 2^31");
    refuses(llama_with("head_dim", 7), ErrorCode::mismatch, "even number of rotated dimensions");
    refuses(llama_with("rms_norm_eps", 0), ErrorCode::mismatch, "rms_norm_eps] expected a number above 0");
    refuses(llama_with("hidden_act", "snake"), ErrorCode::unsupported, "found \"snake\"");
    refuses(llama_with("attention_bias", 1), ErrorCode::mismatch, "attention_bias] expected true or false");
    TinyCheckpoint gpt2 = golden_model("gpt2").checkpoint;
    gpt2.config["n_head"] = 4;
    refuses(gpt2, ErrorCode::mismatch, "n_head] expected a divisor of n_embd (18)");
    TinyCheckpoint qwen2 = golden_model("qwen2-windows").checkpoint;
    qwen2.config["layer_types"] = {"full_attention"};
    refuses(qwen2, ErrorCode::mismatch, "layer_types] expected a list of 3");
}

TEST_CASE("What is known not to be built is refused, not ignored", "[model][build]") {
    TinyCheckpoint bert = golden_model("bert").checkpoint;
    bert.config["position_embedding_type"] = "relative_key";
    refuses(bert, ErrorCode::unsupported, "position_embedding_type");
    TinyCheckpoint gpt2 = golden_model("gpt2").checkpoint;
    gpt2.config["add_cross_attention"] = true;
    refuses(gpt2, ErrorCode::unsupported, "add_cross_attention");
}

TEST_CASE("An unknown model type is named beside the known ones", "[model][build]") {
    refuses(llama_with("model_type", "perceptron"), ErrorCode::unsupported,
            "[config.json: model_type] expected one of headscope, gpt2, llama, qwen2, bert, ");
    refuses(llama_with("model_type", "perceptron"), ErrorCode::unsupported, "; found \"perceptron\"");
    TinyCheckpoint checkpoint = golden_model("llama").checkpoint;
    checkpoint.config.erase("model_type");
    refuses(checkpoint, ErrorCode::unsupported, "found none");
    const std::vector<std::string> known = model::known_families();
    CHECK(std::set<std::string>(known.begin(), known.end()).size() == known.size());
    CHECK(has(known, "roberta"));
}

TEST_CASE("Half precision files compute in float32 unless asked otherwise", "[model][build]") {
    const auto golden = golden_model("llama-tied-bf16-sharded");
    CHECK(golden.checkpoint.build()->forward(golden.batch).scalar_type() == at::kFloat);
    CHECK(golden.checkpoint.build(checkpoint::LoadAs::stored)->forward(golden.batch).scalar_type() == at::kBFloat16);
    const auto half = golden_model("llama-backbone-f16");
    CHECK(half.checkpoint.build(checkpoint::LoadAs::stored)->forward(half.batch).scalar_type() == at::kFloat);
}

TEST_CASE("A native configuration may omit sizes that its tensors give", "[model][build][native]") {
    for (const char* name : {"native-all-mixers", "native-standard-norms"}) {
        const auto golden = golden_model(name);
        TinyCheckpoint shorter = golden.checkpoint;
        for (const char* key : {"attention_bias", "qk_norm", "tie_word_embeddings", "mixers"})
            shorter.config.erase(key);
        shorter.config["mixers"] = {{"standard", nlohmann::json::object()}, {"mlp", nlohmann::json::object()}};
        const auto model = shorter.build();
        CHECK(model->report().left_over.empty());
        CHECK(model->forward(golden.batch).equal(golden.checkpoint.build()->forward(golden.batch)));
    }
}

TEST_CASE("Mixers of a native configuration are refused by their key", "[model][build][native]") {
    const TinyCheckpoint standard = golden_model("native-standard").checkpoint;
    const auto with = [&](const std::string& key, const nlohmann::json& value) {
        TinyCheckpoint changed = standard;
        changed.config[key] = value;
        return changed;
    };
    refuses(with("layers", {"standard", "aproximate"}), ErrorCode::unsupported,
            "[config.json: layers] expected of each layer one of \"standard\", \"mlp\", \"approximate\"");
    refuses(with("layers", {"standard", "aproximate"}), ErrorCode::unsupported, "found aproximate");
    refuses(with("layers", nlohmann::json::array()), ErrorCode::mismatch, "layers] expected the mixers of 2 layers");
    refuses(with("layers", {"standard"}), ErrorCode::mismatch, "layers] expected the mixers of 2 layers");
    refuses(with("mixers", {{"mlp", {{"window", 4}}}}), ErrorCode::mismatch, "mixers: mlp] expected no options");
    refuses(with("mixers", {{"standard", {{"normaliser", "entmax"}}}}), ErrorCode::mismatch,
            "mixers: standard: normaliser] expected one of \"softmax\", \"sparsemax\"");
    refuses(with("mixers", {{"standard", {{"window", 4}}}}), ErrorCode::mismatch,
            "mixers: standard] expected only \"normaliser\"");
    refuses(with("num_attention_heads", -4), ErrorCode::mismatch,
            "expected a whole number from 1 to 2^31 - 1; found -4");
}

namespace {

/// The tensor's last name is what is left of what is tied, as safetensors.torch.save_model keeps one name of several.
TinyCheckpoint with_lone(const std::string& golden, const std::string& name, const std::string& kept) {
    TinyCheckpoint checkpoint = golden_model(golden).checkpoint;
    checkpoint.rename(name, kept);
    return checkpoint;
}

void gives_the_same(const TinyCheckpoint& checkpoint, const std::string& golden, const std::string& note) {
    CAPTURE(golden, note);
    const auto expected = golden_model(golden);
    const auto model = checkpoint.build();
    const at::Tensor hidden = model->forward(expected.batch);
    const at::Tensor logits = model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
    const double bound = checkpoint.file_type == "BF16" ? test::kBfloatError : test::kFloatError;
    CHECK(test::largest_difference(logits, expected.logits, expected.batch.lengths) <
          bound * test::largest_value(expected.logits));
    const auto& notes = model->report().notes;
    CHECK(std::any_of(notes.begin(), notes.end(),
                      [&](const std::string& text) { return text.find(note) != std::string::npos; }));
    CHECK(model->report().left_over.empty());
}

}  // namespace

TEST_CASE("A tied model is read from the head where the file has its embedding under that name alone",
          "[model][build]") {
    const std::string note = "is not in the file: what shares its numbers is, lm_head.weight";
    gives_the_same(with_lone("gpt2", "transformer.wte.weight", "lm_head.weight"), "gpt2", note);
    gives_the_same(with_lone("llama-tied-bf16-sharded", "model.embed_tokens.weight", "lm_head.weight"),
                   "llama-tied-bf16-sharded", note);
    // Without the tie the embedding is missed.
    TinyCheckpoint untied = with_lone("gpt2", "transformer.wte.weight", "lm_head.weight");
    untied.config["tie_word_embeddings"] = false;
    refuses(untied, ErrorCode::mismatch, "[transformer.wte.weight] expected shape");
}

TEST_CASE("Prefixes of training frameworks are found, with a note", "[model][build]") {
    for (const char* golden : {"llama", "gpt2", "bert", "albert"}) {
        for (const std::string before : {"model.", "module.", "model._orig_mod."}) {
            TinyCheckpoint checkpoint = golden_model(golden).checkpoint;
            for (const auto& [name, shape] : golden_model(golden).checkpoint.tensors)
                checkpoint.rename(name, before + name);
            gives_the_same(checkpoint, golden, '"' + before + "\" stands before every name");
        }
    }
}

TEST_CASE("A deviation of fresh weights that is none is of no account where weights are read", "[model][build]") {
    for (const double range : {0.0, -1.0}) {
        CHECK(llama_with("initializer_range", range).build()->config().initializer_range == 0.02);
        CHECK_THROWS_MATCHES(model::inspect_config(llama_with("initializer_range", range).config.dump()), Error,
                             IsError(ErrorCode::mismatch, "initializer_range] expected a number above 0"));
    }
    refuses(llama_with("initializer_range", "x"), ErrorCode::mismatch, "initializer_range] expected a number");
}

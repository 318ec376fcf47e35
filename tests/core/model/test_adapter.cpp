// SPDX-License-Identifier: GPL-3.0-or-later
// LoRA adapters merged on opening, against the adapters run beside the modules (tests/golden/adapter_models.py).
#include "tests/catch_with_torch.h"

#include <fstream>

#include "core/checkpoint/adapter.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using checkpoint::Checkpoint;
using test::IsError;
using test::TemporaryFolder;
using test::TinyCheckpoint;

namespace {

/// The adapter of a golden case, its numbers by the names in its file.
TinyCheckpoint golden_adapter(const std::string& name) {
    std::ifstream file(HEADSCOPE_SOURCE_DIR "/tests/golden/models/" + name + ".json");
    const nlohmann::json adapter = nlohmann::json::parse(file).at("adapter");
    TinyCheckpoint made;
    made.config = adapter.at("config");
    made.tensors = adapter.at("tensors").get<decltype(made.tensors)>();
    return made;
}

void write_adapter(const TinyCheckpoint& adapter, const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    adapter.write(folder);
    std::filesystem::rename(folder / "config.json", folder / "adapter_config.json");
    std::filesystem::rename(folder / "model.safetensors", folder / "adapter_model.safetensors");
}

std::shared_ptr<const Checkpoint> write_and_open(const TemporaryFolder& folder, const TinyCheckpoint& base,
                                                 const TinyCheckpoint& adapter) {
    std::filesystem::create_directories(folder / "base");
    base.write(folder / "base");
    write_adapter(adapter, folder / "lora");
    return Checkpoint::open(folder / "base", folder / "lora");
}

}  // namespace

TEST_CASE("Merged adapters give the logits of adapters beside their modules", "[model][adapter][golden]") {
    for (const std::string name : {"adapter-llama", "adapter-gpt2", "adapter-neox"}) {
        INFO(name);
        const test::GoldenModel golden = test::golden_model(name);
        const auto run = [&](const Checkpoint& file) {
            const auto model = model::Model::build(file);
            const at::Tensor hidden = model->forward(golden.batch);
            return model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
        };
        const TemporaryFolder folder;
        const auto file = write_and_open(folder, golden.checkpoint, golden_adapter(name));
        const double bound = test::kFloatError * test::largest_value(golden.logits);
        CHECK(test::largest_difference(run(*file), golden.logits) < bound);
        // The adapter matters.
        CHECK(test::largest_difference(run(*Checkpoint::open(folder / "base")), golden.logits) > 1000 * bound);
    }
}

TEST_CASE("An adapter of an embedding that is the head too is refused", "[model][adapter]") {
    const TemporaryFolder folder;
    TinyCheckpoint base = test::golden_checkpoint("adapter-llama");
    base.config["tie_word_embeddings"] = true;
    const auto file = write_and_open(folder, base, golden_adapter("adapter-llama"));
    REQUIRE_THROWS_MATCHES(model::inspect(*file), Error,
                           IsError(ErrorCode::unsupported, "which is the head too (tie_word_embeddings)"));
}

TEST_CASE("fan_in_fan_out must be the family's where shapes leave it open", "[model][adapter]") {
    const TemporaryFolder folder;
    TinyCheckpoint adapter = golden_adapter("adapter-gpt2");
    adapter.config["fan_in_fan_out"] = false;
    const auto file = write_and_open(folder, test::golden_checkpoint("adapter-gpt2"), adapter);
    REQUIRE_THROWS_MATCHES(model::inspect(*file), Error,
                           IsError(ErrorCode::mismatch, "adapter_config.json: fan_in_fan_out] expected true"));
}

TEST_CASE("Quantized and renamed weights are reported before tensors that they leave missing", "[model][adapter]") {
    const TemporaryFolder folder;
    TinyCheckpoint base = test::golden_checkpoint("adapter-llama");
    const auto refused = [&](const std::string& part) {
        base.write(folder.path());
        REQUIRE_THROWS_MATCHES(model::inspect(*Checkpoint::open(folder.path())), Error,
                               IsError(ErrorCode::unsupported, part));
    };
    base.rename("model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.qweight");
    refused("found a quantised model: GPTQ");
    base.config["quantization_config"] = {{"quant_method", "awq"}, {"bits", 4}};
    refused("[config.json: quantization_config] expected weights that are not quantised; found a quantised model: AWQ");
}

TEST_CASE("Infinity in a configuration hides neither the family nor the tensors", "[model][adapter]") {
    const TemporaryFolder folder;
    const TinyCheckpoint base = test::golden_checkpoint("adapter-llama");
    base.write(folder.path());
    test::write_file(folder / "config.json", R"({"model_type": "rwkv", "time_step_limit": [0.0, Infinity]})");
    const auto file = Checkpoint::open(folder.path());
    REQUIRE(file->tensors().size() == base.tensors.size());
    REQUIRE_THROWS_MATCHES(model::inspect(*file), Error, IsError(ErrorCode::unsupported, "found \"rwkv\""));
    std::string text = base.config.dump();
    text.insert(1, R"("some_limit": -Infinity, "other": NaN, )");
    test::write_file(folder / "config.json", text);
    REQUIRE(model::inspect(*Checkpoint::open(folder.path())).config.family == "llama");
    nlohmann::json without = base.config;
    without.erase("rms_norm_eps");
    text = without.dump();
    text.insert(1, R"("rms_norm_eps": Infinity, )");
    test::write_file(folder / "config.json", text);
    REQUIRE_THROWS_MATCHES(model::inspect(*Checkpoint::open(folder.path())), Error,
                           IsError(ErrorCode::mismatch, "config.json: rms_norm_eps"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// LoRA adapters merged on opening, against the adapters run beside the modules (tests/oracle/models/adapter_models.py).
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <fstream>

#include "core/checkpoint/adapter.h"
#include "core/checkpoint/convert.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/trainable.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::Checkpoint;
using test::IsError;
using test::TemporaryFolder;
using test::TinyCheckpoint;

namespace {

/// The adapter of a golden case, its numbers by the names in its file.
TinyCheckpoint golden_adapter(const std::string& name) {
    std::ifstream file(test::golden_model_file(name));
    const nlohmann::json adapter = nlohmann::json::parse(file).at("adapter");
    TinyCheckpoint made;
    made.config = adapter.at("config");
    made.tensors = adapter.at("tensors").get<decltype(made.tensors)>();
    if (adapter.contains("numbers_of")) made.renamed = adapter.at("numbers_of").get<decltype(made.renamed)>();
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
    return model::open_checkpoint(folder / "base", folder / "lora");
}

at::Tensor logits_of(const Checkpoint& file, const test::GoldenModel& golden) {
    const auto model = model::Model::build(file);
    const at::Tensor hidden = model->forward(golden.batch);
    return model->logits(hidden.flatten(0, 1)).unflatten(0, {hidden.size(0), hidden.size(1)});
}

}  // namespace

TEST_CASE("Merged adapters give the logits of adapters beside their modules", "[model][adapter][golden]") {
    for (const std::string name : {"adapter-llama", "adapter-gpt2", "adapter-neox"}) {
        INFO(name);
        const test::GoldenModel golden = test::golden_model(name);
        const auto run = [&](const Checkpoint& file) { return logits_of(file, golden); };
        const TemporaryFolder folder;
        const auto file = write_and_open(folder, golden.checkpoint, golden_adapter(name));
        const double bound = test::kFloatError * test::largest_value(golden.logits);
        CHECK(test::largest_difference(run(*file), golden.logits) < bound);
        // The adapter matters.
        CHECK(test::largest_difference(run(*Checkpoint::open(folder / "base")), golden.logits) > 1000 * bound);
    }
}

TEST_CASE("Adapters that untie the head or resize the vocabulary give PEFT's logits", "[model][adapter][golden]") {
    for (const std::string name :
         {"head", "table", "table-head", "lora-head", "lora-table", "lora-table-head", "resized", "resized-table-head",
          "resized-lora-table", "resized-lora-head", "resized-untied", "smaller-untied-lora", "gpt2-lora-head"}) {
        INFO(name);
        const test::GoldenModel golden = test::golden_model("peft-" + name);
        const TemporaryFolder folder;
        const auto file = write_and_open(folder, golden.checkpoint, golden_adapter("peft-" + name));
        const double bound = test::kFloatError * test::largest_value(golden.logits);
        CHECK(test::largest_difference(logits_of(*file, golden), golden.logits) < bound);
        CHECK(model::Model::build(*file)->config().vocabulary == golden.logits.size(2));

        // The merged checkpoint is one that needs no adapter, and trains with the same weights.
        NoProgress silent;
        checkpoint::convert(*file, folder / "merged", checkpoint::LoadAs::float32, silent, Cancellation());
        const auto merged = Checkpoint::open(folder / "merged");
        CHECK(test::largest_difference(logits_of(*merged, golden), golden.logits) < bound);
        // Only a head that was neither adapted nor trained apart stays the table, as in PEFT.
        const bool tied = name == "resized";
        CHECK(merged->config().value("tie_word_embeddings", true) == tied);
        CHECK(file->adapter()->unties() == (!tied && name.find("untied") == std::string::npos));
        const auto trainable = model::Trainable::open(*merged, at::kFloat);
        CHECK(trainable->model().config().vocabulary == golden.logits.size(2));
    }
}

TEST_CASE("Adapters give equal bits in every residence", "[model][adapter][residence]") {
    for (const std::string name :
         {"adapter-llama", "adapter-gpt2", "adapter-neox", "peft-table-head", "peft-lora-head", "peft-lora-table",
          "peft-lora-table-head", "peft-resized-lora-table", "peft-smaller-untied-lora", "peft-gpt2-lora-head"}) {
        for (const char* type : {"F32", "BF16"}) {
            CAPTURE(name, type);
            TinyCheckpoint base = test::golden_checkpoint(name), adapter = golden_adapter(name);
            base.file_type = adapter.file_type = type;
            const TemporaryFolder folder;
            const auto file = write_and_open(folder, base, adapter);
            model::Batch batch = test::golden_batch(name), token;
            token.ids = batch.ids.narrow(0, 0, 1).narrow(1, 0, 1).contiguous();
            const auto results = [&](model::Residence residence) {
                const auto model = model::Model::build(*file, checkpoint::LoadAs::float32, nullptr, nullptr, residence);
                std::vector<at::Tensor> found;
                for (const model::Batch* one : {&batch, &token, &batch}) {
                    const at::Tensor hidden = model->forward(*one);
                    found.push_back(hidden);
                    found.push_back(model->logits(hidden.flatten(0, 1)));
                }
                CHECK(model->report().not_finite.empty());
                return found;
            };
            const std::vector<at::Tensor> expected = results(model::Residence::float32);
            for (const model::Residence residence : {model::Residence::file, model::Residence::stream}) {
                CAPTURE(model::name(residence));
                const std::vector<at::Tensor> found = results(residence);
                REQUIRE(found.size() == expected.size());
                for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i].equal(expected[i]));
            }
        }
    }
}

TEST_CASE("Sizes of weights count an adapter's tensors as stored", "[model][adapter]") {
    for (const std::string name : {"adapter-llama", "peft-lora-table", "peft-table-head"}) {
        CAPTURE(name);
        TinyCheckpoint base = test::golden_checkpoint(name);
        base.file_type = "BF16";
        const TemporaryFolder folder;
        const auto file = write_and_open(folder, base, golden_adapter(name));
        const checkpoint::Adapter& adapter = *file->adapter();
        double expected = 0, largest = 0;
        for (const auto& [tensor, info] : file->tensors()) {
            const checkpoint::TensorInfo* own = adapter.own(tensor);
            const auto update = static_cast<double>(adapter.update_bytes(tensor));
            const double bytes = static_cast<double>(own ? own->bytes : info.bytes) + update;
            expected += bytes;
            if (update > 0) largest = std::max(largest, bytes);
        }
        const model::WeightSizes sizes = model::inspect(*file).sizes;
        CHECK(sizes.stored == expected);
        CHECK(sizes.merged == largest);
        CHECK(sizes.stored > model::inspect(*Checkpoint::open(folder / "base")).sizes.stored);
    }
}

TEST_CASE("A resized table that stays the head has the numbers that PEFT loads last", "[model][adapter]") {
    const auto [has_table, has_head] = GENERATE(table<bool, bool>({{true, true}, {true, false}, {false, true}}));
    const test::GoldenModel golden = test::golden_model("peft-resized");
    TinyCheckpoint adapter = golden_adapter("peft-resized");
    const std::string of_table = "base_model.model.model.embed_tokens.weight",
                      of_head = "base_model.model.lm_head.weight";
    if (!has_table) adapter.tensors.erase(of_table);
    if (!has_head) adapter.tensors.erase(of_head);
    const TemporaryFolder folder;
    const auto file = write_and_open(folder, golden.checkpoint, adapter);
    CHECK_FALSE(file->adapter()->unties());
    CHECK(model::Model::build(*file)->config().tied_head);
    const double bound = test::kFloatError * test::largest_value(golden.logits);
    CHECK(test::largest_difference(logits_of(*file, golden), golden.logits) < bound);
}

TEST_CASE("Tied changes must be of both table and head", "[model][adapter]") {
    const TemporaryFolder folder;
    TinyCheckpoint adapter = golden_adapter("peft-lora-head");
    adapter.config["ensure_weight_tying"] = true;
    CHECK_THROWS_MATCHES(write_and_open(folder, test::golden_checkpoint("peft-lora-head"), adapter), Error,
                         IsError(ErrorCode::unsupported, "adapter_config.json: ensure_weight_tying"));
}

TEST_CASE("A table and a head of different vocabularies are refused", "[model][adapter]") {
    const TemporaryFolder folder;
    TinyCheckpoint adapter = golden_adapter("peft-resized-untied");
    adapter.tensors.at("base_model.model.lm_head.weight")[0] = 42;
    CHECK_THROWS_MATCHES(write_and_open(folder, test::golden_checkpoint("peft-resized-untied"), adapter), Error,
                         IsError(ErrorCode::mismatch, "expected one vocabulary"));
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
                               IsError(ErrorCode::mismatch, part));
    };
    base.rename("model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.qweight");
    refused("found none, and packed weights: GPTQ");
    base.config["quantization_config"] = {
        {"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}, {"version", "gemm"}, {"zero_point", true}};
    refused("q_proj.qweight\"] expected I32 (AWQ 4 bits); found F32");
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

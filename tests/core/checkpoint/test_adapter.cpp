// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "core/checkpoint/adapter.h"
#include "core/checkpoint/adapter/low_rank_update.h"
#include "core/checkpoint/save.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/checkpoint/tensor_summary.h"
#include "core/checkpoint/weights_in.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/checkpoint/adapter_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

const Shapes kBase{{"model.a.weight", {2, 3}}, {"model.a.bias", {2}}, {"model.b.weight", {2, 2}}};

/// A base of three tensors in `folder`/base and an adapter in `folder`/lora.
void write_both(const TemporaryFolder& folder, const Shapes& adapter,
                const std::string& keys = R"("r": 1, "lora_alpha": 2)", const std::string& type = "LORA") {
    fs::create_directories(folder / "base");
    write_file(folder / "base/model.safetensors", counting_safetensors(kBase));
    write_adapter(folder / "lora", adapter, keys, type);
}

std::shared_ptr<const Checkpoint> open_both(const TemporaryFolder& folder) {
    return Checkpoint::open(folder / "base", folder / "lora");
}

void refused(const TemporaryFolder& folder, ErrorCode code, const std::string& part) {
    REQUIRE_THROWS_MATCHES(open_both(folder), Error, IsError(code, part));
}

const Shapes kOnA{{"base_model.model.model.a.lora_A.weight", {1, 3}},
                  {"base_model.model.model.a.lora_B.weight", {2, 1}}};

}  // namespace

TEST_CASE("An adapter is merged into the weights that it names", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    Shapes adapter = kOnA;
    adapter.push_back({"base_model.model.model.a.base_layer.bias", {2}});
    write_both(folder, adapter,
               R"("r": 1, "lora_alpha": 2, "bias": "lora_only", "base_model_name_or_path": "some/base")");
    const auto plain = Checkpoint::open(folder / "base"), merged = open_both(folder);
    // A = [1, 2, 3], B = [4, 5], scale 2.
    const at::Tensor update = at::tensor({8.0F, 16.0F, 24.0F, 10.0F, 20.0F, 30.0F}).reshape({2, 3});
    REQUIRE(merged->load("model.a.weight").equal(plain->load("model.a.weight") + update));
    REQUIRE(merged->load("model.a.weight", LoadAs::bfloat16).scalar_type() == at::kBFloat16);
    REQUIRE(merged->load("model.a.bias").equal(at::tensor({6.0F, 7.0F})));
    REQUIRE(merged->load("model.b.weight").equal(plain->load("model.b.weight")));
    REQUIRE(merged->display_name() == "base + lora");
    REQUIRE(merged->fingerprint() != plain->fingerprint());
    const Adapter& said = *merged->adapter();
    REQUIRE(said.merged() == std::vector<std::string>{"model.a.weight"});
    REQUIRE(said.replaced() == std::vector<std::string>{"model.a.bias"});
    REQUIRE(said.base() == "some/base");
    REQUIRE(merged->notes().size() == 1);
    REQUIRE(summarise_tensor(*merged, "model.a.weight", 4, {}, {}).maximum == 36);

    NoProgress progress;
    convert(*merged, folder / "written", LoadAs::stored, progress, {});
    const auto written = Checkpoint::open(folder / "written");
    for (const auto& [name, info] : merged->tensors()) REQUIRE(written->load(name).equal(merged->load(name)));
}

TEST_CASE("LoRA's change of a row has the same bits alone, in a range and in the whole", "[checkpoint][adapter]") {
    constexpr std::int64_t kRows = 40, kColumns = 70'000, kRank = 3;  // blocks of 16 rows
    const auto numbers = [](std::int64_t rows, std::int64_t columns) {
        return (at::arange(rows * columns, at::kDouble) * 0.37).sin().to(at::kFloat).view({rows, columns});
    };
    for (const bool transposed : {false, true}) {
        CAPTURE(transposed);
        const at::Tensor a = numbers(kRank, transposed ? kRows : kColumns);
        const at::Tensor b = numbers(transposed ? kColumns : kRows, kRank);
        const LowRankUpdate update(a, b, 0.5, transposed);
        REQUIRE(update.rows() == kRows);
        REQUIRE(update.columns() == kColumns);
        REQUIRE(update.block_rows() == 16);
        const at::Tensor whole = at::zeros({kRows, kColumns}, at::kFloat);
        LowRankUpdate::Adder(update, at::kFloat).add(0, whole);
        const at::Tensor product = b.to(at::kDouble).mm(a.to(at::kDouble)) * 0.5;
        const at::Tensor expected = transposed ? product.t() : product;
        // Three products of numbers up to 1, their sums and the scale: each rounded once.
        CHECK((whole.to(at::kDouble) - expected).abs().max().item<double>() <= 8 * 1.2e-7 * 1.5);
        LowRankUpdate::Adder adder(update, at::kFloat);
        for (const std::int64_t row : {39, 0, 15, 16, 5}) {
            const at::Tensor one = at::zeros({1, kColumns}, at::kFloat);
            adder.add(row, one);
            CHECK(one.equal(whole.narrow(0, row, 1)));
        }
        const at::Tensor range = at::zeros({20, kColumns}, at::kFloat);
        adder.add(10, range);
        CHECK(range.equal(whole.narrow(0, 10, 20)));
    }
}

TEST_CASE("A table that is saved beside its adapter lies below it", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    write_both(folder, {{"base_model.model.model.a.base_layer.weight", {2, 3}},
                        {"base_model.model.model.a.lora_embedding_A", {1, 2}},
                        {"base_model.model.model.a.lora_embedding_B", {3, 1}}});
    // The table is 1 to 6, A = [7, 8], B = [9, 10, 11].
    const at::Tensor wanted = at::tensor({1.0F + 126, 2.0F + 140, 3.0F + 154, 4.0F + 144, 5.0F + 160, 6.0F + 176});
    const auto merged = open_both(folder);
    REQUIRE(merged->load("model.a.weight").flatten().equal(wanted));
    const at::Tensor ids = at::tensor({1, 0, 1}, at::kLong), rows = wanted.view({2, 3}).index_select(0, ids);
    const StoredTensor stored(*merged, "model.a.weight", Cancellation());
    REQUIRE(stored.is_made());
    REQUIRE(stored.rows(ids, at::kFloat).equal(rows));
    REQUIRE(stored.rows(1, 1, at::kFloat).equal(wanted.view({2, 3}).narrow(0, 1, 1)));
    REQUIRE(FileRows(merged, "model.a.weight", Cancellation()).rows(ids, at::kFloat).equal(rows));
}

TEST_CASE("Ranks and scales follow patterns, and rank-stabilised adapters their root", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    const Shapes rank_two{{"base_model.model.model.a.lora_A.weight", {2, 3}},
                          {"base_model.model.model.a.lora_B.weight", {2, 2}}};
    const auto first = [&](const std::string& keys) {
        write_both(folder, rank_two, keys);
        return open_both(folder)->load("model.a.weight")[0][0].item<double>();
    };
    // A = [[1, 2, 3], [4, 5, 6]], B = [[7, 8], [9, 10]]: (B A)[0][0] = 39, W[0][0] = 1.
    REQUIRE(first(R"("r": 2, "lora_alpha": 2)") == 40);
    REQUIRE(first(R"("r": 1, "lora_alpha": 2, "rank_pattern": {"a": 2})") == 40);
    REQUIRE(first(R"("r": 2, "lora_alpha": 9, "alpha_pattern": {"model.a": 4})") == 79);
    REQUIRE(first(R"("r": 2, "lora_alpha": 2, "use_rslora": true)") == Approx(1 + 39 * std::sqrt(2.0)));
    write_both(folder, rank_two, R"("r": 4, "lora_alpha": 2)");
    refused(folder, ErrorCode::mismatch, "lora: model.a] expected A [4, in] and B [out, 4]");
    write_both(folder, rank_two, R"("r": 2, "rank_pattern": {"a|b": 2})");
    refused(folder, ErrorCode::unsupported, "rank_pattern] expected plain names of modules");
}

TEST_CASE("The direction of a weight follows its shape, and fan_in_fan_out where that is open",
          "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    write_both(folder, {{"model.a.lora_A.weight", {1, 2}}, {"model.a.lora_B.weight", {3, 1}}});
    // A = [1, 2], B = [3, 4, 5]: W [in, out] gets 2 A^T B^T.
    REQUIRE(open_both(folder)->load("model.a.weight")[0][2].item<double>() == 3 + 10);
    REQUIRE_FALSE(open_both(folder)->adapter()->open_direction());
    for (const bool turned : {false, true}) {
        write_both(folder, {{"model.b.lora_A.weight", {1, 2}}, {"model.b.lora_B.weight", {2, 1}}},
                   std::string(R"("r": 1, "lora_alpha": 1, "fan_in_fan_out": )") + (turned ? "true" : "false"));
        // W = [[9, 10], [11, 12]], A = [1, 2], B = [3, 4].
        REQUIRE(open_both(folder)->load("model.b.weight")[0][1].item<double>() == 10 + (turned ? 4 : 6));
        REQUIRE(open_both(folder)->adapter()->open_direction() == turned);
    }
}

TEST_CASE("Names differ by wrappers around the model", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    for (const char* before : {"base_model.model.transformer.model.", "base_model.model.", "model."}) {
        const std::string stem = before + std::string("a.lora_");
        write_both(folder, {{stem + "A.weight", {1, 3}}, {stem + "B.weight", {2, 1}}});
        REQUIRE(open_both(folder)->adapter()->merged() == std::vector<std::string>{"model.a.weight"});
    }
}

TEST_CASE("Adapters that cannot be applied are refused by the reason", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    SECTION("kinds and keys") {
        write_both(folder, kOnA, "", "IA3");
        refused(folder, ErrorCode::unsupported, "adapter_config.json: peft_type] expected LORA; found IA3");
        for (const char* key : {"use_dora", "use_qalora", "lora_bias"}) {
            write_both(folder, kOnA, std::string(R"("r": 1, ")") + key + R"(": true)");
            refused(folder, ErrorCode::unsupported, std::string(key) + "] expected none");
        }
        write_both(folder, kOnA, R"("r": 1, "layer_replication": [[0, 1]])");
        refused(folder, ErrorCode::unsupported, "layer_replication");
        write_both(folder, kOnA, R"("r": 1, "init_lora_weights": "pissa")");
        refused(folder, ErrorCode::unsupported, "init_lora_weights");
        write_both(folder, kOnA, R"("r": 1, "bias": "some")");
        refused(folder, ErrorCode::unsupported, "bias");
        write_both(folder, kOnA, R"("r": 0)");
        refused(folder, ErrorCode::limit, "adapter_config.json: r]");
        write_both(folder, kOnA, R"("r": 1, "use_dora": false, "layer_replication": null, "target_parameters": [])");
        REQUIRE_NOTHROW(open_both(folder));
    }
    SECTION("tensors") {
        write_both(folder, {{"base_model.model.model.c.lora_A.weight", {1, 3}},
                            {"base_model.model.model.c.lora_B.weight", {2, 1}}});
        refused(folder, ErrorCode::mismatch, "lora: model.c] expected a tensor of that name in");
        write_both(folder, {{"base_model.model.model.a.lora_A.weight", {1, 3}}});
        refused(folder, ErrorCode::mismatch, "expected both lora_A and lora_B");
        write_both(folder, {{"base_model.model.model.a.lora_A.weight", {1, 5}},
                            {"base_model.model.model.a.lora_B.weight", {4, 1}}});
        refused(folder, ErrorCode::mismatch, "found [1, 5] and [4, 1]");
        write_both(folder, {{"base_model.model.model.b.weight", {3, 2}}});
        refused(folder, ErrorCode::mismatch, "is [2, 2]; found [3, 2]");
        write_both(folder, {{"base_model.model.model.a.lora_magnitude_vector.weight", {2}}});
        refused(folder, ErrorCode::unsupported, "DoRA");
        write_both(folder, {{"base_model.model.model.c.weight", {1}}});
        refused(folder, ErrorCode::mismatch, "model.c.weight] expected a tensor of that name");
    }
    SECTION("files") {
        write_both(folder, kOnA);
        fs::remove(folder / "lora/adapter_model.safetensors");
        refused(folder, ErrorCode::io, "expected adapter_model.safetensors or adapter_model.bin");
        fs::remove(folder / "lora/adapter_config.json");
        refused(folder, ErrorCode::io, "expected a folder with adapter_config.json");
    }
}

TEST_CASE("The head of a classifier is left out, with a note", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    Shapes adapter = kOnA;
    adapter.push_back({"base_model.model.score.weight", {4, 3}});
    write_both(folder, adapter, R"("r": 1, "task_type": "SEQ_CLS")");
    REQUIRE(open_both(folder)->adapter()->left_out() == std::vector<std::string>{"score.weight"});
}

TEST_CASE("Adapters are recognized, alone and next to a model", "[checkpoint][adapter]") {
    const TemporaryFolder folder;
    write_adapter(folder / "lora", kOnA);
    REQUIRE(adapter_alone(folder / "lora"));
    REQUIRE(adapter_text(folder / "lora") == "a LoRA adapter of \"some/base\"");
    REQUIRE(adapter_base(folder / "lora") == "some/base");
    REQUIRE_THROWS_MATCHES(
        Checkpoint::open(folder / "lora"), Error,
        IsError(ErrorCode::unsupported, "found a LoRA adapter of \"some/base\": open its base with"));
    // Its file can be listed.
    REQUIRE(Checkpoint::open(folder / "lora/adapter_model.safetensors")->tensors().size() == 2);
    write_adapter(folder / "prompts", {{"prompt_embeddings", {2, 3}}}, "", "PROMPT_TUNING");
    REQUIRE_THROWS_MATCHES(Checkpoint::open(folder / "prompts"), Error,
                           IsError(ErrorCode::unsupported, "found an adapter (PEFT, PROMPT_TUNING)"));
    write_file(folder / "lora/model.safetensors", counting_safetensors(kBase));
    REQUIRE_FALSE(adapter_alone(folder / "lora"));
    const auto beside = Checkpoint::open(folder / "lora");
    REQUIRE(beside->notes().size() == 1);
    REQUIRE(beside->notes().front().find("lies beside the weights and is not applied") != std::string::npos);
    REQUIRE(Checkpoint::open(folder / "lora", folder / "lora")->adapter()->merged().size() == 1);
    REQUIRE_FALSE(adapter_alone(folder / "none"));
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Experts wherever their weights are: those that a token chose, and stacks of experts as MLX names them.
#include "tests/catch_with_torch.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/save.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/model/load/residence_results.h"
#include "tests/core/model/recording_probe.h"
#include "tests/core/model/tiny_checkpoint.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::Residence;
using test::residences::results;

namespace {

/// The stored bytes of one expert's matrices in a layer.
std::vector<checkpoint::TensorInfo> matrices_of(const checkpoint::Checkpoint& file, std::int64_t layer,
                                                std::int64_t expert) {
    std::vector<checkpoint::TensorInfo> found;
    for (const auto& [name, info] : file.tensors()) {
        if (name.find("layers." + std::to_string(layer) + ".") == std::string::npos) continue;
        if (name.find(".experts." + std::to_string(expert) + ".") != std::string::npos)
            found.push_back(info);
        else if (name.find(".experts.") != std::string::npos && info.shape.size() == 3)
            found.push_back(checkpoint::entry_of(info, expert).value());
    }
    return found;
}

/// Experts by layer that a batch chooses.
std::map<std::int64_t, std::set<std::int64_t>> chosen_experts(model::Model& model, const model::Batch& batch) {
    test::RecordingProbe probe(false, {"expert_index"});
    model::ForwardOptions options;
    options.probe = &probe;
    options.beyond_positions = true;
    model.forward(batch, options);
    std::map<std::int64_t, std::set<std::int64_t>> chosen;
    for (const auto& [key, index] : probe.values) {
        const at::Tensor flat = index.flatten();
        for (std::int64_t i = 0; i < flat.numel(); ++i) chosen[key.second].insert(flat[i].item<std::int64_t>());
    }
    return chosen;
}

void write_folder(const nlohmann::json& config, const std::vector<checkpoint::OutputTensor>& tensors,
                  const std::filesystem::path& folder) {
    std::vector<checkpoint::TensorPlan> plans, ordered;
    for (const checkpoint::OutputTensor& tensor : tensors) plans.push_back(tensor.plan);
    const std::vector<std::size_t> order = checkpoint::file_order(plans);
    for (const std::size_t i : order) ordered.push_back(plans[i]);
    std::filesystem::create_directories(folder);
    OutputFile output(folder / "model.safetensors", {}, "weights");
    checkpoint::SafetensorsWriter writer(output, ordered, {});
    for (const std::size_t i : order)
        tensors[i].write([&](const void* bytes, std::size_t size) { writer.append(bytes, size); });
    writer.finish();
    output.publish();
    std::ofstream(folder / "config.json") << config.dump();
}

/// The same checkpoint with its experts' matrices in stacks, as MLX names them.
void write_stacks(const checkpoint::Checkpoint& file, const std::filesystem::path& folder) {
    const std::map<std::string, std::string> renamed{{"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};
    const std::string sign = ".experts.";
    std::map<std::string, std::map<int, at::Tensor>> stacks;
    std::vector<checkpoint::OutputTensor> tensors;
    for (const auto& [name, info] : file.tensors()) {
        const std::size_t at = name.find(sign);
        if (at == std::string::npos) {
            tensors.push_back(checkpoint::output_tensor(name, file.load(name)));
            continue;
        }
        const std::size_t number = at + sign.size(), part = name.find('.', number) + 1, end = name.find('.', part);
        const std::string own = name.substr(part, end - part);
        const std::string stack =
            name.substr(0, at) + ".switch_mlp." + (renamed.contains(own) ? renamed.at(own) : own) + name.substr(end);
        stacks[stack][std::stoi(name.substr(number))] = file.load(name);
    }
    for (const auto& [name, experts] : stacks) {
        std::vector<at::Tensor> each;
        for (const auto& [number, matrix] : experts) each.push_back(matrix);
        tensors.push_back(checkpoint::output_tensor(name, at::stack(each)));
    }
    write_folder(file.config(), tensors, folder);
}

/// The same checkpoint of gpt-oss or Llama 4 with the matrices of its experts as mlx-lm has them: gate and up apart,
/// each [experts, out, in].
void write_mlx_experts(const checkpoint::Checkpoint& file, const std::filesystem::path& folder) {
    const std::string both = "gate_up_proj", down = "down_proj";
    std::vector<checkpoint::OutputTensor> tensors;
    for (const auto& [name, info] : file.tensors()) {
        const at::Tensor numbers = file.load(name);
        const std::size_t experts = name.find(".experts.");
        if (experts == std::string::npos) {
            tensors.push_back(checkpoint::output_tensor(name, numbers));
            continue;
        }
        const bool is_bias = name.ends_with("_bias"), is_oss = name.find(".mlp.") != std::string::npos;
        const std::string stem = name.substr(0, experts) + ".experts.", end = is_bias ? ".bias" : ".weight";
        const at::Tensor rows = is_bias ? numbers : numbers.transpose(1, 2);
        if (name.find(both) == std::string::npos) {
            tensors.push_back(checkpoint::output_tensor(stem + down + end, rows));
            continue;
        }
        const at::Tensor halves = is_oss ? rows.unflatten(1, {-1, 2}).transpose(1, 2) : rows.unflatten(1, {2, -1});
        tensors.push_back(checkpoint::output_tensor(stem + "gate_proj" + end, halves.select(1, 0)));
        tensors.push_back(checkpoint::output_tensor(stem + "up_proj" + end, halves.select(1, 1)));
    }
    write_folder(file.config(), tensors, folder);
}

}  // namespace

TEST_CASE("Streaming reads the experts that a token chose, and no others", "[model][residence][experts]") {
    for (const char* name : {"mixtral", "mixtral-stacked-old", "qwen3-moe", "deepseek-v3", "gpt-oss", "llama4"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const test::TemporaryFolder folder;
        tiny.write(folder.path());
        model::Batch batch;
        batch.ids = test::golden_batch(name).ids.narrow(0, 0, 1).narrow(1, 0, 1).contiguous();
        const auto good = checkpoint::Checkpoint::open(folder.path());
        const auto whole = model::Model::build(*good);
        const std::vector<at::Tensor> expected = results(*whole, batch);
        // Every other expert becomes NaN, in place.
        std::size_t spoiled = 0;
        for (const auto& [layer, chosen] : chosen_experts(*whole, batch)) {
            for (std::int64_t expert = 0; expert < whole->config().experts; ++expert) {
                if (chosen.contains(expert)) continue;
                const auto matrices = matrices_of(*good, layer, expert);
                REQUIRE(matrices.size() >= 2);
                for (const checkpoint::TensorInfo& matrix : matrices) {
                    std::fstream file(good->files().at(matrix.file), std::ios::in | std::ios::out | std::ios::binary);
                    file.seekp(static_cast<std::streamoff>(matrix.begin));
                    file << std::string(matrix.bytes, '\xFF');
                    REQUIRE(file.good());
                    ++spoiled;
                }
            }
        }
        REQUIRE(spoiled > 0);
        const auto file = checkpoint::Checkpoint::open(folder.path());
        for (const Residence residence : model::kResidences) {
            CAPTURE(model::name(residence));
            const auto model = model::Model::build(*file, LoadAs::float32, nullptr, nullptr, residence);
            const std::vector<at::Tensor> found = results(*model, batch);
            for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], expected[i]));
            CHECK(model->report().not_finite.empty() == (residence == Residence::stream));
        }
    }
}

TEST_CASE("Experts in MLX's stacks compute what experts in tensors of their own do", "[model][residence][experts]") {
    for (const char* name : {"mixtral", "qwen3-moe", "deepseek-v3"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const test::TemporaryFolder folder, other;
        tiny.write(folder.path());
        const auto own = checkpoint::Checkpoint::open(folder.path());
        write_stacks(*own, other / "stacks");
        const auto stacks = checkpoint::Checkpoint::open(other / "stacks");
        CHECK(stacks->tensors().size() == own->tensors().size());
        const model::Batch batch = test::golden_batch(name);
        const auto usual = model::Model::build(*own);
        const std::vector<at::Tensor> expected = results(*usual, batch);
        for (const Residence residence : model::kResidences) {
            CAPTURE(model::name(residence));
            const auto model = model::Model::build(*stacks, LoadAs::float32, nullptr, nullptr, residence);
            CHECK(model->report().left_over == usual->report().left_over);
            const std::vector<at::Tensor> found = results(*model, batch);
            for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], expected[i]));
        }
    }
}

TEST_CASE("gpt-oss and Llama 4 compute the same with MLX's names of experts", "[model][residence][experts]") {
    for (const char* name : {"gpt-oss", "llama4", "llama4-images-old"}) {
        CAPTURE(name);
        test::TinyCheckpoint tiny = test::golden_checkpoint(name);
        tiny.file_type = "BF16";
        const test::TemporaryFolder folder, other;
        tiny.write(folder.path());
        const auto own = checkpoint::Checkpoint::open(folder.path());
        write_mlx_experts(*own, other / "mlx");
        const auto mlx = checkpoint::Checkpoint::open(other / "mlx");
        REQUIRE(mlx->tensors().size() == own->tensors().size());
        std::size_t joined = 0;
        for (const auto& [tensor, info] : own->tensors()) {
            CAPTURE(tensor);
            const checkpoint::TensorInfo& made = mlx->tensor(tensor);
            CHECK(made.shape == info.shape);
            CHECK(made.bytes == info.bytes);
            CHECK(checkpoint::stored_type(made) == "BF16");
            CHECK(at::equal(mlx->load(tensor), own->load(tensor)));
            if (info.shape.size() != 3) continue;
            ++joined;
            REQUIRE(checkpoint::entry_of(made, 1));
            CHECK(checkpoint::entry_of(made, 1)->bytes * static_cast<std::uint64_t>(info.shape[0]) == info.bytes);
        }
        CHECK(joined == 4);
        const model::Batch batch = test::golden_batch(name);
        const std::vector<at::Tensor> expected = results(*model::Model::build(*own), batch);
        const std::vector<at::Tensor> first = results(*model::Model::build(*mlx), batch);
        for (std::size_t i = 0; i < first.size(); ++i) {
            const double difference = (first[i] - expected[i]).abs().max().item<double>();
            CHECK(difference <= test::kFloatError * test::largest_value(expected[i]));
        }
        for (const Residence residence : {Residence::file, Residence::stream}) {
            CAPTURE(model::name(residence));
            const auto model = model::Model::build(*mlx, LoadAs::float32, nullptr, nullptr, residence);
            const std::vector<at::Tensor> found = results(*model, batch);
            for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], first[i]));
        }
    }
}

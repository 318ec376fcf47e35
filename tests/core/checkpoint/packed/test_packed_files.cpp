// SPDX-License-Identifier: GPL-3.0-or-later
// Quantized folders opened as checkpoints: names, shapes and numbers are those of the model.
#include "tests/catch_with_torch.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "core/base/io/sha256.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/checkpoint/weights_format.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/adapter_files.h"
#include "tests/core/checkpoint/packed/packed_files.h"

using namespace headscope;
using namespace headscope::checkpoint;

namespace {

std::string sha256_of(const at::Tensor& numbers) {
    return sha256_hex({static_cast<const char*>(numbers.const_data_ptr()), static_cast<std::size_t>(numbers.nbytes())});
}

/// A safetensors file of tensors of type, shape and bytes.
struct RawTensor {
    std::string name, type, shape, bytes;
};
std::string raw_safetensors(const std::vector<RawTensor>& tensors) {
    std::string header, data;
    for (const auto& [name, type, shape, bytes] : tensors) {
        const std::string end = std::to_string(data.size() + bytes.size());
        header += (header.empty() ? "" : ",") +
                  test::entry(name, type, shape, "[" + std::to_string(data.size()) + "," + end + "]");
        data += bytes;
    }
    return test::safetensors_bytes("{" + header + "}", data);
}

std::string error_of(const std::filesystem::path& folder) {
    try {
        Checkpoint::open(folder);
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("Stacks of gate and up that are MXFP4 become gpt-oss's experts", "[checkpoint][packed]") {
    constexpr std::int64_t experts = 2, size = 32;  // of both sides
    const std::string stem = "model.layers.0.mlp.experts.";
    std::vector<RawTensor> tensors;
    nlohmann::json settings{{"group_size", 64}, {"bits", 8}, {"mode", "affine"}};
    std::map<std::string, at::Tensor> expected;
    int seed = 0;
    for (const char* part : {"down_proj", "gate_proj", "up_proj"}) {
        ++seed;
        std::string codes(experts * size * 16, '\0'), scales(experts * size, '\0');
        for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(i * 37 + i / 16 + 11 * seed);
        for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<char>(120 + (i * 5 + seed) % 16);
        tensors.push_back({stem + part + ".scales", "U8", "[2,32,1]", scales});
        tensors.push_back({stem + part + ".weight", "U32", "[2,32,4]", codes});
        settings[stem + part] = {{"group_size", 32}, {"bits", 4}, {"mode", "mxfp4"}};
        const at::Tensor numbers = at::zeros({experts, size, size});
        for (std::int64_t i = 0; i < experts * size * size; ++i) {
            const auto byte = static_cast<unsigned char>(codes[static_cast<std::size_t>(i / 2)]);
            const unsigned code = i % 2 == 0 ? byte & 15U : byte >> 4U;
            constexpr double levels[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
            const int power = static_cast<unsigned char>(scales[static_cast<std::size_t>(i / size)]);
            numbers.view(-1)[i] = std::ldexp((code & 8U) != 0 ? -levels[code & 7U] : levels[code & 7U], power - 127);
        }
        expected[part] = numbers;
    }
    const test::TemporaryFolder folder;
    test::write_file(folder / "model.safetensors", raw_safetensors(tensors));
    test::write_file(folder / "config.json", nlohmann::json{{"quantization", settings}}.dump());
    const auto file = Checkpoint::open(folder.path());
    REQUIRE(file->quantization_fault() == nullptr);
    CHECK(file->packed_format() == "MXFP4");
    REQUIRE(file->tensors().size() == 2);
    // Columns of gate and up in turn.
    const at::Tensor both = file->load(stem + "gate_up_proj");
    REQUIRE(both.sizes() == at::IntArrayRef({experts, size, 2 * size}));
    for (std::int64_t column = 0; column < size; ++column) {
        CHECK(at::equal(both.select(2, 2 * column), expected["gate_proj"].select(1, column)));
        CHECK(at::equal(both.select(2, 2 * column + 1), expected["up_proj"].select(1, column)));
    }
    CHECK(at::equal(file->load(stem + "down_proj"), expected["down_proj"].transpose(1, 2)));
    for (const char* name : {"gate_up_proj", "down_proj"}) {
        const auto one = entry_of(file->tensor(stem + name), 1);
        REQUIRE(one);
        const at::Tensor into = at::zeros(one->packed->tensor->shape());
        StoredTensor(*file, *one, Cancellation()).copy_to(into);
        CHECK(at::equal(into.transpose(0, 1), file->load(stem + name).select(0, 1)));
    }
}

TEST_CASE("Stacks of experts that do not belong together are refused", "[checkpoint][packed]") {
    const std::string oss = "model.layers.0.mlp.experts.", llama = "model.layers.0.feed_forward.experts.";
    const auto found = [](const test::Shapes& shapes) {
        const test::TemporaryFolder folder;
        test::write_file(folder / "model.safetensors", test::counting_safetensors(shapes));
        return error_of(folder.path());
    };
    const auto has = [](const std::string& text, const char* piece) { return text.find(piece) != std::string::npos; };
    for (const std::string& stem : {oss, llama}) {
        const std::string gate = stem + "gate_proj.weight", up = stem + "up_proj.weight",
                          down = stem + "down_proj.weight";
        CHECK(found({{down, {2, 5, 3}}, {gate, {2, 3, 5}}, {up, {2, 3, 5}}}) == "none");
        CHECK(has(found({{down, {2, 5, 3}}, {gate, {2, 3, 5}}}),
                  "expected a stack of experts of shape [2, 3, 5], as gate_proj.weight; found none"));
        CHECK(has(found({{gate, {2, 3, 5}}, {up, {2, 3, 5}}}), "found none"));
        CHECK(has(found({{down, {2, 5, 3}}, {gate, {2, 3, 5}}, {up, {2, 5, 3}}}), "found [2, 5, 3]"));
        CHECK(has(found({{down, {2, 3, 5}}, {gate, {2, 3, 5}}, {up, {2, 3, 5}}}), "of shape [2, 5, 3]"));
        CHECK(has(found({{down, {2, 5, 3}}, {gate, {2, 3, 5}}, {stem + "gate_up_proj", {2, 5, 6}}, {up, {2, 3, 5}}}),
                  "found both"));
        // Matrices of one expert, and stacks of others, keep their names.
        CHECK(found({{gate, {3, 5}}}) == "none");
        CHECK(found({{"model.layers.0.experts.gate_proj.weight", {2, 3, 5}}}) == "none");
    }
    CHECK(has(found({{oss + "down_proj.weight", {2, 5, 3}},
                     {oss + "gate_proj.bias", {2, 3}},
                     {oss + "gate_proj.weight", {2, 3, 5}},
                     {oss + "up_proj.weight", {2, 3, 5}}}),
              "up_proj.bias"));
}

TEST_CASE("Quantized folders have the tensors of their models", "[checkpoint][packed]") {
    const auto golden = test::packed_expectations();
    REQUIRE(golden.size() > 30);
    for (const auto& [name, expected] : golden.items()) {
        CAPTURE(name);
        const auto file = Checkpoint::open(test::packed_golden / name);
        REQUIRE(file->quantization_fault() == nullptr);
        CHECK(weights_format(*file) == expected.at("format"));
        CHECK(!file->config().contains("quantization_config"));
        for (const auto& [tensor, entry] : expected.at("tensors").items()) {
            CAPTURE(tensor);
            const TensorInfo& info = file->tensor(tensor);
            REQUIRE(info.packed);
            const at::Tensor whole = file->load(tensor);
            CHECK(whole.sizes() == at::IntArrayRef(info.shape));
            CHECK(whole.scalar_type() == at::kFloat);
            const bool turned = info.packed->transposed;
            CHECK(sha256_of(turned ? whole.transpose(-1, -2) : whole) == entry.at("sha256"));
            CHECK(at::equal(file->load(tensor, LoadAs::bfloat16), whole.to(at::kBFloat16)));
            const StoredTensor stored(*file, tensor, Cancellation());
            CHECK(at::equal(stored.rows(1, info.shape[0] - 1, at::kFloat), whole.narrow(0, 1, info.shape[0] - 1)));
            for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
                const at::Tensor into = at::zeros(info.packed->tensor->shape(), type);
                stored.copy_to(into);
                CHECK(at::equal(turned ? into.transpose(-1, -2) : into, whole.to(type)));
            }
            if (info.shape.size() == 3) {
                for (std::int64_t i = 0; i < info.shape[0]; ++i) {
                    const auto one = entry_of(info, i);
                    REQUIRE(one);
                    CHECK(one->bytes * static_cast<std::uint64_t>(info.shape[0]) == info.bytes);
                    const at::Tensor into = at::zeros(one->packed->tensor->shape(), at::kFloat);
                    StoredTensor(*file, *one, Cancellation()).copy_to(into);
                    CHECK(at::equal(turned ? into.transpose(-1, -2) : into, whole.select(0, i)));
                }
                CHECK_FALSE(entry_of(info, info.shape[0]));
            }
            if (info.shape.size() != 2) continue;
            const at::Tensor ids = at::tensor({info.shape[0] - 1, std::int64_t{0}, info.shape[0] - 1}, at::kLong);
            CHECK(at::equal(stored.rows(ids, at::kFloat), whole.index_select(0, ids)));
        }
    }
}

TEST_CASE("LoRA is merged into quantized matrices, whole and by rows", "[checkpoint][packed][adapter]") {
    std::size_t merged = 0;
    const auto golden = test::packed_expectations();
    for (const auto& [name, expected] : golden.items()) {
        const auto plain = Checkpoint::open(test::packed_golden / name);
        for (const auto& [tensor, entry] : expected.at("tensors").items()) {
            const std::string end = ".weight";
            const std::vector<std::int64_t>& shape = plain->tensor(tensor).shape;
            if (shape.size() != 2 || !tensor.ends_with(end)) continue;
            CAPTURE(name, tensor);
            const int rows = static_cast<int>(shape[0]), columns = static_cast<int>(shape[1]);
            const std::string stem = tensor.substr(0, tensor.size() - end.size()) + ".lora_";
            const test::TemporaryFolder folder;
            test::write_adapter(folder / "lora", {{stem + "A.weight", {1, columns}}, {stem + "B.weight", {rows, 1}}},
                                R"("r": 1, "lora_alpha": 1)");
            const auto file = Checkpoint::open(test::packed_golden / name, folder / "lora");
            // Whole numbers: A = 1, 2, .., and B goes on.
            const at::Tensor numbers = at::arange(1, rows + columns + 1, at::kFloat);
            const at::Tensor update =
                numbers.narrow(0, columns, rows).view({rows, 1}).mm(numbers.narrow(0, 0, columns).view({1, columns}));
            const at::Tensor wanted = plain->load(tensor) + update;
            CHECK(at::equal(file->load(tensor), wanted));
            CHECK(at::equal(file->load(tensor, LoadAs::bfloat16), wanted.to(at::kBFloat16)));
            const StoredTensor stored(*file, tensor, Cancellation());
            REQUIRE(stored.is_made());
            CHECK(at::equal(stored.rows(1, rows - 1, at::kFloat), wanted.narrow(0, 1, rows - 1)));
            const at::Tensor ids = at::tensor({shape[0] - 1, std::int64_t{0}, shape[0] - 1}, at::kLong);
            CHECK(at::equal(stored.rows(ids, at::kFloat), wanted.index_select(0, ids)));
            if (!stored.is_transposed()) {
                const at::Tensor into = at::zeros({rows, columns}, at::kFloat);
                stored.copy_to(into);
                CHECK(at::equal(into, wanted));
            }
            ++merged;
        }
    }
    CHECK(merged > 10);
}

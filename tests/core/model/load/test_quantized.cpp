// SPDX-License-Identifier: GPL-3.0-or-later
// Models in quantized files: wherever weights are, and written out as float32, they compute the same bits.
#include "tests/catch_with_torch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/remainder.h>

#include <random>

#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/save.h"
#include "core/checkpoint/weights_format.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/gguf/gguf_builder.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::Checkpoint;
using checkpoint::LoadAs;
using model::Residence;

namespace {

namespace fs = std::filesystem;

std::vector<at::Tensor> results(const Checkpoint& file, Residence residence, std::int64_t tokens = 12) {
    const auto model = model::Model::build(file, LoadAs::float32, nullptr, nullptr, residence);
    model::Batch batch;
    batch.ids = at::remainder(at::arange(0, 5 * tokens, 5, at::kLong), model->config().vocabulary).unsqueeze(0);
    model::ForwardOptions options;
    options.beyond_positions = true;
    std::vector<at::Tensor> found{model->forward(batch, options)};
    if (model->has_head()) found.push_back(model->logits(found[0].flatten(0, 1)));
    CHECK(model->report().not_finite.empty());
    return found;
}

void check_near(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double largest = expected[i].abs().max().item<double>();
        CHECK(test::largest_difference(found[i], expected[i]) < test::kFloatError * std::max(1.0, largest));
    }
}

void check_same(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i], expected[i]));
}

/// In all residences, and converted.
void check(const fs::path& path) {
    const auto file = Checkpoint::open(path);
    const std::vector<at::Tensor> expected = results(*file, Residence::float32);
    CHECK(expected[0].isfinite().all().item<bool>());
    for (const Residence residence : {Residence::file, Residence::stream})
        check_same(results(*file, residence), expected);
    // Few tokens multiply the blocks themselves.
    for (const std::int64_t tokens : {1, 3}) {
        const std::vector<at::Tensor> few = results(*file, Residence::float32, tokens);
        for (const Residence residence : {Residence::file, Residence::stream})
            check_near(results(*file, residence, tokens), few);
    }
    const test::TemporaryFolder folder;
    NoProgress progress;
    checkpoint::convert(*file, folder / "converted", LoadAs::float32, progress, Cancellation());
    const auto converted = Checkpoint::open(folder / "converted");
    CHECK(converted->packed_format().empty());
    CHECK(checkpoint::weights_format(*converted) == "float32");
    const std::vector<at::Tensor> found = results(*converted, Residence::float32);
    const auto& tensors = file->tensors();
    const bool turned = std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) {
        return entry.second.packed && entry.second.packed->transposed;
    });
    if (!turned) return check_same(found, expected);
    check_near(found, expected);  // products of matrices that lie the other way round are rounded otherwise
}

/// A Llama of two layers, its matrices in blocks of 32 values with random bytes and scales of 2^-6 (or `half_scale`).
std::string llama_in_blocks(std::uint32_t type, std::size_t block_bytes, std::uint16_t half_scale = 0x2400) {
    constexpr std::uint64_t kHidden = 64, kInner = 96, kWords = 40;
    test::GgufBuilder file;
    file.key("general.architecture", "llama").key("llama.block_count", std::uint32_t{2});
    file.key("llama.context_length", std::uint32_t{16}).key("llama.embedding_length", std::uint32_t{kHidden});
    file.key("llama.feed_forward_length", std::uint32_t{kInner}).key("llama.attention.head_count", std::uint32_t{4});
    file.key("llama.attention.head_count_kv", std::uint32_t{2});
    std::mt19937 random(7);
    const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows) {
        std::string data(columns * rows / 32 * block_bytes, '\0');
        for (char& byte : data) byte = static_cast<char>(random());
        const std::string scale = type == 39 ? std::string(1, '\x78') : test::little(half_scale);
        for (std::size_t block = 0; block < data.size(); block += block_bytes) data.replace(block, scale.size(), scale);
        file.tensor(name, {columns, rows}, type, data);
    };
    const auto gain = [&](const std::string& name) {
        std::string data;
        for (std::uint64_t i = 0; i < kHidden; ++i) data += test::little(1.0F + 0.01F * static_cast<float>(i));
        file.tensor(name, {kHidden}, 0, data);
    };
    matrix("token_embd.weight", kHidden, kWords);
    matrix("output.weight", kHidden, kWords);
    gain("output_norm.weight");
    for (const char* layer : {"blk.0.", "blk.1."}) {
        const std::string stem = layer;
        gain(stem + "attn_norm.weight");
        gain(stem + "ffn_norm.weight");
        matrix(stem + "attn_q.weight", kHidden, kHidden);
        matrix(stem + "attn_k.weight", kHidden, kHidden / 2);
        matrix(stem + "attn_v.weight", kHidden, kHidden / 2);
        matrix(stem + "attn_output.weight", kHidden, kHidden);
        matrix(stem + "ffn_gate.weight", kHidden, kInner);
        matrix(stem + "ffn_up.weight", kHidden, kInner);
        matrix(stem + "ffn_down.weight", kInner, kHidden);
    }
    return file.bytes();
}

}  // namespace

TEST_CASE("GGUF files of every golden architecture run alike wherever their weights are", "[model][quantized]") {
    std::size_t compared = 0;
    for (const auto& entry : fs::directory_iterator(test::golden_file("gguf"))) {
        CAPTURE(entry.path().filename());
        check(entry.path());
        const auto file = Checkpoint::open(entry.path());
        for (const auto& [name, info] : file->tensors()) {
            CAPTURE(name);
            if (info.shape.size() != 3 || name.find("experts") == std::string::npos) continue;
            const auto one = checkpoint::entry_of(info, 1);
            REQUIRE(one);  // an expert is read by itself
            CHECK(one->bytes * static_cast<std::uint64_t>(info.shape[0]) == info.bytes);
        }
        ++compared;
    }
    CHECK(compared == 11);
}

TEST_CASE("Blocks of GGUF run alike wherever they are", "[model][quantized]") {
    const test::TemporaryFolder folder;
    struct Type {
        std::uint32_t number;
        std::size_t bytes;
        const char* format;
    };
    for (const Type& type : {Type{2, 18, "GGUF Q4_0"}, Type{8, 34, "GGUF Q8_0"}, Type{39, 17, "GGUF MXFP4"}}) {
        CAPTURE(type.format);
        const fs::path path = folder / "model.gguf";
        test::write_file(path, llama_in_blocks(type.number, type.bytes));
        const auto file = Checkpoint::open(path);
        CHECK(checkpoint::weights_format(*file) == type.format);
        const auto inspection = model::inspect(*file);
        const double stored = inspection.sizes.stored;
        CHECK(stored < static_cast<double>(inspection.parameters) * (type.bytes == 34 ? 1.2 : 0.7));
        check(path);
    }
    // Few tokens do not expand the matrices, but the program counts on the same numbers: the blocks are used.
    const auto file = Checkpoint::open(folder.path());
    const auto few = results(*file, Residence::file, 1), expanded = results(*file, Residence::float32, 1);
    CHECK_FALSE(at::equal(few[0], expanded[0]));
    // The folder that holds just this file.
    CHECK(Checkpoint::open(folder.path())->packed_format() == "GGUF MXFP4");
}

TEST_CASE("Quantized numbers that the type asked for cannot hold are refused", "[model][quantized]") {
    const test::TemporaryFolder folder;
    test::write_file(folder / "model.gguf", llama_in_blocks(8, 34, 0x7800));  // Q8_0, scales of 2^15
    const auto file = Checkpoint::open(folder / "model.gguf");
    NoProgress progress;
    CHECK_THROWS_MATCHES(checkpoint::convert(*file, folder / "half", LoadAs::float16, progress, Cancellation()), Error,
                         test::IsError(ErrorCode::limit, "expected values that F16 can hold"));
    checkpoint::convert(*file, folder / "wide", LoadAs::bfloat16, progress, Cancellation());
    CHECK(checkpoint::weights_format(*Checkpoint::open(folder / "wide")) == "bfloat16");
}

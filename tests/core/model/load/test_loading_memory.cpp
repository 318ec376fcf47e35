// SPDX-License-Identifier: GPL-3.0-or-later
// Memory that reading weights takes from the heap.
#include "tests/catch_with_torch.h"

#include <malloc.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/machine/memory_room.h"
#include "core/model/load/memory.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "tests/core/base/bytes_read.h"
#include "tests/core/base/cached_pages.h"
#include "tests/core/checkpoint/adapter_files.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::Residence;

namespace {

/// A checkpoint in bfloat16 whose weights are a hole in its file.
class HollowCheckpoint {
public:
    std::int64_t bytes = 0;

    void add(const std::string& name, const std::vector<std::int64_t>& shape) {
        std::int64_t size = 2;
        for (const std::int64_t one : shape) size *= one;
        header_[name + ".weight"] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes, bytes + size}}};
        bytes += size;
    }
    void write(const std::filesystem::path& folder, const nlohmann::json& config) const {
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "config.json") << config.dump();
        const std::string begin = test::safetensors_bytes(header_.dump(), "");
        test::write_file(folder / "model.safetensors", begin);
        std::filesystem::resize_file(folder / "model.safetensors", begin.size() + static_cast<std::uintmax_t>(bytes));
    }

private:
    nlohmann::json header_;
};

/// Llama's with four heads of 64 that share nothing, without biases.
nlohmann::json config_of_layers(std::int64_t hidden, std::int64_t inner, std::int64_t layers) {
    nlohmann::json config = test::golden_checkpoint("llama").config;
    config.update({{"hidden_size", hidden},
                   {"intermediate_size", inner},
                   {"num_hidden_layers", layers},
                   {"num_attention_heads", 4},
                   {"num_key_value_heads", 4},
                   {"head_dim", 64},
                   {"attention_bias", false},
                   {"mlp_bias", false}});
    return config;
}

}  // namespace

TEST_CASE("Loading in float32 takes the memory of the weights and no more", "[model][residence][memory]") {
    // A mixture whose experts are tensors of their own: 96 matrices of 512 kB in float32.
    constexpr std::int64_t kHidden = 128, kInner = 1024, kLayers = 4, kExperts = 8;
    nlohmann::json config = test::golden_checkpoint("mixtral").config;
    config.update({{"hidden_size", kHidden},
                   {"intermediate_size", kInner},
                   {"num_hidden_layers", kLayers},
                   {"num_local_experts", kExperts},
                   {"num_attention_heads", 2},
                   {"num_key_value_heads", 2},
                   {"head_dim", 64}});
    const std::int64_t words = config.at("vocab_size");
    HollowCheckpoint hollow;
    hollow.add("model.embed_tokens", {words, kHidden});
    hollow.add("model.norm", {kHidden});
    hollow.add("lm_head", {words, kHidden});
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"q", "k", "v", "o"})
            hollow.add(stem + "self_attn." + name + "_proj", {kHidden, kHidden});
        for (const char* name : {"input", "post_attention"}) hollow.add(stem + name + "_layernorm", {kHidden});
        hollow.add(stem + "block_sparse_moe.gate", {kExperts, kHidden});
        for (std::int64_t expert = 0; expert < kExperts; ++expert) {
            const std::string own = stem + "block_sparse_moe.experts." + std::to_string(expert) + ".";
            for (const char* name : {"w1", "w3"}) hollow.add(own + name, {kInner, kHidden});
            hollow.add(own + "w2", {kHidden, kInner});
        }
    }
    const test::TemporaryFolder folder;
    hollow.write(folder.path(), config);
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const double planned = model::resident_bytes(model::inspect(*file), LoadAs::float32, Residence::float32);
    REQUIRE(planned == Approx(2.0 * static_cast<double>(hollow.bytes)));
    // As the program has it. Memory that is freed between weights that stay would be a gap in the heap.
    REQUIRE(::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 1);
    REQUIRE(::mallopt(M_TRIM_THRESHOLD, 1 << 30) == 1);
    const auto before = ::mallinfo2();
    const auto model = model::Model::build(*file);
    const auto after = ::mallinfo2();
    CHECK(model->parameters() * 2 == hollow.bytes);
    const double taken =
        static_cast<double>(after.arena + after.hblkhd) - static_cast<double>(before.arena + before.hblkhd);
    CHECK(taken <= 1.05 * planned + 4e6);
}

TEST_CASE("A checkpoint of 8B shape is opened and inspected without its weights", "[model]") {
    constexpr std::int64_t kHidden = 4096, kInner = 14'336, kKeys = 1024, kWords = 128'256, kLayers = 32;
    const nlohmann::json config{{"model_type", "llama"},           {"vocab_size", kWords},
                                {"hidden_size", kHidden},          {"intermediate_size", kInner},
                                {"num_hidden_layers", kLayers},    {"num_attention_heads", 32},
                                {"num_key_value_heads", 8},        {"head_dim", 128},
                                {"max_position_embeddings", 8192}, {"tie_word_embeddings", false},
                                {"rope_theta", 500000.0},          {"rms_norm_eps", 1e-5}};
    HollowCheckpoint hollow;
    hollow.add("model.embed_tokens", {kWords, kHidden});
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"q", "o"}) hollow.add(stem + "self_attn." + name + "_proj", {kHidden, kHidden});
        for (const char* name : {"k", "v"}) hollow.add(stem + "self_attn." + name + "_proj", {kKeys, kHidden});
        for (const char* name : {"gate", "up"}) hollow.add(stem + "mlp." + name + "_proj", {kInner, kHidden});
        hollow.add(stem + "mlp.down_proj", {kHidden, kInner});
        for (const char* name : {"input", "post_attention"}) hollow.add(stem + name + "_layernorm", {kHidden});
    }
    hollow.add("model.norm", {kHidden});
    hollow.add("lm_head", {kWords, kHidden});
    REQUIRE(hollow.bytes > 16'000'000'000);
    const test::TemporaryFolder folder;
    hollow.write(folder.path(), config);
    const std::uint64_t before = test::bytes_read();
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const model::Inspection inspection = model::inspect(*file);
    CHECK(inspection.parameters * 2 == hollow.bytes);
    CHECK(inspection.sizes.stored == static_cast<double>(hollow.bytes));
    CHECK(test::bytes_read() - before < 200'000);
}

TEST_CASE("Streamed files larger than half of the free memory leave the system's cache", "[model][residence][memory]") {
    CHECK(model::streams_uncached(51, 100));
    CHECK_FALSE(model::streams_uncached(50, 100));
    CHECK_FALSE(model::streams_uncached(1e15, 0));  // not known

    constexpr std::int64_t kHidden = 256, kInner = 2048, kLayers = 4;
    const nlohmann::json config = config_of_layers(kHidden, kInner, kLayers);
    const std::int64_t words = config.at("vocab_size");
    const auto pages_left = [&](std::int64_t unused) {
        HollowCheckpoint hollow;
        hollow.add("model.embed_tokens", {words, kHidden});
        hollow.add("model.norm", {kHidden});
        hollow.add("lm_head", {words, kHidden});
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            const std::string stem = "model.layers." + std::to_string(layer) + ".";
            for (const char* name : {"input", "post_attention"}) hollow.add(stem + name + "_layernorm", {kHidden});
            for (const char* name : {"q", "k", "v", "o"})
                hollow.add(stem + "self_attn." + name + "_proj", {kHidden, kHidden});
            for (const char* name : {"gate", "up"}) hollow.add(stem + "mlp." + name + "_proj", {kInner, kHidden});
            hollow.add(stem + "mlp.down_proj", {kHidden, kInner});
        }
        const auto used = static_cast<std::size_t>(hollow.bytes);
        if (unused > 0) hollow.add("unused", {unused});
        const test::TemporaryFolder folder;
        hollow.write(folder.path(), config);
        const auto file = checkpoint::Checkpoint::open(folder.path());
        const auto model = model::Model::build(*file, LoadAs::float32, nullptr, nullptr, Residence::stream);
        model->forward(test::golden_batch("llama"));
        const std::size_t left = test::cached_pages(folder / "model.safetensors", used);
        if (!test::drop_from_cache(folder / "model.safetensors", used)) return std::size_t{0};
        return left;
    };
    // 14 MB of layers. A hole that no layer needs makes the file twice as large as the free memory.
    const std::size_t all = pages_left(0);
    if (all < 2000) {
        WARN("the file system of temporary files keeps no pages, or all");
        return;
    }
    CHECK(pages_left(static_cast<std::int64_t>(memory_room())) < all / 4);
}

TEST_CASE("Matrices that LoRA changes stay in memory as the file has them", "[model][residence][memory][adapter]") {
    constexpr int kHidden = 256, kInner = 2048, kLayers = 4;
    const nlohmann::json config = config_of_layers(kHidden, kInner, kLayers);
    const std::int64_t words = config.at("vocab_size");
    HollowCheckpoint hollow;
    test::Shapes adapter;
    hollow.add("model.embed_tokens", {words, kHidden});
    hollow.add("model.norm", {kHidden});
    hollow.add("lm_head", {words, kHidden});
    for (int layer = 0; layer < kLayers; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"input", "post_attention"}) hollow.add(stem + name + "_layernorm", {kHidden});
        const auto matrix = [&](const std::string& name, int out, int in) {
            hollow.add(stem + name, {out, in});
            adapter.push_back({"base_model.model." + stem + name + ".lora_A.weight", {1, in}});
            adapter.push_back({"base_model.model." + stem + name + ".lora_B.weight", {out, 1}});
        };
        for (const char* name : {"q", "k", "v", "o"})
            matrix("self_attn." + std::string(name) + "_proj", kHidden, kHidden);
        for (const char* name : {"gate", "up"}) matrix("mlp." + std::string(name) + "_proj", kInner, kHidden);
        matrix("mlp.down_proj", kHidden, kInner);
    }
    const test::TemporaryFolder folder;
    hollow.write(folder / "base", config);
    test::write_adapter(folder / "lora", adapter);
    const auto file = model::open_checkpoint(folder / "base", folder / "lora");
    const double stored = model::inspect(*file).sizes.stored;
    REQUIRE(stored > static_cast<double>(hollow.bytes));
    REQUIRE(stored < 1.05 * static_cast<double>(hollow.bytes));
    for (const Residence residence : {Residence::file, Residence::stream}) {
        CAPTURE(model::name(residence));
        const auto before = ::mallinfo2();
        const auto model = model::Model::build(*file, LoadAs::float32, nullptr, nullptr, residence);
        const auto after = ::mallinfo2();
        const double taken =
            static_cast<double>(after.uordblks + after.hblkhd) - static_cast<double>(before.uordblks + before.hblkhd);
        // In float32 they would take twice as much, 29 MB.
        CHECK(taken <= (residence == Residence::file ? 1.05 * stored : 0.0) + 2e6);
    }
}

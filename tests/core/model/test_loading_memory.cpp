// SPDX-License-Identifier: GPL-3.0-or-later
// Memory that reading weights takes from the heap.
#include "tests/catch_with_torch.h"

#include <malloc.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "tests/core/checkpoint/hostile.h"
#include "tests/core/model/tiny_checkpoint.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using checkpoint::LoadAs;
using model::Residence;

TEST_CASE("Loading in float32 takes the memory of the weights and no more", "[model][residence][memory]") {
    // A mixture whose experts are tensors of their own: 96 matrices of 512 kB in float32.
    constexpr std::int64_t kHidden = 128, kInner = 1024, kLayers = 4, kExperts = 8;
    nlohmann::json config = test::golden_checkpoint("mixtral").config, header;
    config.update({{"hidden_size", kHidden},
                   {"intermediate_size", kInner},
                   {"num_hidden_layers", kLayers},
                   {"num_local_experts", kExperts},
                   {"num_attention_heads", 2},
                   {"num_key_value_heads", 2},
                   {"head_dim", 64}});
    const std::int64_t words = config.at("vocab_size");
    std::int64_t bytes = 0;
    const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
        std::int64_t size = 2;
        for (const std::int64_t one : shape) size *= one;
        header[name + ".weight"] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes, bytes + size}}};
        bytes += size;
    };
    add("model.embed_tokens", {words, kHidden});
    add("model.norm", {kHidden});
    add("lm_head", {words, kHidden});
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* name : {"q", "k", "v", "o"}) add(stem + "self_attn." + name + "_proj", {kHidden, kHidden});
        for (const char* name : {"input", "post_attention"}) add(stem + name + "_layernorm", {kHidden});
        add(stem + "block_sparse_moe.gate", {kExperts, kHidden});
        for (std::int64_t expert = 0; expert < kExperts; ++expert) {
            const std::string own = stem + "block_sparse_moe.experts." + std::to_string(expert) + ".";
            for (const char* name : {"w1", "w3"}) add(own + name, {kInner, kHidden});
            add(own + "w2", {kHidden, kInner});
        }
    }
    const test::TemporaryFolder folder;
    std::ofstream(folder / "config.json") << config.dump();
    const std::string begin = test::safetensors_bytes(header.dump(), "");
    test::write_file(folder / "model.safetensors", begin);  // the weights are a hole
    std::filesystem::resize_file(folder / "model.safetensors", begin.size() + static_cast<std::uintmax_t>(bytes));
    const auto file = checkpoint::Checkpoint::open(folder.path());
    const double planned = model::resident_bytes(model::inspect(*file), LoadAs::float32, Residence::float32);
    REQUIRE(planned == Approx(2.0 * static_cast<double>(bytes)));
    // As the program has it. Memory that is freed between weights that stay would be a gap in the heap.
    REQUIRE(::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 1);
    REQUIRE(::mallopt(M_TRIM_THRESHOLD, 1 << 30) == 1);
    const auto before = ::mallinfo2();
    const auto model = model::Model::build(*file);
    const auto after = ::mallinfo2();
    CHECK(model->parameters() * 2 == bytes);
    const double taken =
        static_cast<double>(after.arena + after.hblkhd) - static_cast<double>(before.arena + before.hblkhd);
    CHECK(taken <= 1.05 * planned + 4e6);
}

// SPDX-License-Identifier: GPL-3.0-or-later
// Models in GGUF files, written by the package gguf (tests/oracle/generate/gguf_files.py), under transformers' names.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "core/base/io/sha256.h"
#include "core/checkpoint/gguf/gguf.h"
#include "core/checkpoint/packed/packed_source.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/gguf/gguf_builder.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;

namespace {

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kNvfp4 = 40;

struct Loaded {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::span<const std::byte>> parts;
};

Loaded load(const GgufModel& model, const TensorInfo& tensor) {
    Loaded loaded;
    for (const PackedPart& part : tensor.packed->tensor->parts()) {
        const gguf::Tensor& stored = model.stored.at(part.tensor);
        CHECK(part.bytes == stored.bytes);
        loaded.bytes.emplace_back(static_cast<std::size_t>(stored.bytes));
        model.files[stored.file].read(stored.begin, loaded.bytes.back().data(), loaded.bytes.back().size());
    }
    for (const auto& one : loaded.bytes) loaded.parts.emplace_back(one);
    return loaded;
}

/// All numbers in the model's order.
std::vector<float> numbers_of(const GgufModel& model, const std::string& name) {
    const TensorInfo& tensor = model.tensors.at(name);
    const Loaded loaded = load(model, tensor);
    const auto rows = tensor.packed->tensor->rows(), columns = tensor.packed->tensor->columns();
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    tensor.packed->tensor->check(loaded.parts);
    tensor.packed->tensor->unpack(loaded.parts, 0, rows, numbers.data());
    // A part of the rows has the same numbers.
    std::vector<float> some(static_cast<std::size_t>((rows - rows / 3) * columns));
    tensor.packed->tensor->unpack(loaded.parts, rows / 3, rows - rows / 3, some.data());
    CHECK(std::memcmp(some.data(), numbers.data() + rows / 3 * columns, some.size() * sizeof(float)) == 0);
    if (!tensor.packed->transposed) return numbers;
    const std::vector<std::int64_t> shape = tensor.packed->tensor->shape();
    const auto out = shape[shape.size() - 2];
    std::vector<float> turned;
    for (std::int64_t matrix = 0; matrix < rows / out; ++matrix)
        for (std::int64_t column = 0; column < columns; ++column)
            for (std::int64_t row = 0; row < out; ++row)
                turned.push_back(numbers[static_cast<std::size_t>((matrix * out + row) * columns + column)]);
    return turned;
}

/// A whole Llama of one layer: hidden 4, two heads of 2, two words.
GgufBuilder small_llama() {
    GgufBuilder file;
    file.key("general.architecture", "llama").key("llama.block_count", std::uint32_t{1});
    file.key("llama.context_length", std::uint32_t{16}).key("llama.embedding_length", std::uint32_t{4});
    file.key("llama.feed_forward_length", std::uint32_t{4}).key("llama.attention.head_count", std::uint32_t{2});
    const std::string matrix(64, '\0'), vector(16, '\0');
    file.tensor("token_embd.weight", {4, 2}, kF32, std::string(32, '\0'))
        .tensor("output_norm.weight", {4}, kF32, vector);
    for (const char* name : {"attn_norm", "ffn_norm"})
        file.tensor(std::string("blk.0.") + name + ".weight", {4}, kF32, vector);
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
        file.tensor(std::string("blk.0.") + name + ".weight", {4, 4}, kF32, matrix);
    return file;
}

GgufModel open(const GgufBuilder& file) {
    const TemporaryFolder folder;
    return open_gguf(write_file(folder / "model.gguf", file.bytes()));
}

void refused(const GgufBuilder& file, ErrorCode code, const std::string& part) {
    REQUIRE_THROWS_MATCHES(open(file), Error, IsError(code, part));
}

}  // namespace

TEST_CASE("Models of GGUF files equal those of transformers bit for bit", "[checkpoint][gguf]") {
    std::ifstream file(golden_file("gguf_models.json"));
    const auto golden = nlohmann::json::parse(file);
    REQUIRE(golden.size() == 11);
    for (const auto& [name, expected] : golden.items()) {
        INFO(name);
        const GgufModel model = open_gguf(golden_file("gguf/" + name + ".gguf"));
        CHECK(model.format == "GGUF F16");
        for (const auto& [key, value] : expected.at("config").items()) {
            INFO(key);
            REQUIRE(model.config.contains(key));
            CHECK(model.config.at(key) == value);
        }
        CHECK(model.tensors.size() == expected.at("tensors").size());
        for (const auto& [tensor, entry] : expected.at("tensors").items()) {
            INFO(tensor);
            REQUIRE(model.tensors.contains(tensor));
            CHECK(model.tensors.at(tensor).shape == entry.at(0).get<std::vector<std::int64_t>>());
            const std::vector<float> numbers = numbers_of(model, tensor);
            const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
            CHECK(sha256_hex(bytes).substr(0, 16) == entry.at(1));
        }
    }
}

TEST_CASE("A GGUF file is one by its first bytes", "[checkpoint][gguf]") {
    const TemporaryFolder folder;
    CHECK(is_gguf(InputFile(write_file(folder / "a", "GGUF"))));
    CHECK_FALSE(is_gguf(InputFile(write_file(folder / "a", "GGU"))));
    CHECK_FALSE(is_gguf(InputFile(write_file(folder / "a", "GGML...."))));
    CHECK_FALSE(is_gguf(InputFile(write_file(folder / "a", ""))));
}

TEST_CASE("A GGUF model without surprises opens, and says its tokens", "[checkpoint][gguf]") {
    GgufBuilder file = small_llama();
    file.key("tokenizer.ggml.bos_token_id", std::uint32_t{0}).key("tokenizer.ggml.eos_token_id", std::uint32_t{1});
    file.key("tokenizer.ggml.eot_token_id", std::uint32_t{0}).key("general.name", "x").key("somebody.else", 1);
    file.key("llama.expert_count", std::uint32_t{0}).key("llama.logit_scale", 1.0F).key("llama.pooling_type", 3);
    const GgufModel model = open(file);
    CHECK(model.config.at("model_type") == "llama");
    CHECK(model.config.at("tie_word_embeddings") == true);
    CHECK(model.config.at("head_dim") == 2);
    CHECK(model.config.at("vocab_size") == 2);
    CHECK(model.config.at("bos_token_id") == 0);
    CHECK(model.config.at("eos_token_id") == nlohmann::json::array({1, 0}));
    CHECK(model.config.at("pad_token_id").is_null());
    CHECK(model.format == "GGUF F32");
    CHECK(model.tensors.at("model.layers.0.mlp.up_proj.weight").packed->type == "F32");
}

TEST_CASE("The ends of a turn and of a message end an answer of a GGUF file's model", "[checkpoint][gguf]") {
    const auto ends = [](const std::vector<std::pair<std::string, std::uint32_t>>& tokens) {
        GgufBuilder file = small_llama();
        for (const auto& [name, id] : tokens) file.key("tokenizer.ggml." + name, id);
        return open(file).config.at("eos_token_id");
    };
    const auto both = nlohmann::json::array({1, 0});
    CHECK(ends({{"eos_token_id", 1U}, {"eot_token_id", 1U}}) == 1);
    CHECK(ends({{"eos_token_id", 1U}, {"eom_token_id", 0U}}) == both);
    CHECK(ends({{"eos_token_id", 1U}, {"eot_token_id", 0U}, {"eom_token_id", 0U}}) == both);
    CHECK(ends({{"eot_token_id", 1U}, {"eom_token_id", 0U}}) == both);
}

TEST_CASE("Keys of a GGUF file that change the computation and are not read are refused by name",
          "[checkpoint][gguf]") {
    const auto with = [](const std::string& key, const GgufValueBytes& value) { return small_llama().key(key, value); };
    constexpr auto kUnsupported = ErrorCode::unsupported;
    refused(with("llama.logit_scale", 0.5F), kUnsupported, "\"llama.logit_scale\"");
    refused(with("llama.attention.scale", 0.5F), kUnsupported, "\"llama.attention.scale\"");
    refused(with("llama.attention.causal", false), kUnsupported, "\"llama.attention.causal\"");
    refused(with("llama.something.new", 1), kUnsupported, "\"llama.something.new\"");
    refused(with("llama.rope.scaling.type", "ntk"), kUnsupported, "found \"ntk\"");
    refused(with("llama.rope.dimension_count", std::uint32_t{1}), ErrorCode::mismatch, "rope.dimension_count");
    refused(with("llama.attention.value_length", std::uint32_t{3}), kUnsupported, "value_length");
    refused(with("llama.tensor_data_layout", "reversed"), kUnsupported, "found \"reversed\"");
    refused(with("llama.attention.head_count_kv", std::vector<std::int32_t>{2, 2}), ErrorCode::format, "1 layers");
    refused(with("general.type", "adapter"), kUnsupported, "found \"adapter\"");
    GgufBuilder other;
    refused(other.key("general.architecture", "rwkv7"), kUnsupported, "expected one of llama, qwen2");
    GgufBuilder none;
    refused(none.key("general.name", "x"), ErrorCode::format, "\"general.architecture\"");
}

TEST_CASE("The attention factor of a GGUF file's YaRN holds without stretching too", "[checkpoint][gguf]") {
    const auto factor_of = [](float stretched) {
        GgufBuilder file = small_llama();
        file.key("llama.rope.scaling.type", "yarn").key("llama.rope.scaling.factor", stretched);
        file.key("llama.rope.scaling.attn_factor", 1.5F);
        return open(file).config.at("rope_scaling").at("attention_factor").get<double>();
    };
    CHECK(factor_of(1.0F) == 1.5);
    CHECK(factor_of(0.5F) == 1.5);
    CHECK(factor_of(4.0F) == Approx(1.5 * 1.1386294361119891));  // 0.1 ln 4 + 1
}

TEST_CASE("Layers with windows follow a GGUF file's pattern, else the family's", "[checkpoint][gguf]") {
    const auto types = [](const std::string& architecture,
                          const std::vector<std::pair<std::string, GgufValueBytes>>& more) {
        GgufBuilder file;
        file.key("general.architecture", architecture.c_str());
        const auto key = [&](const char* name, std::uint32_t size) { file.key(architecture + "." + name, size); };
        key("block_count", 7);
        key("context_length", 16);
        key("embedding_length", 4);
        key("feed_forward_length", 4);
        key("attention.head_count", 2);
        key("attention.sliding_window", 8);
        for (const auto& [name, value] : more) file.key(architecture + "." + name, value);
        file.tensor("token_embd.weight", {4, 2}, kF32, std::string(32, '\0'));
        for (int layer = 0; layer < 7; ++layer)
            file.tensor("blk." + std::to_string(layer) + ".attn_norm.weight", {4}, kF32, std::string(16, '\0'));
        std::string letters;
        const GgufModel model = open(file);
        for (const auto& type : model.config.at("layer_types")) letters += type == "sliding_attention" ? 's' : 'f';
        return letters;
    };
    const std::string pattern = "attention.sliding_window_pattern";
    CHECK(types("gemma2", {}) == "sfsfsfs");
    CHECK(types("gemma3", {}) == "sssssfs");
    CHECK(types("gemma3", {{pattern, std::uint32_t{3}}}) == "ssfssfs");
    CHECK(types("gemma3", {{pattern, std::uint32_t{0}}}) == "sssssss");
    CHECK(types("gemma3", {{pattern, std::vector<std::int32_t>{1, 0, 0, 0, 0, 0, 1}}}) == "sfffffs");
    CHECK(types("qwen2", {}) == "sssssss");
}

TEST_CASE("Granite's scales and its switch of rotary positions are llama.cpp's", "[checkpoint][gguf]") {
    const auto with = [](const std::vector<std::pair<std::string, GgufValueBytes>>& more) {
        GgufBuilder file;
        file.key("general.architecture", "granite");
        for (const auto& [name, size] : std::map<std::string, std::uint32_t>{{"block_count", 1},
                                                                             {"context_length", 16},
                                                                             {"embedding_length", 8},
                                                                             {"feed_forward_length", 4},
                                                                             {"attention.head_count", 2}})
            file.key("granite." + name, size);
        for (const auto& [name, value] : more) file.key("granite." + name, value);
        return file.tensor("token_embd.weight", {8, 2}, kF32, std::string(64, '\0'));
    };
    // A scale of 0 is as none; of scores that is the root of the head's size, 4.
    CHECK(open(with({})).config.at("attention_multiplier") == 0.5);
    CHECK(open(with({{"attention.scale", 0.0F}})).config.at("attention_multiplier") == 0.5);
    CHECK(open(with({{"attention.scale", 0.25F}})).config.at("attention_multiplier") == 0.25);
    CHECK(open(with({{"residual_scale", 0.0F}})).config.at("residual_multiplier") == 1);
    CHECK(open(with({{"embedding_scale", 12.0F}})).config.at("embedding_multiplier") == 12);
    CHECK(open(with({{"logit_scale", 8.0F}})).config.at("logits_scaling") == 8);
    CHECK(open(with({{"rope.scaling.finetuned", true}})).config.at("model_type") == "granite");
    refused(with({{"rope.scaling.finetuned", false}}), ErrorCode::unsupported, "\"granite.rope.scaling.finetuned\"");
}

TEST_CASE("Routing of experts that is not read is refused", "[checkpoint][gguf]") {
    GgufBuilder file = small_llama();
    file.key("llama.expert_count", std::uint32_t{2}).key("llama.expert_used_count", std::uint32_t{1});
    refused(GgufBuilder(file).key("llama.expert_gating_func", std::uint32_t{2}), ErrorCode::unsupported,
            "\"llama.expert_gating_func\"] expected 1 (softmax)");
    refused(GgufBuilder(file).key("llama.expert_weights_norm", false), ErrorCode::unsupported, "expert_weights_norm");
    refused(file, ErrorCode::mismatch, "\"blk.0.ffn_gate_exps.weight\"");
}

TEST_CASE("Stored tensors that have no place in the model are refused by name", "[checkpoint][gguf]") {
    refused(small_llama().tensor("blk.0.attn_new.weight", {4}, kF32, std::string(16, '\0')), ErrorCode::unsupported,
            "\"blk.0.attn_new.weight\"");
    refused(small_llama().tensor("blk.1.attn_q.weight", {4, 4}, kF32, std::string(64, '\0')), ErrorCode::unsupported,
            "\"blk.1.attn_q.weight\"");
    refused(small_llama().tensor("rope_freqs.weight", {3}, kF32, std::string(12, '\0')), ErrorCode::mismatch,
            "\"rope_freqs.weight\"] expected 1 numbers");
    refused(small_llama().tensor("rope_freqs.weight", {1}, kF32, std::string(4, '\0')), ErrorCode::mismatch, "above 0");
    refused(small_llama().tensor("output.weight", {4, 2}, 24, std::string(8, '\0')), ErrorCode::unsupported,
            "found I8");
}

TEST_CASE("Sizes of a GGUF file that cannot be are refused", "[checkpoint][gguf]") {
    const auto with = [](const std::string& key, std::uint32_t value) {
        GgufBuilder file;
        file.key("general.architecture", "llama");
        for (const auto& [name, size] : std::map<std::string, std::uint32_t>{{"llama.block_count", 1},
                                                                             {"llama.context_length", 16},
                                                                             {"llama.embedding_length", 4},
                                                                             {"llama.feed_forward_length", 4},
                                                                             {"llama.attention.head_count", 2}})
            file.key(name, name == key ? value : size);
        for (const char* name : {"attn_q", "attn_k"})
            file.tensor(std::string("blk.0.") + name + ".weight", {4, 4}, kF32, std::string(64, '\0'));
        return file.tensor("token_embd.weight", {4, 2}, kF32, std::string(32, '\0'));
    };
    refused(with("llama.block_count", 0), ErrorCode::limit, "block_count");
    refused(with("llama.block_count", 4'000'000'000), ErrorCode::limit, "block_count");
    refused(with("llama.block_count", 1000), ErrorCode::mismatch, "no more layers than the file has tensors (3)");
    refused(with("llama.embedding_length", 4'294'967'295), ErrorCode::limit, "embedding_length");
    refused(with("llama.attention.head_count", 3), ErrorCode::mismatch, "head_count");
    refused(with("llama.attention.head_count", 0), ErrorCode::limit, "head_count");
    open(with("llama.context_length", 16));
    GgufBuilder file = with("", 0);
    refused(file.key("llama.attention.key_length", std::uint32_t{3}), ErrorCode::mismatch, "rope.dimension_count");
    file = with("", 0);
    file.key("llama.attention.key_length", std::uint32_t{6}).key("llama.rope.dimension_count", std::uint32_t{6});
    refused(file.key("llama.attention.value_length", std::uint32_t{6}), ErrorCode::mismatch, "\"blk.0.attn_q.weight\"");
}

TEST_CASE("A scale beside an NVFP4 tensor multiplies it", "[checkpoint][gguf]") {
    GgufBuilder file = small_llama();
    std::string block(36, '\x21');
    std::fill_n(block.begin(), 4, '\x38');  // 1
    const float factor = 0.375F;
    file.key("llama.vocab_size", std::uint32_t{2});
    file.tensor("output.weight", {64, 2}, kNvfp4, block + block).tensor("output.scale", {1}, kF32, little(factor));
    file.tensor("output.input_scale", {1}, kF32, little(2.0F));
    const GgufModel model = open(file);
    const std::vector<float> numbers = numbers_of(model, "lm_head.weight");
    CHECK(numbers[0] == 0.5F * factor);  // low nibble: 1
    CHECK(numbers[8] == 1.0F * factor);  // high nibble: 2
    CHECK(model.tensors.at("lm_head.weight").packed->type == "NVFP4");
    CHECK(model.tensors.at("lm_head.weight").packed->tensor->parts().size() == 2);
}

TEST_CASE("A GGUF model with any changed byte is read or refused", "[checkpoint][gguf]") {
    const std::string bytes = small_llama().bytes();
    const std::size_t header = small_llama().header().size();
    const TemporaryFolder folder;
    for (std::size_t i = 0; i < header; ++i) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] + 1);
        try {
            const GgufModel model = open_gguf(write_file(folder / "x.gguf", changed));
            for (const auto& [name, tensor] : model.tensors) {
                CHECK(tensor.packed);
                load(model, tensor);
            }
        } catch (const Error& error) {
            CHECK(error.code() != ErrorCode::internal);
            CHECK(error.code() != ErrorCode::memory);
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <fstream>

#include "core/checkpoint/special_weights.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/checkpoint/adapter_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

/// Finding in a folder with these tensors and this configuration; empty: nothing special.
std::string found_in(const Shapes& tensors, const std::string& config = "") {
    const TemporaryFolder folder;
    write_file(folder / "model.safetensors", counting_safetensors(tensors));
    if (!config.empty()) write_file(folder / "config.json", config);
    const auto special = special_weights(*Checkpoint::open(folder.path()));
    return special ? '[' + special->where + "] " + special->found : "";
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Quantized weights that are not read are listed as stored", "[checkpoint][special]") {
    const auto found = [](const std::string& value) {
        return found_in({{"a", {1}}}, R"({"model_type": "llama", "quantization_config": )" + value + "}");
    };
    CHECK(has(found(R"({"quant_method": "aqlm"})"), "[config.json: quantization_config] "));
    CHECK(has(found(R"({"quant_method": "aqlm"})"), "a method that is not read: AQLM"));
    CHECK(found("null").empty());
    CHECK(found(R"({"quant_method": "mxfp4"})").empty());
    CHECK(has(found_in({{"l.qweight", {1}}, {"l.qzeros", {1}}, {"l.scales", {1}}}), "packed weights: GPTQ or AWQ"));
    CHECK(found_in({{"l.bias", {1}}, {"l.scales", {1}}, {"l.weight", {1}}}).empty());
    const TemporaryFolder folder;
    write_file(folder / "model.safetensors",
               safetensors_bytes("{" + entry("l.weight", "F8_E4M3", "[1]", "[0,1]") + "}", "x"));
    const auto file = Checkpoint::open(folder.path());
    CHECK(special_weights(*file)->found == "found none, and packed weights: F8_E4M3");
    CHECK(file->tensor("l.weight").type == DataType::f8_e4m3);
}

TEST_CASE("Adapters in weights, and nanoGPT's, are recognized by their names", "[checkpoint][special]") {
    CHECK(has(
        found_in({{"base_model.model.q.base_layer.weight", {1}}, {"base_model.model.q.lora_A.default.weight", {1}}}),
        "saved with an adapter around its layers"));
    CHECK(has(found_in({{"base_model.model.q.lora_A.weight", {1}}}), "those of a LoRA adapter"));
    CHECK(has(found_in({{"transformer.h.0.attn.c_attn.weight", {6, 2}}}, R"({"model_type": "gpt2"})"), "nanoGPT"));
    CHECK(found_in({{"transformer.h.0.attn.c_attn.weight", {2, 6}}}, R"({"model_type": "gpt2"})").empty());
    CHECK(found_in({{"transformer.h.0.attn.c_attn.weight", {6, 2}}}, R"({"model_type": "qwen"})").empty());
    CHECK(has(found_in({{"_orig_mod.transformer.h.0.attn.c_attn.weight", {6, 2}}}), "nanoGPT"));
}

TEST_CASE("Files of llm.c and ONNX are called by their name", "[checkpoint][special]") {
    using namespace std::string_literals;
    const TemporaryFolder folder;
    const auto named = [&](const std::string& name, const std::string& bytes, const std::string& part) {
        write_file(folder / name, bytes);
        REQUIRE_THROWS_MATCHES(Checkpoint::open(folder / name), Error, IsError(ErrorCode::unsupported, part));
    };
    const std::string model = "\xc6\xd7\x34\x01"s, rest(1100, '\0');
    named("gpt2.bin", model + "\3\0\0\0"s + rest, "a model of llm.c, which must be converted for transformers first");
    REQUIRE_THROWS_MATCHES(Checkpoint::open(folder.path()), Error,
                           IsError(ErrorCode::unsupported, "(version 3, float32)"));
    named("gpt2_bf16.bin", model + "\5\0\0\0"s + rest, "(version 5, bfloat16)");
    named("tokens.bin", "\x88\xd8\x34\x01\1\0\0\0"s + rest, "tokens of llm.c");
    REQUIRE_THROWS_MATCHES(Checkpoint::open(folder.path()), Error,
                           IsError(ErrorCode::usage, "\"gpt2.bin\" is a model of llm.c"));
    named("model.onnx", "\x08\x07\x12\x07pytorch\x1a\x05"s + rest, "an ONNX model");
    fs::create_directory(folder / "onnx");
    write_file(folder / "onnx/model.onnx", "\x08\x07\x12\x07pytorch"s);
    REQUIRE_THROWS_MATCHES(Checkpoint::open(folder / "onnx"), Error,
                           IsError(ErrorCode::format, "\"model.onnx\" is an ONNX model"));
}

TEST_CASE("Folders above a checkpoint point at it", "[checkpoint][special]") {
    const TemporaryFolder folder;
    const fs::path cache = folder / "models--x--y";
    const auto pointed = [](const fs::path& path, const std::string& part) {
        REQUIRE_THROWS_MATCHES(Checkpoint::open(path), Error, IsError(ErrorCode::format, part));
    };
    fs::create_directories(cache / "snapshots/bbb");
    fs::create_directories(cache / "refs");
    write_file(cache / "snapshots/bbb/model.safetensors", tiny_safetensors("a"));
    write_file(cache / "refs/main", "bbb");
    const std::string second = '"' + (cache / "snapshots/bbb").string() + '"';
    pointed(cache, "found none here but below, in " + second + ": open that");
    pointed(folder.path(), second);
    pointed(cache / "snapshots", second);
    fs::create_directories(cache / "snapshots/aaa");
    write_file(cache / "snapshots/aaa/pytorch_model.bin", "x");
    pointed(cache, "in " + second + ", \"" + (cache / "snapshots/aaa").string() + "\": open one");
    pointed(cache / "refs", "found neither");
}

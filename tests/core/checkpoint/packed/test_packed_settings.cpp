// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/base/error.h"
#include "core/checkpoint/packed/name_patterns.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/checkpoint/packed/packed_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
using nlohmann::json;

namespace {

/// "CODE [place] expected; found" of a model with changed settings; "none" where it is taken.
std::string result_of(const PackedModel& model) {
    try {
        const auto found = model.find();
        return found ? "none" : "not quantized";
    } catch (const Error& error) {
        return error.what();
    }
}

/// The same for a golden model, its settings merged with a patch (RFC 7396).
std::string with(const std::string& name, const char* patch) {
    PackedModel model = read_packed_model(name);
    model.settings().merge_patch(json::parse(patch));
    return result_of(model);
}

bool has(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) UNSCOPED_INFO(text);
    return found;
}

bool matches(const char* expression, const char* name) {
    const auto pattern = NamePattern::parse(expression);
    REQUIRE(pattern);
    std::uint64_t steps = 0;
    return pattern->matches(name, steps);
}

bool covers(const char* entry, const char* module) {
    std::uint64_t steps = 0;
    return !ModuleList({entry}, "test").covering(module, steps).empty();
}

}  // namespace

TEST_CASE("Methods that are not read are refused by name", "[checkpoint][packed]") {
    for (const auto& [method, name] :
         std::vector<std::pair<std::string, std::string>>{{"aqlm", "AQLM"},
                                                          {"vptq", "VPTQ"},
                                                          {"quip", "QuIP"},
                                                          {"spqr", "SpQR"},
                                                          {"higgs", "HIGGS"},
                                                          {"eetq", "EETQ"},
                                                          {"quanto", "quanto"},
                                                          {"torchao", "torchao"},
                                                          {"bitnet", "BitNet"},
                                                          {"fp_quant", "FP-Quant"},
                                                          {"quark", "Quark"},
                                                          {"sinq", "SINQ"},
                                                          {"new\nmethod", "\"new\\x0Amethod\""}}) {
        PackedModel model;
        model.settings()["quant_method"] = method;
        const std::string text = result_of(model);
        CHECK(has(text, "[config.json: quantization_config]"));
        CHECK(has(text, "a method that is not read: " + name));
    }
    CHECK(has(with("auto_round", R"({"packing_format": "auto_round:auto_awq"})"), "auto_round:auto_gptq"));
    CHECK(has(with("auto_round", R"({"packing_format": null})"), "found none"));
    CHECK(has(with("auto_round", R"({"extra_config": {"m.x": {"bits": 8}}})"), "extra_config.m.x.bits"));
}

TEST_CASE("Settings of no known kind are refused", "[checkpoint][packed]") {
    PackedModel model;
    for (const char* settings : {"7", "\"gptq\"", "[1]", R"({"x": 1})", R"({"quant_method": 4})"}) {
        model.config["quantization_config"] = json::parse(settings);
        CHECK(has(result_of(model), "[config.json: quantization_config"));
    }
    model.config = json::parse(R"({"quantization_config": null, "quantization": {}})");
    CHECK(result_of(model) == "not quantized");
    model.config = json::parse("[]");
    CHECK(result_of(model) == "not quantized");
}

TEST_CASE("Variants that are not read are refused by key", "[checkpoint][packed]") {
    for (const char* format : {"marlin", "bitblas", "exl2", "x"}) {
        const std::string patch = std::string(R"({"checkpoint_format": ")") + format + "\"}";
        CHECK(has(with("gptq_4", patch.c_str()), "[config.json: quantization_config.checkpoint_format]"));
    }
    CHECK(has(with("gptq_4", R"({"format": "marlin"})"), "quantization_config.format]"));
    CHECK(has(with("gptq_4", R"({"is_marlin_format": true})"), "is_marlin_format"));
    CHECK(has(with("gptq_4", R"({"pack_dtype": "int8"})"), "pack_dtype"));
    CHECK(has(with("gptq_4", R"({"rotation": "hadamard"})"), "rotation"));
    CHECK(with("gptq_4", R"({"is_marlin_format": false, "rotation": null, "checkpoint_format": "gptq"})") == "none");
    for (const char* version : {"gemv", "gemv_fast", "marlin", "exllama"}) {
        const std::string patch = std::string(R"({"version": ")") + version + "\"}";
        CHECK(has(with("awq_4", patch.c_str()), "[config.json: quantization_config.version] expected \"gemm\""));
    }
    CHECK(has(with("awq_4", R"({"checkpoint_format": "gemv"})"), "checkpoint_format] expected \"gemm\""));
    CHECK(with("awq_4", R"({"checkpoint_format": "GEMM"})") == "none");
    CHECK(has(with("awq_4", R"({"zero_point": false})"), "zero_point"));
    CHECK(has(with("awq_4", R"({"bits": 8})"), "expected 4 bits"));
    CHECK(has(with("awq_4", R"({"backend": "llm-awq"})"), "backend"));
    for (const char* format : {"marlin-24", "sparse-24-bitmask", "mxfp6-quantized", "dense"}) {
        const std::string patch = std::string(R"({"format": ")") + format + "\"}";
        CHECK(has(with("ct_pack", patch.c_str()), "[config.json: quantization_config.format]"));
    }
    CHECK(has(with("ct_pack", R"({"sparsity_config": {"format": "sparse-bitmask"}})"), "sparsity_config.format"));
    CHECK(has(with("ct_pack", R"({"transform_config": {"config_groups": {"u": {}}}})"), "transform_config"));
    CHECK(with("ct_pack", R"({"sparsity_config": {"format": "dense"}, "transform_config": {}})") == "none");
    CHECK(has(with("modelopt_nvfp4", R"({"quant_algo": "FP8"})"), "quant_algo"));
    CHECK(has(with("fp8_block", R"({"scale_fmt": "other"})"), "scale_fmt"));
    CHECK(has(with("mlx_affine", R"({"bits": 4})"), "none"));
    PackedModel mlx = read_packed_model("mlx_mxfp4");
    for (const char* mode : {"nvfp4", "mxfp8", "other"}) {
        mlx.config["quantization"]["mode"] = mode;
        CHECK(has(result_of(mlx), "[config.json: quantization.mode]"));
    }
    CHECK(has(with("hqq_4", R"({"quant_config": {"scale_quant_params": {"nbits": 8}}})"), "scale_quant_params"));
    for (const char* flag : {"view_as_float", "quant_scale", "quant_zero"}) {
        PackedModel hqq = read_packed_model("hqq_4");
        hqq.bytes[std::string("m.q_proj.") + flag][0] = std::byte{1};
        CHECK(has(result_of(hqq), std::string("tensor \"m.q_proj.") + flag + '"'));
    }
}

TEST_CASE("Settings that contradict the tensors or each other are refused", "[checkpoint][packed]") {
    CHECK(has(with("gptq_4", R"({"bits": 8})"), "tensor \""));
    CHECK(has(with("gptq_4", R"({"bits": 5})"), "expected 2, 3, 4 or 8 bits"));
    CHECK(has(with("gptq_4", R"({"bits": null})"), "quantization_config.bits"));
    CHECK(has(with("gptq_4", R"({"group_size": 32})"), "expected shape [3, 2]"));
    CHECK(has(with("gptq_4", R"({"group_size": 0})"), "quantization_config.group_size"));
    CHECK(has(with("gptq_4", R"({"group_size": -2})"), "quantization_config.group_size"));
    CHECK(has(with("gptq_4", R"({"desc_act": true})"), "g_idx"));
    CHECK(has(with("gptq_4", R"({"checkpoint_format": "gptq", "format": "gptq_v2"})"), "as checkpoint_format"));
    CHECK(has(with("awq_4", R"({"group_size": 40})"), "whole groups of 40"));
    CHECK(has(with("bnb_nf4", R"({"bnb_4bit_quant_type": "fp4"})"), "bnb_4bit_quant_type"));
    CHECK(has(with("bnb_nf4", R"({"bnb_4bit_use_double_quant": true})"), "bnb_4bit_use_double_quant"));
    CHECK(has(with("bnb_nf4", R"({"load_in_8bit": true, "_load_in_8bit": true})"), "found both"));
    CHECK(has(with("bnb_nf4", R"({"_load_in_4bit": false})"), "_load_in_4bit"));
    CHECK(has(with("bnb_int8", R"({"load_in_8bit": false})"), "found neither"));
    CHECK(has(with("bnb_int8", R"({"load_in_8bit": false, "load_in_4bit": true})"), "tensor \"m.fc1.SCB\""));
    CHECK(has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": {"num_bits": 8}}}})"), "expected shape"));
    CHECK(has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": {"symmetric": false}}}})"),
              "weight_zero_point"));
    CHECK(
        has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": {"actorder": "group"}}}})"), "weight_g_idx"));
    CHECK(has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": {"group_size": 64}}}})"), "weight_scale"));
    CHECK(has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": {"type": "float"}}}})"), "integers of 1"));
    CHECK(
        has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": {"strategy": "channel"}}}})"), "group_size"));
    CHECK(has(with("ct_pack", R"({"config_groups": {"group_0": {"format": "int-quantized"}}})"), "group_0.format"));
    CHECK(has(with("ct_pack", R"({"config_groups": {"group_0": {"weights": null}}})"), "a group with weights"));
    CHECK(has(with("ct_int", R"({"config_groups": {"group_0": {"targets": ["re:m.*"]}}})"), "names this module"));
    CHECK(has(with("ct_mixed", R"({"config_groups": {"group_0": {"targets": ["re:.*none"]}}})"), "found none"));
    CHECK(has(with("ct_mixed", R"({"config_groups": {"group_0": {"format": null}}})"), "group_0.format"));
    CHECK(has(with("fp8_block", R"({"weight_block_size": [64, 64]})"), "expected shape [1, 3]"));
    CHECK(has(with("fp8_block", R"({"weight_block_size": [128]})"), "weight_block_size"));
    CHECK(has(with("fp8_block", R"({"weight_block_size": [0, 128]})"), "weight_block_size"));
    CHECK(has(with("fp8_block", R"({"weight_block_size": null})"), "fp8 without blocks"));
    CHECK(has(with("fp8_tensor", R"({"weight_block_size": [128, 128]})"), "expected shape [1, 1]"));
    CHECK(has(with("fp8_block_exponents", R"({"scale_fmt": null})"), "scale_fmt ue8m0"));
    CHECK(has(with("hqq_4", R"({"quant_config": {"weight_quant_params": {"nbits": 8}}})"), "nbits"));
    CHECK(has(with("hqq_4", R"({"quant_config": {"weight_quant_params": {"axis": 0}}})"), "axis"));
    CHECK(has(with("metal", R"({"group_size": 48})"), "groups of 32, 64 or 128"));
    CHECK(has(with("metal", R"({"quant_method": null})"), "m.fc.biases"));
    PackedModel mlx = read_packed_model("mlx_affine");
    mlx.config["quantization"]["bits"] = 8;
    CHECK(has(result_of(mlx), "expected the same as config.json: quantization"));
    mlx = read_packed_model("mlx_affine");
    mlx.config["quantization"]["m.b2"] = false;
    mlx.config.erase("quantization_config");
    CHECK(has(result_of(mlx), "quantization.m.b2"));
    // The settings of a module inherit nothing: mode affine, 4 bits and groups of 64 where they do not say.
    mlx = read_packed_model("mlx_affine");
    mlx.config.erase("quantization_config");
    mlx.config["quantization"]["mode"] = "mxfp4";
    for (const char* module : {"m.embed_tokens", "m.switch"}) mlx.config["quantization"][module] = {{"group_size", 32}};
    CHECK(result_of(mlx) == "none");
    mlx.config["quantization"]["m.embed_tokens"] = json::object();
    CHECK(has(result_of(mlx), "whole groups of 64"));
    PackedModel gptq = read_packed_model("gptq_companion");
    gptq.config = {{"quantization_config", {{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 32}}}};
    CHECK(has(result_of(gptq), "[quantize_config.json: bits] expected 8"));
    gptq.config["quantization_config"]["bits"] = 4;
    CHECK(result_of(gptq) == "none");
}

TEST_CASE("Modules that the settings exclude must be plain", "[checkpoint][packed]") {
    const std::string down = "model.layers.0.mlp.down_proj";
    for (const char* entry :
         {"model.layers.0.mlp.down_proj", "model.layers.0", "down_proj", "re:.*down", "model.*.mlp"}) {
        PackedModel model = read_packed_model("gptq_4");
        model.settings()["modules_to_not_convert"] = {entry};
        CHECK(has(result_of(model), "tensor \"" + down + ".qweight\""));
        CHECK(has(result_of(model), "excludes \"" + std::string(entry) + '"'));
    }
    CHECK(with("gptq_4", R"({"modules_to_not_convert": ["proj", "model.layers.00", "re:down"]})") == "none");
    CHECK(has(with("gptq_4", R"({"modules_to_not_convert": ["re:(a"]})"), "modules_to_not_convert"));
    CHECK(has(with("gptq_4", R"({"modules_to_not_convert": 7})"), "modules_to_not_convert"));
    CHECK(has(with("gptq_4", R"({"dynamic": {"-:.*down.*": {}}})"), "excludes"));
    CHECK(has(with("gptq_4", R"({"dynamic": {"+:.*down.*": {"bits": 8}}})"), "dynamic"));
    CHECK(has(with("bnb_nf4", R"({"llm_int8_skip_modules": ["fc1"]})"), "excludes"));
    CHECK(has(with("ct_pack", R"({"ignore": ["re:.*q_proj$"]})"), "excludes"));
    CHECK(has(with("hqq_4", R"({"skip_modules": ["q_proj"]})"), "excludes"));
    CHECK(has(with("modelopt_nvfp4", R"({"exclude_modules": ["m*"]})"), "excludes"));
    CHECK(has(with("mxfp4_experts", R"({"modules_to_not_convert": ["model.layers.*.mlp"]})"), "excludes"));
}

TEST_CASE("Packed weights without settings are refused, but for experts in MXFP4", "[checkpoint][packed]") {
    const json all = packed_expectations();
    for (const auto& [name, expected] : all.items()) {
        INFO(name);
        PackedModel model = read_packed_model(name);
        model.config = json::object();
        model.companion_file.clear();
        if (name == "mxfp4_experts")
            CHECK(model.find()->tensors.size() == 2);
        else if (name != "mlx_mxfp4")
            CHECK(has(result_of(model), "expected quantization_config in config.json"));
    }
    PackedModel plain;
    plain.put("a.weight", DataType::f32, {2, 2});
    plain.put("a.scales", DataType::f32, {2});
    plain.put("codec_blocks", DataType::f32, {2});
    CHECK(result_of(plain) == "not quantized");
    plain.erase("a.scales");
    plain.settings() = {{"quant_method", "mxfp4"}};
    CHECK(result_of(plain) == "not quantized");
    for (const char* method : {"fp8", "hqq", "bitsandbytes"}) {
        PackedModel model;
        model.put("a.weight", DataType::f32, {2, 2});
        model.settings() = {{"quant_method", method}, {"load_in_4bit", true}};
        CHECK(has(result_of(model), "expected packed weights of"));
    }
}

TEST_CASE("Expressions match as Python's re.match", "[checkpoint][packed]") {
    CHECK(matches("a", "abc"));
    CHECK_FALSE(matches("b", "abc"));
    CHECK(matches(".*b", "abc"));
    CHECK(matches("a$", "a"));
    CHECK_FALSE(matches("a$", "ab"));
    CHECK(matches("^a.c$", "abc"));
    CHECK(matches("(?:a|b|cd)+e", "abcde"));
    CHECK_FALSE(matches("(a|b)+$", "abc"));
    CHECK(matches("[a-c]{2,3}$", "abc"));
    CHECK_FALSE(matches("[a-c]{2}$", "abc"));
    CHECK(matches("[a-c]{2,}$", "abcabc"));
    CHECK(matches("[^.]+\\.mlp", "layer.mlp"));
    CHECK_FALSE(matches("[^.]+\\.mlp", "a.layer.mlp"));
    CHECK(matches("layers\\.\\d+\\.(q|k|v)_proj$", "layers.17.k_proj"));
    CHECK(matches("a??b*?c", "bbc"));
    CHECK(matches("[]x]", "]"));
    CHECK(matches("^(?!.*router).*proj", "mlp.up_proj"));
    CHECK_FALSE(matches("^(?!.*router).*proj", "mlp.router.up_proj"));
    CHECK(matches("a(?=.*c)b", "abc"));
    CHECK_FALSE(matches("a(?=.*d)b", "abc"));
    CHECK(matches("", "abc"));
    CHECK(matches("(|a)b", "b"));
    CHECK(matches("(a*)*b", "aaab"));
    CHECK(matches("\\w+\\s\\S", "a_1 x"));
    for (const char* bad : {"(", ")", "a)", "(?<x>a)", "(?i)a", "[a", "*", "a**", "\\1", "a{", "a{2", "a{3,2}",
                            "a{999}", "(?<=a)b", "\\", "[z-a]", "\\b"}) {
        INFO(bad);
        CHECK_FALSE(NamePattern::parse(bad));
    }
}

TEST_CASE("Expressions of any cost end", "[checkpoint][packed][hostile]") {
    CHECK_FALSE(NamePattern::parse(std::string(2000, 'a')));
    std::string nested = "a";
    for (int i = 0; i < 30; ++i) nested = "(" + nested + "*)*";
    CHECK_FALSE(NamePattern::parse(nested));
    CHECK_FALSE(NamePattern::parse("((((a{255}){255}){255}){255})"));
    CHECK_FALSE(NamePattern::parse(std::string(900, '(')));
    const std::string name(200000, 'a');
    std::uint64_t steps = 0;
    const auto slow = NamePattern::parse("(a|a|a|a)*(a|a)*b");
    REQUIRE(slow);
    CHECK_FALSE(slow->matches(name, steps));
    steps = NamePattern::most_steps - 10'000'000;
    const auto quadratic = NamePattern::parse("((?=.*(?=.*b))a)*c");
    REQUIRE(quadratic);
    CHECK_THROWS_MATCHES(quadratic->matches(name, steps), Error, IsError(ErrorCode::limit, "take longer"));
}

TEST_CASE("Lists of modules cover names, what is below them, and ends", "[checkpoint][packed]") {
    CHECK(covers("lm_head", "lm_head"));
    CHECK(covers("lm_head", "model.lm_head"));
    CHECK(covers("model.layers.1", "model.layers.1.mlp"));
    CHECK_FALSE(covers("model.layers.1", "model.layers.10.mlp"));
    CHECK_FALSE(covers("head", "lm_head"));
    CHECK_FALSE(covers("mlp", "model.mlp.up"));
    CHECK_FALSE(covers("", "a"));
    CHECK(covers("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj"));
    CHECK_FALSE(covers("model.layers.*.self_attn", "model.layers.3.self_attention"));
    CHECK(covers("re:.*gate$", "a.mlp.gate"));
    CHECK_FALSE(covers("re:gate", "a.mlp.gate"));
}

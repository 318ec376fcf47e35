// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/find_packed.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/packed/finder.h"
#include "core/checkpoint/packed/part_checks.h"

namespace headscope::checkpoint {
namespace {

using Json = nlohmann::json;

struct QuantizationSettings {
    JsonView view;
    std::string key;
};

/// The one object that describes the quantization; empty: none. MLX writes two equal ones.
std::optional<QuantizationSettings> settings_in(const Json& config) {
    std::optional<QuantizationSettings> found;
    const auto look = [&](const Json& object, const std::string& path) {
        for (const char* key : {"quantization", "quantization_config", "compression_config"}) {
            const auto value = object.find(key);
            if (value == object.end() || value->is_null() || (value->is_object() && value->empty())) continue;
            QuantizationSettings here{JsonView(*value, "config.json", path + key), key};
            if (found && found->view.value() != *value)
                refuse_contradiction(here.view.where(), "expected the same as " + found->view.where(),
                                     "found other settings");
            if (!found) found = std::move(here);
        }
    };
    if (!config.is_object()) return found;
    look(config, "");
    if (const auto text = config.find("text_config"); text != config.end() && text->is_object())
        look(*text, "text_config.");
    return found;
}

bool is_set_true(const JsonView& settings, const char* key) {
    const auto value = settings.find(key);
    return value && value->value().is_boolean() && value->boolean();
}

std::string method_of(const QuantizationSettings& settings) {
    const JsonView& view = settings.view;
    if (const auto named = view.find("quant_method")) return named->string();
    if (settings.key == "compression_config" || (view.has("config_groups") && view.has("format")))
        return "compressed-tensors";
    if (is_set_true(view, "load_in_4bit") || is_set_true(view, "load_in_8bit")) return "bitsandbytes";
    if (view.has("w_bit") || view.has("q_group_size")) return "awq";
    if (view.has("bits") && view.has("group_size"))
        return view.has("desc_act") || view.has("damp_percent") || settings.key.empty() ? "gptq" : "mlx";
    view.refuse(ErrorCode::unsupported, "expected quant_method");
}

/// A key that both files have must have one value.
void check_companion(const JsonView& settings, const JsonView& companion) {
    constexpr const char* pairs[][2] = {{"bits", "bits"},
                                        {"bits", "w_bit"},
                                        {"group_size", "group_size"},
                                        {"group_size", "q_group_size"},
                                        {"desc_act", "desc_act"},
                                        {"zero_point", "zero_point"}};
    for (const auto& [ours, theirs] : pairs) {
        if (!settings.has(ours) || !companion.has(theirs)) continue;
        const Json& value = settings.at(ours).value();
        if (value != companion.at(theirs).value())
            refuse_contradiction(companion.at(theirs).where(),
                                 "expected " + escaped(value.dump(), 60) + ", as " + settings.at(ours).where(),
                                 "found " + escaped(companion.at(theirs).value().dump(), 60));
    }
}

/// Methods by name, as transformers and others write it, that are not read.
constexpr const char* kUnreadMethods[][2] = {{"aqlm", "AQLM"},
                                             {"vptq", "VPTQ"},
                                             {"quip", "QuIP"},
                                             {"quip_sharp", "QuIP"},
                                             {"quip#", "QuIP"},
                                             {"spqr", "SpQR"},
                                             {"higgs", "HIGGS"},
                                             {"eetq", "EETQ"},
                                             {"quanto", "quanto"},
                                             {"torchao", "torchao"},
                                             {"bitnet", "BitNet"},
                                             {"fp_quant", "FP-Quant"},
                                             {"quark", "Quark"},
                                             {"sinq", "SINQ"},
                                             {"marlin", "GPTQ marlin"},
                                             {"exl2", "ExLlamaV2"},
                                             {"exl3", "ExLlamaV3"},
                                             {"bitblas", "BitBLAS"},
                                             {"gguf", "GGUF settings in a safetensors folder"}};

[[noreturn]] void refuse_method(const JsonView& settings, const std::string& method) {
    std::string name = "\"" + escaped(method, 60) + '"';
    for (const auto& [key, text] : kUnreadMethods)
        if (method == key) name = text;
    throw Error(ErrorCode::unsupported, settings.where(),
                "expected GPTQ, AWQ, bitsandbytes, compressed-tensors, modelopt NVFP4, fp8, MXFP4, MLX or HQQ",
                "found quantized weights of a method that is not read: " + name);
}

void find_by_method(PackedFinder& finder, const JsonView& settings, const std::string& method) {
    if (method == "gptq") return find_gptq(finder, settings);
    if (method == "auto-round" || method == "auto_round" || method == "intel/auto-round") {
        const std::string packing = settings.string_or("packing_format", "");
        if (packing == "auto_round:auto_gptq") return find_gptq(finder, settings);
        throw Error(ErrorCode::unsupported, settings.where(),
                    "expected AutoRound's packing_format auto_round:auto_gptq",
                    "found " + (packing.empty() ? "none" : '"' + escaped(packing, 60) + '"'));
    }
    if (method == "awq") return find_awq(finder, settings);
    if (method == "bitsandbytes" || method == "bitsandbytes_4bit" || method == "bitsandbytes_8bit")
        return find_bitsandbytes(finder, settings);
    if (method == "compressed-tensors") return find_compressed_tensors(finder, settings);
    if (method == "modelopt" || method == "modelopt_fp4") return find_modelopt(finder, settings);
    if (method == "fp8") return find_fp8(finder, settings);
    if (method == "fbgemm_fp8") return find_fbgemm_fp8(finder, settings);
    if (method == "mxfp4") return find_mxfp4(finder, &settings);
    if (method == "mlx" || method == "metal") return find_mlx(finder, settings);
    if (method == "hqq") return find_hqq(finder, settings);
    refuse_method(settings, method);
}

/// The method that a tensor is a sign of, for weights without settings; empty: none.
std::string sign_of(const TensorInfo& info, const std::map<std::string, TensorInfo>& stored) {
    const std::string& name = info.name;
    const auto with = [&](std::string_view end, const char* other) {
        return name.ends_with(end) && stored.count(name.substr(0, name.size() - end.size()) + other) != 0;
    };
    if (name.ends_with(".qweight")) return with(".qweight", ".g_idx") ? "GPTQ" : "GPTQ or AWQ";
    if (name.ends_with(".absmax") || name.ends_with(".quant_map") ||
        name.find(".quant_state.bitsandbytes__") != std::string::npos)
        return "bitsandbytes 4 bits";
    if (name.ends_with(".SCB")) return "bitsandbytes int8";
    if (name.ends_with(".weight_packed")) return "compressed-tensors";
    if (with(".scales", ".biases") || with(".scales", ".qbiases")) return "MLX";
    if (name.ends_with(".W_q")) return "HQQ";
    if (name.ends_with(".weight_scale_inv")) return "fp8 block";
    if (name.ends_with(".weight_scale")) return "fp8 or compressed-tensors";
    constexpr DataType small[] = {DataType::f8_e4m3,     DataType::f8_e5m2, DataType::f8_e8m0, DataType::f8_e4m3fnuz,
                                  DataType::f8_e5m2fnuz, DataType::f4,      DataType::f6_e2m3, DataType::f6_e3m2};
    if (std::find(std::begin(small), std::end(small), info.type) != std::end(small))
        return std::string(checkpoint::name(info.type));
    return "";
}

}  // namespace

std::optional<PackedWeights> find_packed(const nlohmann::json& config, const JsonView* companion,
                                         const std::map<std::string, TensorInfo>& stored, const TensorBytes& read) {
    PackedFinder finder(stored, read);
    auto settings = settings_in(config);
    if (settings && companion != nullptr) check_companion(settings->view, *companion);
    if (!settings && companion != nullptr) settings = QuantizationSettings{*companion, ""};
    if (!settings) {
        find_mxfp4(finder, nullptr);
        for (const auto& [name, info] : stored) {
            if (finder.consumed(name)) continue;
            if (const std::string sign = sign_of(info, stored); !sign.empty())
                throw Error(ErrorCode::mismatch, packed_place(name), "expected quantization_config in config.json",
                            "found none, and packed weights: " + sign);
        }
        if (finder.empty()) return std::nullopt;
        return finder.finish("MXFP4");
    }
    if (!settings->view.is_object())
        settings->view.refuse(ErrorCode::unsupported, "expected an object with quant_method");
    const std::string method = method_of(*settings);
    find_by_method(finder, settings->view, method);
    const bool empty = finder.empty();
    PackedWeights found = finder.finish(method);
    if (!empty) return found;
    if (method == "mxfp4") return std::nullopt;  // published in bfloat16 with the same configuration
    throw Error(ErrorCode::mismatch, settings->view.where(), "expected packed weights of " + method + " in the files",
                "found none");
}

}  // namespace headscope::checkpoint

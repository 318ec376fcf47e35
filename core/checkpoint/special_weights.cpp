// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/special_weights.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/base/process/os_error.h"

namespace headscope::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr const char* plain_wish = "expected weights that are not quantised";

bool is_set(const Json& object, const char* key) {
    const auto value = object.find(key);
    return value != object.end() && value->is_boolean() && value->get<bool>();
}

/// "4 bits", from the keys that writers use for it.
std::string bits_text(const Json& quantisation) {
    for (const char* key : {"bits", "w_bit", "nbits"}) {
        const auto value = quantisation.find(key);
        if (value != quantisation.end() && value->is_number_integer()) return value->dump() + " bits";
    }
    if (is_set(quantisation, "load_in_4bit") || is_set(quantisation, "_load_in_4bit")) return "4 bits";
    if (is_set(quantisation, "load_in_8bit") || is_set(quantisation, "_load_in_8bit")) return "8 bits";
    return "";
}

std::string method_text(const std::string& method) {
    constexpr const char* names[][2] = {{"awq", "AWQ"},
                                        {"gptq", "GPTQ"},
                                        {"bitsandbytes", "bitsandbytes"},
                                        {"bitsandbytes_4bit", "bitsandbytes"},
                                        {"bitsandbytes_8bit", "bitsandbytes"},
                                        {"fp8", "fp8 (numbers of 8 bits with a scale for each block)"},
                                        {"mxfp4", "MXFP4"}};
    for (const auto& [key, name] : names)
        if (method == key) return name;
    return escaped(method, 60);
}

/// Method named by a quantization_config; empty for experts in MXFP4.
std::optional<std::string> quantised_as(const std::string& key, const Json& quantisation) {
    std::string method;
    if (quantisation.is_object()) {
        const auto named = quantisation.find("quant_method");
        if (named != quantisation.end() && named->is_string()) method = named->get<std::string>();
        if (method == "mxfp4") return std::nullopt;
    }
    const std::string bits = quantisation.is_object() ? bits_text(quantisation) : "";
    if (!method.empty())
        method = method_text(method);
    else if (key == "compression_config")
        method = "compressed-tensors";
    else if (is_set(quantisation, "load_in_4bit") || is_set(quantisation, "load_in_8bit"))
        method = "bitsandbytes";
    else if (quantisation.is_object() && quantisation.contains("group_size") && quantisation.contains("bits"))
        method = "MLX";
    else
        method = "a method that it does not name";
    return "found a quantised model: " + method + (bits.empty() ? "" : ", " + bits);
}

std::optional<SpecialWeights> by_config(const Json& config, const std::string& where) {
    for (const char* key : {"quantization", "quantization_config", "compression_config"}) {
        const auto value = config.find(key);
        if (value == config.end() || value->is_null() || (value->is_object() && value->empty())) continue;
        if (auto found = quantised_as(key, *value)) return SpecialWeights{where + key, plain_wish, *std::move(found)};
    }
    const auto text = config.find("text_config");
    if (where == "config.json: " && text != config.end() && text->is_object())
        return by_config(*text, where + "text_config.");
    return std::nullopt;
}

bool is_float8(DataType type) {
    constexpr DataType types[] = {DataType::f8_e5m2, DataType::f8_e4m3, DataType::f8_e8m0, DataType::f8_e4m3fnuz,
                                  DataType::f8_e5m2fnuz};
    return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

/// Numbers that quantisers pack or scale, by the tensors that lie beside them.
std::string quantiser_of(const std::string& name, const TensorInfo& info, const Checkpoint& checkpoint) {
    const auto beside = [&](std::string_view end, const char* other) {
        return checkpoint.tensors().count(name.substr(0, name.size() - end.size()) + other) != 0;
    };
    if (name.ends_with(".qweight"))
        return beside(".qweight", ".g_idx") ? "GPTQ" : beside(".qweight", ".qzeros") ? "AWQ or GPTQ" : "GPTQ";
    if (name.ends_with(".absmax") || name.ends_with(".quant_map") ||
        name.find(".quant_state.bitsandbytes__") != std::string::npos)
        return "bitsandbytes, 4 bits";
    if (name.ends_with(".SCB")) return "bitsandbytes, 8 bits";
    if (name.ends_with(".weight_packed")) return "compressed-tensors";
    if (name.ends_with(".scales") && beside(".scales", ".biases")) return "MLX";
    if (name.ends_with(".weight_scale_inv")) return "fp8 (numbers of 8 bits with a scale for each block)";
    if (is_float8(info.type)) return "fp8 (" + std::string(checkpoint::name(info.type)) + ")";
    return "";
}

/// nanoGPT's linear weights are [out, in], those of transformers' GPT-2 [in, out] under the same name. Other families
/// have it too, and say so in config.json.
bool is_nanogpt(const std::string& name, const TensorInfo& info, const Json& config) {
    const auto type = config.find("model_type");
    return (type == config.end() || *type == "gpt2") && name.ends_with("transformer.h.0.attn.c_attn.weight") &&
           info.shape.size() == 2 && info.shape[1] > 0 && info.shape[0] / 3 == info.shape[1] && info.shape[0] % 3 == 0;
}

std::optional<SpecialWeights> by_tensors(const Checkpoint& checkpoint) {
    const auto place = [&](const std::string& name) {
        return shown(checkpoint.path()) + ", tensor \"" + escaped(name) + '"';
    };
    for (const auto& [name, info] : checkpoint.tensors()) {
        if (name.find(".base_layer.") != std::string::npos) {
            return SpecialWeights{place(name), "expected the weights of a plain model",
                                  "found a model that was saved with an adapter around its layers (PEFT): merge it "
                                  "(merge_and_unload) and save it again, or open its base with --adapter"};
        }
        if (name.find(".lora_A.") != std::string::npos || name.find(".lora_embedding_A") != std::string::npos) {
            return SpecialWeights{place(name), "expected the weights of a whole model",
                                  "found those of a LoRA adapter: open its base with --adapter"};
        }
        if (const std::string quantiser = quantiser_of(name, info, checkpoint); !quantiser.empty())
            return SpecialWeights{place(name), plain_wish, "found a quantised model: " + quantiser};
        if (is_nanogpt(name, info, checkpoint.config())) {
            return SpecialWeights{place(name), "expected GPT-2's weights [in, out] as transformers has them",
                                  "found [out, in]: a nanoGPT checkpoint (model_args), which must be converted for "
                                  "transformers first"};
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<SpecialWeights> special_weights(const Checkpoint& checkpoint) {
    if (auto special = by_config(checkpoint.config(), "config.json: ")) return special;
    return by_tensors(checkpoint);
}

}  // namespace headscope::checkpoint

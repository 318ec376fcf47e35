// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/token_types.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/base/io/input_file.h"

namespace headscope::tokenizer {
namespace {

constexpr std::uint64_t kLargestSettings = std::uint64_t{16} << 20U;

// transformers 5.23; tests/core/tokenizer/test_token_types.cpp compares these lists with its own.

/// Tokenizer classes whose model_input_names have token_type_ids.
constexpr std::string_view kTypedClasses[] = {
    "BertTokenizer",
    "CanineTokenizer",
    "ConvBertTokenizer",
    "DPRContextEncoderTokenizer",
    "DPRQuestionEncoderTokenizer",
    "DebertaTokenizer",
    "DebertaV2Tokenizer",
    "ElectraTokenizer",
    "FNetTokenizer",
    "LayoutLMTokenizer",
    "LayoutLMv2Tokenizer",
    "LxmertTokenizer",
    "MarkupLMTokenizer",
    "MobileBertTokenizer",
    "SqueezeBertTokenizer",
    "TapasTokenizer",
};

/// Model types that are registered with one of them: with BertTokenizer, but for some that are not built.
constexpr std::string_view kTypedModels[] = {
    "align",        "bark",       "bert",       "blip",       "bros",          "canine",
    "chinese_clip", "convbert",   "deberta",    "deberta-v2", "distilbert",    "dpr",
    "electra",      "ernie",      "flava",      "fnet",       "git",           "grounding-dino",
    "layoutlm",     "layoutlmv2", "lxmert",     "markuplm",   "megatron-bert", "mm-grounding-dino",
    "mobilebert",   "nezha",      "nomic_bert", "qdqbert",    "realm",         "retribert",
    "squeezebert",  "tapas",      "tvp",        "vilt",       "visual_bert",
};

/// Model types that read a tokenizer.json by the plain backend, whatever other class a file names: those registered
/// with it, and those whose published files name a wrong class.
constexpr std::string_view kPlainModels[] = {
    "EvollaModel",
    "arctic",
    "aria",
    "beam",
    "bigbird_pegasus",
    "camembertv2-base",
    "canary",
    "chatlm",
    "cohere_asr",
    "ernie4_5",
    "ernie4_5_moe",
    "flex_olmo",
    "fuyu",
    "glm",
    "glm4",
    "glm4_moe",
    "glm4_moe_lite",
    "glm4v",
    "glm4v_moe",
    "glm_image",
    "glmasr",
    "got_ocr2",
    "gpt_bigcode",
    "gradium_phonon_tts",
    "granite",
    "granitemoe",
    "granitemoehybrid",
    "granitemoeshared",
    "h2ovl_chat",
    "hyperclovax",
    "hyperclovax_vision_v2",
    "hyperclovax_vlm",
    "internlm2",
    "internlm3",
    "iquestcoder",
    "jamba",
    "kimi_k25",
    "kimi_linear",
    "kosmos-2",
    "llava",
    "llava_next",
    "mimo_v2_flash",
    "minicpm3",
    "minicpm_ocr",
    "minicpmv",
    "minicpmv4_6",
    "minicpmv4_7",
    "minimax_m2",
    "ministral",
    "ministral3",
    "mistral",
    "mistral3",
    "mistral_large4",
    "mixtral",
    "modernbert",
    "modernbert-decoder",
    "molmo",
    "molmo2",
    "nemo_speechlm",
    "nemotron",
    "nvfp4",
    "nystromformer",
    "olmo2",
    "olmo3",
    "olmo_hybrid",
    "opencua",
    "openvla",
    "paddleocr_vl",
    "pegasus_x",
    "persimmon",
    "phi3",
    "phi3_v",
    "phimoe",
    "pix2struct",
    "pixtral",
    "pocket_tts",
    "qwen2",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen4_exp",
    "siglip2",
    "smolvlm",
    "stablelm",
    "step3_vl",
    "umt5",
    "vipllava",
    "voxtral",
    "voxtral_realtime",
    "xlm-roberta-xl",
};

constexpr std::string_view kPlainClasses[] = {"TokenizersBackend", "PythonBackend", "PreTrainedTokenizer",
                                              "MistralCommonBackend"};

template <class List>
bool contains(const List& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

/// A class without the "Fast" that transformers drops.
std::string class_in(const JsonView& file) {
    const auto found = file.is_object() ? file.find("tokenizer_class") : std::nullopt;
    std::string name = found && found->is_string() ? found->string() : "";
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    return name;
}

}  // namespace

std::string chosen_tokenizer_class(const JsonView& tokenizer_config, const JsonView& config) {
    std::string name = class_in(tokenizer_config);
    if (name.empty()) name = class_in(config);
    const auto type = config.is_object() ? config.find("model_type") : std::nullopt;
    const std::string model = type && type->is_string() ? type->string() : "";
    if (name.empty()) {
        const auto found = std::find(std::begin(kTypedModels), std::end(kTypedModels), model);
        return found == std::end(kTypedModels) ? "" : "BertTokenizer";
    }
    // Code of its own is never run, and what it is for is not overruled.
    const bool own_code = tokenizer_config.is_object() && tokenizer_config.has("auto_map");
    const bool plain = contains(kPlainClasses, name) || (!own_code && contains(kPlainModels, model));
    return plain ? "" : name;
}

bool gives_token_types(const JsonView& tokenizer_config, const JsonView& config) {
    const auto names = tokenizer_config.is_object() ? tokenizer_config.find("model_input_names") : std::nullopt;
    if (!names) return contains(kTypedClasses, chosen_tokenizer_class(tokenizer_config, config));
    const std::vector<std::string> inputs = names->strings();
    return contains(inputs, "token_type_ids");
}

bool gives_token_types(const std::filesystem::path& folder) {
    const FolderSettings settings(folder);
    return gives_token_types(settings.tokenizer_config(), settings.config());
}

FolderSettings::FolderSettings(const std::filesystem::path& folder)
    : tokenizer_config_(nlohmann::json::object()), config_(nlohmann::json::object()) {
    const std::filesystem::path own = folder / "tokenizer_config.json", model = folder / "config.json";
    where_ = escaped(own.string());
    if (ends_at_regular_file(own)) tokenizer_config_ = read_json_file(own, kLargestSettings, "tokenizer configuration");
    try {
        if (ends_at_regular_file(model)) config_ = read_python_json_file(model, kLargestSettings, "configuration");
    } catch (const Error&) {
        config_ = nlohmann::json::object();
    }
}

}  // namespace headscope::tokenizer

// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/adapter_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace headscope::checkpoint {
namespace {

void erase_all(std::string& text, std::string_view part) {
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
        text.erase(at, part.size());
}

/// Members that models are wrapped in; files have more or fewer of them than the module that was adapted.
constexpr std::string_view wrappers[] = {"model",  "transformer", "language_model", "backbone", "bert",      "roberta",
                                         "albert", "distilbert",  "gpt_neox",       "decoder",  "text_model"};
constexpr std::string_view added[] = {
    "",         "model.",  "transformer.", "language_model.", "language_model.model.", "model.language_model.", "bert.",
    "roberta.", "albert.", "distilbert.",  "gpt_neox."};

}  // namespace

AdapterPart part_of(const std::string& written, const std::string& where) {
    std::string name = written;
    constexpr std::string_view before = "base_model.model.";
    if (name.starts_with(before)) name.erase(0, before.size());
    constexpr std::pair<std::string_view, AdapterPart::Kind> ends[] = {
        {".lora_A.weight", AdapterPart::Kind::a},
        {".lora_B.weight", AdapterPart::Kind::b},
        {".lora_A.default.weight", AdapterPart::Kind::a},
        {".lora_B.default.weight", AdapterPart::Kind::b},
        {".lora_embedding_A", AdapterPart::Kind::embedding_a},
        {".lora_embedding_B", AdapterPart::Kind::embedding_b},
        {".lora_embedding_A.default", AdapterPart::Kind::embedding_a},
        {".lora_embedding_B.default", AdapterPart::Kind::embedding_b}};
    for (const auto& [end, kind] : ends) {
        if (!name.ends_with(end)) continue;
        name.resize(name.size() - end.size());
        return {name, kind};
    }
    if (name.find(".original_module.") != std::string::npos) return {name, AdapterPart::Kind::copy};
    for (const char* unknown : {".lora_", ".token_adapter."}) {
        if (name.find(unknown) == std::string::npos) continue;
        throw Error(
            ErrorCode::unsupported, where + ", tensor \"" + escaped(written) + '"',
            "expected lora_A, lora_B, lora_embedding_A, lora_embedding_B, a bias or a module that was saved whole",
            unknown == std::string_view(".lora_") && name.find("magnitude") != std::string::npos
                ? "found DoRA's magnitudes, which are not built"
                : "found another");
    }
    for (const char* wrapped : {".modules_to_save.default", ".modules_to_save", ".base_layer"})
        erase_all(name, wrapped);
    return {name, AdapterPart::Kind::whole};
}

std::string find_tensor(const std::map<std::string, TensorInfo>& tensors, const std::string& wanted) {
    std::size_t start = 0;
    while (true) {
        for (const std::string_view before : added) {
            std::string name = std::string(before) + wanted.substr(start);
            if (tensors.count(name) != 0) return name;
        }
        const std::size_t dot = wanted.find('.', start);
        if (dot == std::string::npos ||
            std::find(std::begin(wrappers), std::end(wrappers), std::string_view(wanted).substr(start, dot - start)) ==
                std::end(wrappers))
            return "";
        start = dot + 1;
    }
}

}  // namespace headscope::checkpoint

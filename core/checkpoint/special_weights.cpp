// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/special_weights.h"

#include <nlohmann/json.hpp>

#include "core/base/process/os_error.h"

namespace headscope::checkpoint {
namespace {

using Json = nlohmann::json;

/// nanoGPT's linear weights are [out, in], those of transformers' GPT-2 [in, out] under the same name. Other families
/// have it too, and say so in config.json.
bool is_nanogpt(const std::string& name, const TensorInfo& info, const Json& config) {
    const auto type = config.find("model_type");
    return (type == config.end() || *type == "gpt2") && name.ends_with("transformer.h.0.attn.c_attn.weight") &&
           info.shape.size() == 2 && info.shape[1] > 0 && info.shape[0] / 3 == info.shape[1] && info.shape[0] % 3 == 0;
}

}  // namespace

std::optional<SpecialWeights> special_weights(const Checkpoint& checkpoint) {
    if (const Error* fault = checkpoint.quantization_fault())
        return SpecialWeights{fault->where(), fault->expected(), fault->found(), fault->code()};
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
        if (is_nanogpt(name, info, checkpoint.config())) {
            return SpecialWeights{place(name), "expected GPT-2's weights [in, out] as transformers has them",
                                  "found [out, in]: a nanoGPT checkpoint (model_args), which must be converted for "
                                  "transformers first"};
        }
    }
    return std::nullopt;
}

}  // namespace headscope::checkpoint

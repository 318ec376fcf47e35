// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// config.json of what Headscope writes (docs/file-formats.md, "Native checkpoints").

#include <string>

#include <ATen/core/ScalarType.h>
#include <nlohmann/json_fwd.hpp>

#include "core/model/config.h"

namespace headscope::model {

/// The native format's model_type; and the key beside another model_type under which the native configuration of a
/// stack lies that is written under transformers' names.
inline constexpr const char *kNativeFamily = "headscope", *kNativeInside = "headscope";

/// model_type of the transformers class (bert, gpt2, bart) that computes this native stack under other tensor names;
/// else empty.
std::string foreign_layout(const ModelConfig& config);
/// Gives both towers that layout, with what it has otherwise (BART's two rows of positions before the first).
void set_layout(ModelConfig& config, const std::string& layout);

/// The model_type under which transformers would compute the same from the same tensors: of a native stack that is
/// a pre-norm decoder with RMS norms and `standard` throughout, with rotary positions, qwen2 (biases), qwen3 (norms of
/// query and key) or llama (neither; mistral without a window where the heads do not divide the hidden size); empty for
/// other native stacks.
std::string transformers_type(const ModelConfig& config);

/// The native format with every choice written out. Keeps keys of `config.original_json` that the stack does not read
/// (bos_token_id and the like). Throws unsupported for a model that the format cannot express: another norm, windows, a
/// parallel residual, ...
nlohmann::json native_json(const ModelConfig& config);

/// config.json of a saved model: that of a transformers family as it was read; else native_json() or, if
/// transformers_type() names a family, that one's; for a stack with a layout that class's, with the native one inside
/// (kNativeInside). With dtype and architectures filled in.
nlohmann::json saved_json(const ModelConfig& config, at::ScalarType type);

}  // namespace headscope::model

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/packed/packed_tensor.h"

namespace headscope::checkpoint {

/// A packed tensor and the places of its parts.
struct PackedSource {
    std::shared_ptr<const PackedTensor> tensor;
    /// The model's tensor is `tensor` with its last two dimensions exchanged: gpt-oss's experts, GPT-2's maps in GGUF.
    bool transposed = false;
    std::string type;               ///< of the part with the most bytes: "Q4_K", "I32"
    std::vector<TensorInfo> parts;  ///< in the order of PackedTensor::parts()
};

/// The entry of the model's tensor.
TensorInfo packed_info(const std::string& name, PackedSource source);

/// Entry `index` of the first dimension of a tensor, as one of its own, of the same name: one expert of a stack. Empty
/// where it does not lie in the files by itself.
std::optional<TensorInfo> entry_of(const TensorInfo& stack, std::int64_t index);

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Recognizes quantized safetensors: which stored tensors are parts of which matrix, by names, shapes and the
// configuration. Formats: GPTQ, AWQ, bitsandbytes, compressed-tensors, modelopt NVFP4, fp8, MXFP8, MXFP4 experts, MLX, HQQ.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/packed/packed_tensor.h"

namespace headscope {
class JsonView;
}

namespace headscope::checkpoint {

/// Reads all bytes of a stored tensor. Called for small ones only: shapes, flags, texts, zero points.
using TensorBytes = std::function<std::vector<std::byte>(const std::string& tensor)>;

struct PackedWeights {
    std::string format;  ///< "GPTQ 4 bits"; that of the most bytes where modules differ
    /// By logical name, "model.layers.0.mlp.down_proj.weight". Experts in MXFP4 have the name without "_blocks", and
    /// are [experts, out, in]: transposed against the parameter of that name.
    std::map<std::string, std::shared_ptr<const PackedTensor>> tensors;
    /// Stored tensors that are parts, and those that have no effect on the weights (input scales).
    std::set<std::string> consumed;
};

/// Empty for weights that are not quantized. `config` is config.json; `companion` is quantize_config.json or
/// quant_config.json, null if there is none. Throws Error with tensor or key as place: mismatch for missing parts,
/// wrong types and shapes, and keys that contradict each other or the tensors; unsupported for methods and variants
/// that are not read; format and limit for values of the wrong type or range.
std::optional<PackedWeights> find_packed(const nlohmann::json& config, const JsonView* companion,
                                         const std::map<std::string, TensorInfo>& stored, const TensorBytes& read);

}  // namespace headscope::checkpoint

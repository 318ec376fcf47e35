// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Replaces the stored tensors of quantized weights by the tensors of the model.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/io/input_file.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// `tensors` of `files`, stored in `folder`, become the model's where `config` or the tensors themselves announce
/// quantized weights (find_packed.h), and `config` loses the keys that describe them. Returns the format; empty where
/// nothing is packed.
std::string unpack_names(nlohmann::json& config, const std::filesystem::path& folder,
                         const std::vector<InputFile>& files, std::map<std::string, TensorInfo>& tensors);

}  // namespace headscope::checkpoint

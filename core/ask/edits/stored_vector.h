// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

namespace headscope::ask {

struct StoredVectors {
    at::Tensor one;                               ///< float32, of all layers; undefined: by_layer
    std::map<std::int64_t, at::Tensor> by_layer;  ///< [d] float32 for the output of these blocks
};

/// A tensor of a safetensors file by its name `key` (which may be left out where there is one), or the directions of a
/// control vector of llama.cpp: direction.N belongs to the output of block N. Throws Error.
StoredVectors read_vectors(const std::filesystem::path& path, const std::string& key);

/// A control vector as llama.cpp's cvector-generator writes it: a tensor direction.N for each layer N from 1 on, and
/// `hint`, the model's type. The directions are float32 [d] of one size. Replaces `path` as OutputFile does.
void write_control_vector(const std::filesystem::path& path, const std::map<std::int64_t, at::Tensor>& by_layer,
                          const std::string& hint, std::span<const std::filesystem::path> inputs = {});

}  // namespace headscope::ask

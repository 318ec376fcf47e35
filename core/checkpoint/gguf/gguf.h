// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model in a GGUF file (llama.cpp), under the configuration keys and tensor names of transformers.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/io/input_file.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/gguf/header.h"
#include "core/checkpoint/packed/packed_tensor.h"
#include "core/checkpoint/gguf/tokenizer_documents.h"

namespace headscope::checkpoint {

/// True for a file that begins with GGUF, of any version.
bool is_gguf(const InputFile& file);

struct GgufModel {
    std::vector<InputFile> files;
    gguf::Metadata metadata;
    std::map<std::string, gguf::Tensor> stored;  ///< by GGUF's names; Tensor::file counts in `files`
    nlohmann::json config;                       ///< config.json of the family
    /// By transformers' names, all packed: the names of their parts are those of `stored`.
    std::map<std::string, TensorInfo> tensors;
    std::vector<std::string> notes;  ///< one line each, escaped
    std::string format;              ///< "GGUF Q4_K": the type with the most bytes
};

/// Opens a file or any shard of a model. Every key that changes the computation is read or refused by name, and every
/// stored tensor has its place in the model. Errors: format, mismatch, unsupported, limit, io.
GgufModel open_gguf(const std::filesystem::path& path);

/// Empty where the file has no vocabulary. Takes a second for the largest ones. Errors: format; unsupported for models,
/// splits (tokenizer.ggml.pre) and settings that are not read.
std::optional<TokenizerDocuments> gguf_tokenizer(const gguf::Metadata& metadata);

}  // namespace headscope::checkpoint

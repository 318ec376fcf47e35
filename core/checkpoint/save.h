// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "core/base/progress.h"
#include "core/checkpoint/safetensors_writer.h"

namespace headscope::checkpoint {

/// A tensor to be saved and where its bytes come from.
struct OutputTensor {
    using Sink = std::function<void(const void* bytes, std::size_t size)>;
    TensorPlan plan;
    std::function<void(const Sink& sink)> write;  ///< hands all bytes, in order, to the sink
};

/// A tensor in memory, as it is; made contiguous on the CPU when it is written. Error unsupported for types that
/// safetensors lacks.
OutputTensor output_tensor(std::string name, const at::Tensor& tensor);
/// The same under another shape with as many elements.
OutputTensor output_tensor(std::string name, const at::Tensor& tensor, std::vector<std::int64_t> shape);

struct SaveRequest {
    std::filesystem::path destination;              ///< a new or an empty folder
    const nlohmann::json* config = nullptr;         ///< config.json; none is written without
    std::vector<OutputTensor> tensors;              ///< in the order in which shards are to be filled
    std::vector<std::filesystem::path> side_files;  ///< copied under their own base names: tokenizer.json, ...
    std::map<std::string, std::string> texts;       ///< further files by base name
    /// Further safetensors files by base name: what belongs to the weights but is none (an optimiser's state).
    std::map<std::string, std::vector<OutputTensor>> side_tensors;
    std::vector<std::filesystem::path> input_folders;  ///< must not be the destination
    std::uint64_t shard_bytes = 5'000'000'000;         ///< a file's tensors; a larger tensor gets a file of its own
};

/// Writes a checkpoint folder: model.safetensors, or shards model-00001-of-0000N.safetensors with their index;
/// config.json; the side files; manifest.json, which holds size and SHA-256 of each of them. Written aside, read back
/// (headers and sizes), synced, renamed: whole or not at all. Memory: a piece of a tensor at a time. Returns the bytes
/// of all files. Errors: io, usage; Stopped. Threads: the caller's.
std::uint64_t save_checkpoint(const SaveRequest& request, Progress& progress, const Cancellation& cancellation);

/// Writes `source` as a new checkpoint folder whose floating-point tensors have the type `as` (integers and booleans
/// stay as they are), with its configuration (dtype adapted), tokenizer and other side files.
/// Quantized tensors are written as numbers, a tokenizer in a GGUF file as tokenizer.json.
/// Errors besides save_checkpoint's: limit for a value too large for the type.
void convert(const Checkpoint& source, const std::filesystem::path& destination, LoadAs as, Progress& progress,
             const Cancellation& cancellation, std::uint64_t shard_bytes = SaveRequest{}.shard_bytes);

}  // namespace headscope::checkpoint

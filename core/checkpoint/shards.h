// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Weight files with all their tensors.
struct Weights {
    std::vector<InputFile> files;
    std::map<std::string, TensorInfo> tensors;      ///< TensorInfo::file counts in `files`
    std::map<std::string, std::string> unreadable;  ///< Checkpoint::unreadable
    std::vector<std::string> notes;                 ///< Checkpoint::notes
};

/// One weight file, safetensors or PyTorch's, by its bytes. Everything about its tensors is checked, none is
/// read.
Weights open_single(const std::filesystem::path& path);

/// An index of shards (NAME.safetensors.index.json, pytorch_model.bin.index.json): a JSON object whose weight_map gives
/// the file of each tensor, next to the index. File names must be plain base names; links to regular files are
/// followed. Each shard must exist and hold every tensor mapped to it; all missing ones are reported at once. Tensors
/// beyond the map are read too, with a note; no tensor may be in two shards. `metadata` is not read: total_size is
/// wrong in many working files. Errors: format, limit, io, mismatch.
Weights open_sharded(const std::filesystem::path& index);

/// True for a name that stays in its folder: not empty, not "." or "..", without slash, backslash or NUL.
bool is_base_name(std::string_view name);

}  // namespace headscope::checkpoint

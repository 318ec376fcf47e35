// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/input_file.h"
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

/// An index of shards (NAME.safetensors.index.json, pytorch_model.bin.index.json): a JSON object whose weight_map says
/// in which file beside the index each tensor lies. File names must be plain base names (links that end at regular
/// files are followed). Each shard must be there and hold every tensor that the map gives it; what is missing is told
/// all at once. What a shard holds beyond the map is read too, and told in a note; no tensor may be in two shards.
/// `metadata` is not read: total_size is wrong in many files that work.
/// Errors: format, limit, io, mismatch.
Weights open_sharded(const std::filesystem::path& index);

/// True for a name that stays in its folder: not empty, not "." or "..", without slash, backslash or NUL.
bool is_base_name(std::string_view name);

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The header of one GGUF file, and of all shards of a model.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/checkpoint/gguf/block_type.h"
#include "core/checkpoint/gguf/metadata.h"

namespace headscope::checkpoint::gguf {

/// The largest header that is read. The largest vocabularies take 20 MB.
constexpr std::uint64_t kLargestHeader = 256U << 20U;

struct Tensor {
    std::string name;
    BlockType type = BlockType::f32;
    std::vector<std::int64_t> shape;  ///< slowest first: rows, then columns; empty for one number
    std::size_t file = 0;
    std::uint64_t begin = 0;  ///< byte offset in that file
    std::uint64_t bytes = 0;
};

struct Header {
    std::uint32_t version = 0;
    Metadata metadata;
    std::map<std::string, Tensor> tensors;
};

/// Reads and checks the header, with checked arithmetic and no memory that the file's bytes do not justify. Versions 2
/// and 3, little-endian. Rows are whole blocks; tensors lie at multiples of general.alignment within the file, none
/// over another. Errors: format; unsupported for other versions, big-endian files and types that are not read; limit
/// for a header above kLargestHeader, more than 500 000 tensors, 100 000 keys or 4 000 000 strings.
Header read_header(const InputFile& file);

/// A model's files and what all their headers say together.
struct Files {
    std::vector<InputFile> files;
    Metadata metadata;
    std::map<std::string, Tensor> tensors;  ///< Tensor::file counts in `files`
};

/// Opens `path`, and where it is one of several (split.count) all of them: NAME-00001-of-00003.gguf next to it. The
/// first one's keys are the model's; a later one may repeat them. Errors: as read_header; mismatch for shards that do
/// not belong together; io for missing ones.
Files open_files(const std::filesystem::path& path);

}  // namespace headscope::checkpoint::gguf

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/io/input_file.h"

namespace headscope::checkpoint {

/// The formats of weights that are read.
enum class WeightFormat {
    safetensors,
    pytorch,  ///< a zip archive, whether torch.save wrote it is seen inside; or a file of before version 1.6
};

/// A kind of file that is neither but often lies where weights are looked for.
struct OtherKind {
    ErrorCode code = ErrorCode::unsupported;
    std::string found;  ///< "found a GGUF file (llama.cpp)"
};

/// Recognises by its first bytes what else a file is; empty if it is or may be safetensors or PyTorch's.
std::optional<OtherKind> recognise_other(std::string_view first_bytes, std::uint64_t file_size);

/// The same for any file; empty for one that cannot be read.
std::optional<OtherKind> recognise_other(const std::filesystem::path& path);

/// Which of the formats a file has, by its first bytes; safetensors when nothing else is recognised. Throws
/// [path] expected a weight file ...; found a ... if it is known to be something else.
WeightFormat recognise_weights(const InputFile& file);

}  // namespace headscope::checkpoint

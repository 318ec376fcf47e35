// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/input_file.h"

namespace headscope::checkpoint {

/// A kind of file that is no safetensors file but often lies where one is looked for.
struct OtherKind {
    ErrorCode code = ErrorCode::unsupported;
    std::string found;  ///< "found a GGUF file (llama.cpp)"
};

/// Recognises by its first bytes what else a file is; empty if it is or may be safetensors.
std::optional<OtherKind> recognise_other(std::string_view first_bytes, std::uint64_t file_size);

/// Throws [path] expected a safetensors file; found a ... if the file is recognised as something else.
void require_safetensors(const InputFile& file);

}  // namespace headscope::checkpoint

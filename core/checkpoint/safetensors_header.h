// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

#include "core/base/io/input_file.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// The largest header that the format allows.
constexpr std::uint64_t largest_header = 100'000'000;

/// Header of a safetensors file, checked against the file's size.
struct SafetensorsHeader {
    std::map<std::string, TensorInfo> tensors;    ///< `begin` counts from the file's start; `file` is 0
    std::map<std::string, std::string> metadata;  ///< `__metadata__`
};

/// Reads and checks the header. Enforced, with checked arithmetic: 2 <= N <= 100 000 000 and 8 + N <= file size; one
/// strict JSON object (read_json_events); no key twice at any level; `__metadata__` from strings to strings; each entry
/// exactly dtype, shape, data_offsets; sizes and offsets whole numbers; bytes = shape times type, a whole number; the
/// tensors lie in the file without hole or overlap, from the header's end to the file's end. Rank 0 and tensors without
/// elements are legal. White space around the header's object is accepted.
/// Errors: format; unsupported for an unknown element type; limit for more than 64 dimensions or 500 000 tensors.
SafetensorsHeader read_safetensors_header(const InputFile& file);

}  // namespace headscope::checkpoint

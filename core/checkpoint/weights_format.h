// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// How a file stores its weights, by the type with the most bytes: "bfloat16", "float32"; of quantized weights their
/// format, "GGUF Q4_K".
std::string weights_format(const Checkpoint& file);

}  // namespace headscope::checkpoint

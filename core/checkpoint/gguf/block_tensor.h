// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/checkpoint/gguf/header.h"
#include "core/checkpoint/packed/packed_tensor.h"

namespace headscope::checkpoint::gguf {

/// A stored tensor as float32, bit-equal to gguf 0.19's dequantize. `place` begins errors: a file's path. Throws Error
/// unsupported for integers and F64.
std::unique_ptr<PackedTensor> block_tensor(const Tensor& tensor, const std::string& place);

}  // namespace headscope::checkpoint::gguf

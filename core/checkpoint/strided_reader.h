// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/file_pieces.h"

namespace headscope::checkpoint {

/// Reads a tensor whose elements do not follow each other in the file (TensorInfo::strides) into `to`, a contiguous
/// tensor of its shape and any type, converting. The file is read in blocks of at most 4 MB, cut along the dimension
/// with the largest stride: a transposed matrix is read front to back, once, with nothing but a block beside the
/// result. Where a block would be mostly gaps, smaller ones are read, down to single elements: at most 8 times the
/// tensor's bytes and 4 kB for each element.
void read_strided(FilePieces& pieces, const TensorInfo& info, const at::Tensor& to);

}  // namespace headscope::checkpoint

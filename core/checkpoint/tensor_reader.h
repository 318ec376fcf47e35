// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "core/base/io/input_file.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// A tensor's values in memory as `type`, contiguous, on the CPU: read straight into its storage, or through a buffer
/// of a few megabytes if they are converted or not adjacent in the file. `info` must come from the checked header of
/// `file`. Checks the file's checksum of just these bytes, if it has one. `not_finite`, if given, receives the count of
/// NaN and infinite numbers, taken piece by piece: 5 % of the time of a cached load.
/// Errors: io; mismatch if the file changed; format for a checksum; unsupported for types that LibTorch lacks; memory.
at::Tensor load_tensor(const InputFile& file, const TensorInfo& info, DataType type, const Cancellation& cancellation,
                       std::int64_t* not_finite = nullptr);
/// The same into `into`, which is contiguous, on the CPU, of as many numbers, and gives their type.
void load_tensor_into(const InputFile& file, const TensorInfo& info, const at::Tensor& into,
                      const Cancellation& cancellation, std::int64_t* not_finite = nullptr);
/// Row `row` of a matrix as stored, [1, columns]. Reads no more than that where the file allows.
at::Tensor load_row(const InputFile& file, const TensorInfo& info, std::int64_t row, const Cancellation& cancellation);
/// load_tensor, as stored, in a brief_tensor().
at::Tensor load_briefly(const InputFile& file, const TensorInfo& info, const Cancellation& cancellation);

/// Uninitialized bytes in pages outside the heap, which keeps freed memory (app/main.cpp). Only pages that are written
/// take memory. Throws std::bad_alloc.
at::Tensor mapped_bytes(std::int64_t size);
/// An uninitialized tensor for a short time, in mapped_bytes() if it is large. Freed in the heap, it would leave a gap
/// between weights: a small allocation takes a part of it, and no tensor of that size fits again.
at::Tensor brief_tensor(const std::vector<std::int64_t>& shape, c10::ScalarType type);

/// Throws limit at `where` if a finite number of `from` became infinite in `to`, which is of `type`.
void expect_in_range(const std::string& where, const at::Tensor& from, const at::Tensor& to, DataType type);

/// Hands a tensor's bytes, converted to `type` where that differs, to `sink` in order and in pieces of a few megabytes.
/// A tensor with strides is held in memory meanwhile.
/// Throws limit where a finite value would become infinite in `type`.
void stream_tensor(const InputFile& file, const TensorInfo& info, DataType type, const Cancellation& cancellation,
                   const std::function<void(const void* bytes, std::size_t size)>& sink);

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

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

/// Throws limit at `where` if a finite number of `from` became infinite in `to`, which is of `type`.
void expect_in_range(const std::string& where, const at::Tensor& from, const at::Tensor& to, DataType type);

/// Hands a tensor's bytes, converted to `type` where that differs, to `sink` in order and in pieces of a few megabytes.
/// A tensor with strides is held in memory meanwhile.
/// Throws limit where a finite value would become infinite in `type`.
void stream_tensor(const InputFile& file, const TensorInfo& info, DataType type, const Cancellation& cancellation,
                   const std::function<void(const void* bytes, std::size_t size)>& sink);

}  // namespace headscope::checkpoint

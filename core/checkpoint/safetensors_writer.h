// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/io/output_file.h"
#include "core/base/io/sha256.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// A tensor to be written.
struct TensorPlan {
    std::string name;
    DataType type = DataType::f32;
    std::vector<std::int64_t> shape;
};

/// The order in which a safetensors file holds tensors: wide types first, then by name, as the official library writes
/// them, so that every tensor is aligned to its elements. Indices into `tensors`.
std::vector<std::size_t> file_order(const std::vector<TensorPlan>& tensors);

/// Writes one safetensors file, the header at once and then the tensors' bytes as they come.
/// Errors: io; usage for a name twice, `__metadata__` as a name, or a shape that is no whole number of bytes; limit for
/// a header beyond the format's limit; internal if other bytes were given than announced.
class SafetensorsWriter {
public:
    /// `tensors` in file_order.
    SafetensorsWriter(OutputFile& file, const std::vector<TensorPlan>& tensors,
                      const std::map<std::string, std::string>& metadata);

    /// The next bytes of the tensors' data, in the order of `tensors`.
    void append(const void* bytes, std::size_t size);

    /// Checks that all announced bytes came. Returns the file's SHA-256 in hex; size() is then the file's size.
    std::string finish();
    std::uint64_t size() const noexcept { return written_; }

private:
    void put(const void* bytes, std::size_t size);

    OutputFile& file_;
    Sha256 hash_;
    std::uint64_t announced_ = 0;  ///< the whole file's bytes
    std::uint64_t written_ = 0;
};

}  // namespace headscope::checkpoint

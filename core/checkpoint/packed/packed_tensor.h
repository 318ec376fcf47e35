// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A tensor that a file holds in packed form: several stored tensors (numbers, scales, zero points) that are one matrix
// of float32. Pure functions of bytes: no files, no LibTorch. Threads: const members from several at once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headscope::checkpoint {

/// One stored tensor of a packed one, in the order that its format asks for.
struct PackedPart {
    std::string tensor;               ///< its name in the file
    std::vector<std::int64_t> shape;  ///< as stored
    std::uint64_t bytes = 0;
    std::uint64_t begin = 0;  ///< byte of that tensor, for a part of one
};

/// Rows that lie in a part as whole blocks of one of GGUF's types.
struct BlockRows {
    std::uint32_t type = 0;  ///< GGUF's number
    std::int64_t bytes = 0;  ///< of a row
};

class PackedTensor {
public:
    virtual ~PackedTensor() = default;

    /// The unpacked tensor's: [out, in], or [experts, out, in].
    const std::vector<std::int64_t>& shape() const { return shape_; }
    const std::vector<PackedPart>& parts() const { return parts_; }
    /// Rows of the unpacked tensor, all dimensions but the last multiplied; and the last.
    std::int64_t rows() const;
    std::int64_t columns() const;

    /// Rows [first, first + count) as float32, row by row. `parts` holds the whole bytes of each part. Dequantized in
    /// float32, in the order of products and sums that the specification gives.
    virtual void unpack(const std::vector<std::span<const std::byte>>& parts, std::int64_t first, std::int64_t count,
                        float* into) const = 0;

    /// Throws Error(format) with the tensor's name where a part's content is not legal: an index past the groups, a
    /// scale that is NaN or infinite. Once per tensor, before unpack.
    virtual void check(const std::vector<std::span<const std::byte>>& parts) const = 0;

    /// Empty where rows are made of anything else.
    virtual std::optional<BlockRows> block_rows() const { return std::nullopt; }
    /// A row's blocks among `parts`, where block_rows() is not empty; null otherwise.
    virtual const std::byte* blocks_of_row(const std::vector<std::span<const std::byte>>&, std::int64_t) const {
        return nullptr;
    }

    /// Entry `index` of the first dimension, as a tensor of its own whose parts are only the bytes that it needs: one
    /// expert of a stack. Null where the parts cannot be divided.
    virtual std::shared_ptr<const PackedTensor> entry(std::int64_t) const { return nullptr; }

protected:
    /// Shape without the first dimension, and one of its equal pieces of a part.
    std::vector<std::int64_t> entry_shape() const;
    PackedPart entry_part(std::size_t part, std::int64_t index) const;

    PackedTensor(std::vector<std::int64_t> shape, std::vector<PackedPart> parts);

private:
    std::vector<std::int64_t> shape_;
    std::vector<PackedPart> parts_;
};

}  // namespace headscope::checkpoint

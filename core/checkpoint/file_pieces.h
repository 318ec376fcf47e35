// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/base/io/input_file.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"

namespace headscope::checkpoint {

/// Bytes that are read at once, between two looks at the cancellation.
constexpr std::uint64_t piece_bytes = 4U << 20U;

/// Reads the pieces of one tensor and checks them on the way against the checksum of the bytes around it, if that is
/// known and the pieces are exactly those bytes, in order. A part of a storage is read without this check.
class FilePieces {
public:
    FilePieces(const InputFile& file, const TensorInfo& info, const Cancellation& cancellation);

    /// Bytes from `offset` of the file. Errors: as InputFile::read; Stopped.
    void read(std::uint64_t offset, void* to, std::size_t size);

    /// Call it when everything was read. Throws format when the checksum does not fit; mismatch if the file changed.
    void finish() const;

private:
    const InputFile& file_;
    const TensorInfo& info_;
    const Cancellation& cancellation_;
    bool in_order_ = false;
    std::uint64_t next_ = 0;  ///< where the next piece must begin for the checksum
    std::uint32_t crc_ = 0;
};

}  // namespace headscope::checkpoint

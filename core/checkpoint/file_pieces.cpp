// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/file_pieces.h"

#include "core/base/process/os_error.h"
#include "core/checkpoint/pytorch/crc32.h"

namespace headscope::checkpoint {

FilePieces::FilePieces(const InputFile& file, const TensorInfo& info, const Cancellation& cancellation)
    : file_(file), info_(info), cancellation_(cancellation), in_order_(info.checksum.has_value()) {
    if (info.checksum) next_ = info.checksum->begin;
}

void FilePieces::read(std::uint64_t offset, void* to, std::size_t size) {
    cancellation_.check();
    file_.read(offset, to, size);
    in_order_ = in_order_ && offset == next_;
    if (!in_order_) return;
    crc_ = crc32(crc_, to, size);
    next_ += size;
}

void FilePieces::finish() const {
    file_.check_unchanged();
    if (!in_order_ || next_ != info_.checksum->begin + info_.checksum->bytes || crc_ == info_.checksum->crc32) return;
    throw Error(
        ErrorCode::format,
        shown(file_.path()) + ", tensor \"" + escaped(info_.name) + "\", byte " + std::to_string(info_.checksum->begin),
        "expected bytes that fit their checksum", "found others: the file is damaged");
}

}  // namespace headscope::checkpoint

// SPDX-License-Identifier: GPL-3.0-or-later
#include <zstd.h>

#include <vector>

#include "core/base/error.h"
#include "core/base/io/decompressor.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

constexpr std::size_t kZstdPiece = std::size_t{1} << 18U;

class ZstdDecompressor final : public Decompressor {
public:
    explicit ZstdDecompressor(std::string where)
        : where_(std::move(where)), room_(kZstdPiece), stream_(ZSTD_createDStream()) {
        if (stream_ == nullptr)
            throw Error(ErrorCode::memory, "zstd", "expected memory for libzstd", "found none left");
    }
    ~ZstdDecompressor() override { ZSTD_freeDStream(stream_); }
    ZstdDecompressor(const ZstdDecompressor&) = delete;
    ZstdDecompressor& operator=(const ZstdDecompressor&) = delete;

    void add(std::string_view bytes, const Take& take) override {
        ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
        bool full = false;  // a full room may hide more of the content
        while (in.pos < in.size || full) {
            check_cancellation();
            ZSTD_outBuffer out{room_.data(), room_.size(), 0};
            left_ = ZSTD_decompressStream(stream_, &out, &in);
            if (ZSTD_isError(left_) != 0)
                throw Error(ErrorCode::format, where_, "expected a zstd file",
                            "found " + escaped(ZSTD_getErrorName(left_)));
            if (out.pos > 0) take({room_.data(), out.pos});
            full = out.pos == out.size && left_ != 0;
        }
    }

    void finish() override {
        if (left_ != 0) throw Error(ErrorCode::format, where_, "expected a whole zstd file", "found its end too early");
    }

private:
    std::string where_;
    std::vector<char> room_;
    ZSTD_DStream* stream_;
    std::size_t left_ = 1;  ///< 0 where a frame has ended; libzstd's hint of the next input's size elsewhere
};

}  // namespace

std::unique_ptr<Decompressor> zstd_decompressor(std::string where) {
    return std::make_unique<ZstdDecompressor>(std::move(where));
}

}  // namespace headscope
